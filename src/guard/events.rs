//! Events about a lock that is held.

use super::LockGuard;
use crate::clock::{self, Time};
use crate::error::{Error, LossReason};
use crate::event::Event;
use crate::released::Released;
use std::time::Duration;

impl LockGuard {
    /// Emits the result of an extension by a call, if there was a listener when it `began`.
    pub(super) fn emit_extended(&mut self, began: Option<Time>, result: &Result<(), Error>) {
        let Some(began) = began else { return };
        if let Err(Error::Lost(lost)) = result {
            return self.emit_lost(lost.reason());
        }
        let (resource, validity) = (self.resource(), self.remaining());
        let took = clock::now().since(began);
        let is_automatic = false;
        match result {
            Ok(()) => {
                self.core.emit(|| Event::Extended { resource, took, validity, is_automatic });
            }
            // No node was asked.
            Err(Error::Ttl(_)) => {}
            Err(error) => {
                self.core.emit(|| Event::NotExtended {
                    resource,
                    took,
                    validity,
                    error,
                    is_automatic,
                });
            }
        }
    }

    /// Emits that the lock was released. `outcome` is what is known about that.
    pub(super) fn emit_released(&mut self, outcome: Option<Released>) {
        if !self.core.has_listener() {
            return;
        }
        // The next waiter need not wait for the callback.
        drop(self.head.take());
        let is_lost = outcome == Some(Released::TooLate);
        if is_lost {
            // If it was not lost when it was given up, this was not emitted yet.
            self.is_loss_emitted &= self.held.check(clock::now()).is_err();
            self.emit_lost(self.late_reason());
        }
        let now = clock::now();
        let least = if is_lost { Duration::ZERO } else { self.hold_at_least };
        let remaining = least.saturating_sub(self.age(now));
        let (resource, held) = (self.resource(), self.age(now));
        self.core.emit(|| Event::Released { resource, held, outcome, remaining });
    }

    /// Emits that the lock was left to its ttl.
    pub(super) fn emit_let_expire(&mut self) {
        // The next waiter asks the nodes from now on.
        drop(self.head.take());
        if !self.core.has_listener() {
            return;
        }
        let now = clock::now();
        let valid_until = self.held.check(now);
        if let Err(reason) = valid_until {
            self.emit_lost(reason);
        }
        let remaining = valid_until.map_or(Duration::ZERO, |valid_until| valid_until.since(now));
        let (resource, held) = (self.resource(), self.age(now));
        self.core.emit(|| Event::LetExpire { resource, held, remaining });
    }

    /// Emits that the lock was lost, once for each guard.
    fn emit_lost(&mut self, reason: LossReason) {
        if !std::mem::replace(&mut self.is_loss_emitted, true) {
            self.core.emit_lost(self.resource(), self.since, reason);
        }
    }
}
