//! The events of calls that read or change a register.

use super::Register;
use super::read::Observation;
use crate::backend::at_once;
use crate::clock::Time;
use crate::error::RegisterError;
use crate::event::Event;
use crate::name::Name;
use redlatch_registers::{Change, Draft, RegisterCommand};
use std::pin::pin;
use std::time::Duration;

impl Register {
    /// Reads the value, by a command that answers it, and reports it.
    pub(super) async fn look(
        &self,
        command: &RegisterCommand,
    ) -> Result<Observation, RegisterError> {
        let began = self.client.core.events.now_if_listened();
        let result = self.look_with(command).await;
        self.report(began, result, |register, rounds, took| {
            Event::RegisterRead {
                register,
                rounds,
                took,
            }
        })
    }

    /// Makes a change together with other threads, and reports it. `body` is called as often as
    /// there are drafts.
    pub(super) fn report_change<T>(
        &self,
        body: impl FnMut(&mut Draft) -> Result<T, RegisterError>,
    ) -> Result<T, RegisterError> {
        let began = self.client.core.events.now_if_listened();
        let combined = self.combined()?;
        let result = at_once(pin!(self.run_with(&combined, Change::new, body)));
        self.report(began, result, |register, rounds, took| {
            Event::RegisterChanged {
                register,
                rounds,
                took,
            }
        })
    }

    /// The call is over when it is reported: the callback may use this register.
    fn report<'a, T>(
        &'a self,
        began: Option<Time>,
        result: Result<(T, u32), RegisterError>,
        event: fn(Name<'a>, u32, Duration) -> Event<'a>,
    ) -> Result<T, RegisterError> {
        let core = &self.client.core;
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
