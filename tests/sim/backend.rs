//! What the library's main loop knows of its call, as far as it is simulated.

#[path = "../../src/backend/caller.rs"]
mod caller;
#[path = "../../src/backend/quorum/memory.rs"]
#[allow(
    dead_code,
    reason = "simulated clients report no votes, and look at each transaction that they join"
)]
mod memory;

use crate::clock::Time;
use crate::task::Line;
pub(crate) use caller::Caller;
pub(crate) use memory::{
    CombinedRegister, Combiner, CombinerMessage, CombiningRole, Committed, Contribution,
    RegisterMemory,
};
use redlatch_protocol::engine::{Acquire, Token, Votes};
use redlatch_protocol::node::NodeReport;
use std::marker::PhantomData;

pub(crate) struct LockSpec<'a> {
    pub(crate) call: CancellableCall<'a>,
}

pub(crate) struct CancellableCall<'a> {
    pub(crate) line: &'a Line,
}

impl CancellableCall<'_> {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.line.is_cancelled()
    }

    pub(crate) fn set_waiter(&self, waiter: Option<Token>) {
        self.line.set_waiter(waiter);
    }
}

/// Checks when a call reports its progress: a listener may panic then, or take its time.
#[derive(Default)]
pub(crate) struct EventRecorder<'a> {
    is_asking: bool,
    events: PhantomData<&'a ()>,
}

impl EventRecorder<'_> {
    pub(crate) fn count_attempt(&mut self) {
        self.is_asking = true;
    }

    pub(crate) fn begin_attempt(&mut self, now: Time) {
        assert!(now > Time::ZERO && !self.is_asking);
    }

    pub(crate) fn end_round(&mut self, _: Time, _: &Votes) {
        self.is_asking = false;
    }

    pub(crate) fn emit_progress(&mut self, acquire: &Acquire, _: &[NodeReport], is_called: bool) {
        assert!(!self.is_asking, "an attempt is under way: {acquire:?}");
        assert!(!is_called || acquire.waiter().is_some());
    }
}
