//! The events of calls that read or change a register.

use super::Register;
use crate::error::RegisterError;
use crate::event::Event;
use crate::name::Name;
use redlatch_registers::Draft;
use std::time::Duration;

impl Register {
    /// Reads, and reports it.
    pub(super) fn report_read<T>(
        &self,
        read: impl FnOnce() -> Result<(T, u32), RegisterError>,
    ) -> Result<T, RegisterError> {
        self.report(read, |register, rounds, took| Event::RegisterRead {
            register,
            rounds,
            took,
        })
    }

    /// Makes a change together with other threads, and reports it. `body` is called as often as
    /// there are drafts.
    pub(super) fn report_change<T>(
        &self,
        body: impl FnMut(&mut Draft) -> Result<T, RegisterError>,
    ) -> Result<T, RegisterError> {
        self.report(
            || self.run(body),
            |register, rounds, took| Event::RegisterChanged {
                register,
                rounds,
                took,
            },
        )
    }

    /// The call is over when it is reported: the callback may use this register.
    fn report<'a, T>(
        &'a self,
        call: impl FnOnce() -> Result<(T, u32), RegisterError>,
        event: fn(Name<'a>, u32, Duration) -> Event<'a>,
    ) -> Result<T, RegisterError> {
        let core = &self.client.core;
        let began = core.events.now_if_listened();
        let result = call();
        let (Some(began), Some(now)) = (began, core.events.now_if_listened()) else {
            return result.map(|(value, _)| value);
        };
        let register = self.name();
        let took = now.since(began);
        match result {
            Ok((value, rounds)) => {
                core.events.emit(|| event(register, rounds, took));
                Ok(value)
            }
            Err(error) => {
                if !error.is_refusal() {
                    core.events.emit(|| Event::RegisterFailed {
                        register,
                        took,
                        error: &error,
                    });
                }
                Err(error)
            }
        }
    }
}
