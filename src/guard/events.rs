//! What is told about a lock that is held.

use super::LockGuard;
use crate::clock::{self, Time};
use crate::error::{ExtendError, LockLost};
use crate::event::Event;
use crate::released::Released;

impl LockGuard {
    /// Tells what extending it came to, if somebody listened when that `began`.
    pub(super) fn tell_extended(&mut self, began: Option<Time>, result: &Result<(), ExtendError>) {
        let Some(began) = began else { return };
        if let Err(ExtendError::Lost(lost)) = result {
            return self.tell_lost(*lost);
        }
        let (resource, validity) = (self.resource(), self.remaining());
        let took = clock::now().since(began);
        let is_automatic = false;
        match result {
            Ok(()) => {
                self.core.emit(|| Event::Extended { resource, took, validity, is_automatic });
            }
            // Nobody was asked anything.
            Err(ExtendError::Ttl(_)) => {}
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

    /// Tells that the lock was lost, if that has not been told.
    pub(super) fn tell_lost(&mut self, lost: LockLost) {
        if !std::mem::replace(&mut self.is_loss_told, true) {
            self.core.emit_lost(self.resource(), self.lease.since, lost);
        }
    }

    /// Tells that it was given back. `outcome` is what the nodes say about it, as far as they were
    /// asked.
    pub(super) fn tell_released(&mut self, outcome: Option<Released>) {
        if !self.core.has_listener() {
            return;
        }
        // The next in line need not wait for those who are told.
        drop(self.head.take());
        if outcome == Some(Released::TooLate) {
            let is_over = self.remaining().is_zero() && !self.is_gone;
            self.tell_lost(if is_over { LockLost::Expired } else { LockLost::Gone });
        }
        let (resource, held) = (self.resource(), clock::now().since(self.lease.since));
        self.core.emit(|| Event::Released { resource, held, outcome });
    }
}
