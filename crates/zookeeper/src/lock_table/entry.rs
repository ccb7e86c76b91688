//! One lock of a client: its contender, and who waits for what of it.

use crate::contender::Contender;
use crate::message::EnsembleError;
use crate::session::EnsembleAnswer;
use redlatch_protocol::engine::Vote;
use redlatch_protocol::time::{SharedTime, Time};
use std::sync::Arc;
use std::time::Duration;

/// A lock that is waited for, held, or given back.
#[derive(Debug)]
pub(super) struct LockEntry<W> {
    pub(super) contender: Contender,
    pub(super) stage: LockStage,
    /// Who waits while it is waiting or leaving, and until when.
    pub(super) caller: Option<(W, Time)>,
    /// For how long it is held.
    hold: Duration,
    /// If it does not wait: how many servers may still be tried in vain.
    connects_left: Option<usize>,
    /// The contender has nothing to do before this time.
    pub(super) paused_until: Option<Time>,
    /// When the table looks at it.
    pub(super) alarm: Option<Time>,
}

#[derive(Debug)]
pub(super) enum LockStage {
    Waiting(WaitState),
    /// Granted while no caller waited: one comes for it, or gives it up.
    Granted(Grant),
    /// Over while no caller waited.
    Failed(Option<Outcome>),
    /// Held, until it is released, lost, or at its own end.
    Held(Hold),
    /// Given up, and not gone yet. Was it valid when it was given up?
    Releasing {
        was_valid: bool,
    },
}

#[derive(Debug, Default)]
pub(super) struct WaitState {
    pub(super) place: Option<usize>,
    /// Does the caller know that others are before it?
    pub(super) is_place_told: bool,
    /// Was the wait ended by somebody else?
    pub(super) is_ended: bool,
}

#[derive(Debug)]
pub(super) struct Hold {
    pub(super) grant: Grant,
    /// Its own end, when its znodes are deleted.
    pub(super) end: Time,
    /// Was it given up, to stay until its end?
    pub(super) is_let_expire: bool,
}

impl<W> LockEntry<W> {
    /// Is it held, and was it left to its end?
    pub(super) fn is_let_expire(&self) -> bool {
        match &self.stage {
            LockStage::Held(held) => held.is_let_expire,
            _ => false,
        }
    }

    pub(super) fn new(
        contender: Contender,
        hold: Duration,
        connects_left: Option<usize>,
        caller: (W, Time),
    ) -> Self {
        Self {
            contender,
            stage: LockStage::Waiting(WaitState::default()),
            caller: Some(caller),
            hold,
            connects_left,
            paused_until: None,
            alarm: None,
        }
    }

    /// A server could not be connected to. Returns the caller and its place, if it does not wait
    /// and all servers have been tried for it.
    pub(super) fn unreached(&mut self) -> Option<(W, Option<usize>)> {
        let LockStage::Waiting(wait) = &self.stage else {
            return None;
        };
        let left = self.connects_left.as_mut()?;
        *left = left.saturating_sub(1);
        let caller = self.caller.take_if(|_| *left == 0);
        caller.map(|(waiter, _)| (waiter, wait.place))
    }

    pub(super) fn take_caller(&mut self) -> Option<W> {
        self.caller.take().map(|(waiter, _)| waiter)
    }

    /// When it must be looked at although nothing has happened.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let end = match &self.stage {
            LockStage::Held(held) => Some(held.end),
            _ => self.caller.as_ref().map(|(_, until)| *until),
        };
        end.into_iter().chain(self.paused_until).min()
    }

    pub(super) fn hold(&mut self, now: Time, grant: Grant) -> Grant {
        let grant = Grant { at: now, ..grant };
        let end = now.after(self.hold);
        self.stage = LockStage::Held(Hold {
            grant: grant.clone(),
            end,
            is_let_expire: false,
        });
        grant
    }

    /// Gives it up. `caller` gets to know what has become of it.
    pub(super) fn give_up(&mut self, caller: Option<(W, Time)>, was_valid: bool) {
        let was_held = matches!(self.stage, LockStage::Held(_));
        self.stage = LockStage::Releasing {
            was_valid: was_valid && was_held,
        };
        self.caller = caller;
        self.contender.give_up();
    }
}

/// What has become of a call.
#[derive(Debug)]
pub enum Outcome {
    Granted(Grant),
    /// The lock is not held yet. `place`: how many contenders are before it, if that is known.
    Waiting {
        place: Option<usize>,
    },
    /// Others hold the lock or wait for it, and the caller does not wait.
    Contended,
    /// A server refuses what is needed, and nothing was created.
    Refused(EnsembleError),
    /// A request is longer than servers accept.
    TooLong,
    /// The session has as many znodes as is safe.
    NoRoom,
    NoEntropy,
    /// There is no such lock, or not any more.
    Gone,
    /// Of a release, or of a check: what the ensemble says about the lock. Refused: it was not held
    /// any more.
    Voted(Vote),
    /// Of a question: the server that was asked last, and an answer to each request, as far as they
    /// came in time.
    Answered {
        server: usize,
        answers: Vec<Option<EnsembleAnswer>>,
    },
}

#[derive(Clone, Debug)]
pub struct Grant {
    /// When it was known to be granted: its own time counts from here.
    pub at: Time,
    /// The transaction that created its place in the queue: the fencing token.
    pub created_by: i64,
    /// Which permit it is.
    pub slot: Option<u32>,
    /// Until when its session lives.
    pub session: Arc<SharedTime>,
}

/// Why a lock that was held is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Its znode is gone, or its session.
    Gone,
    /// The validity of its session had passed.
    Expired,
}
