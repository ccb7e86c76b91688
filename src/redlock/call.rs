//! The main loop of a call that acquires a lock from the nodes.

use super::other_data::LastLooks;
use crate::backend::{Caller, EventRecorder, LockSpec};
use crate::clock::{self, Time};
use crate::engine::{Acquire, Acquired, Input, QueueWait, Request, Rules, Step};
use crate::entropy::draw;
use crate::error::Error;
use crate::owner_process::OwnerProcess;
use crate::wait_queue::HeadHandle;
use redlatch_protocol::node::{NodeReport, RoundOutcome};
use std::future::{Future, ready};
use std::panic::{self, AssertUnwindSafe};
use std::task::Poll;

/// A caller that asks the nodes.
pub(crate) trait NodesCaller: Caller {
    /// Waits until there is room for an attempt, where many calls ask the nodes in one thread. An
    /// attempt that has begun must not wait for that: its time runs. Returns `true`, and early, if
    /// the call is cancelled, or at `end`, if that has not come yet. A call that is awaited does
    /// not wait for those that only begin: see [`Acquire::is_awaited`].
    fn await_room(&self, _end: Option<Time>, _is_awaited: bool) -> impl Future<Output = bool> {
        ready(false)
    }

    /// Sends a request to all nodes. It is decided at once if the caller waits for that here. An
    /// outcome is large, and a future would move it twice.
    fn round(&self, request: Request) -> Poll<RoundOutcome>;

    /// Waits until the request that was sent last is decided, or until its deadline.
    fn decision(&self) -> impl Future<Output = RoundOutcome>;

    /// Waits in the nodes' queue. Returns whether a majority of them reserves the lock.
    fn wait(&self, wait: QueueWait) -> impl Future<Output = bool>;

    /// Sends a request to all nodes without waiting for replies.
    fn post(&self, request: Request);
}

/// A call that acquires a lock.
pub(super) struct Call<'a, 'e, C> {
    pub(super) caller: &'a C,
    pub(super) spec: &'a LockSpec<'a>,
    /// Its place in a wait queue of this process, if it has one.
    pub(super) head: Option<&'a HeadHandle>,
    pub(super) recorder: Option<&'a mut EventRecorder<'e>>,
    pub(super) rules: &'a Rules,
    pub(super) owner_process: &'a OwnerProcess,
    pub(super) last_looks: &'a LastLooks,
    /// When it has asked the nodes what keeps it from the lock, if it has.
    pub(super) looked: Option<Time>,
    /// Of the attempt's last round.
    pub(super) reports: Vec<NodeReport>,
}

impl<C: NodesCaller> Call<'_, '_, C> {
    /// The main loop: it runs the state machine of a call that acquires a lock. The machine says
    /// what to do next and takes in the result; this adds the time and the random numbers, and the
    /// caller when it is to end early.
    pub(super) async fn run(&mut self, acquire: &mut Acquire) -> Result<Acquired, Error> {
        // The first attempt of a handoff is refused before it begins, and that says nothing.
        let mut has_tried = false;
        loop {
            let step = acquire.poll();
            if has_tried && acquire.is_refused() && self.may_look(acquire, &step) {
                if let Some(error) = self.find_other_data().await {
                    self.abandon(acquire);
                    return Err(error);
                }
            }
            if step.is_break() && !self.note_progress(acquire, false) {
                acquire.handle(clock::now(), Input::Cancelled);
                continue;
            }
            match step {
                Step::Send(request) if request.is_answered() => {
                    has_tried = true;
                    let is_attempt = request.queue_entry().is_none();
                    if let Some(recorder) = self.recorder.as_mut().filter(|_| request.is_claim()) {
                        recorder.count_attempt();
                    }
                    match self.caller.round(request) {
                        Poll::Ready(outcome) => self.take_outcome(acquire, is_attempt, outcome),
                        Poll::Pending => {
                            let outcome = self.caller.decision().await;
                            self.take_outcome(acquire, is_attempt, outcome);
                        }
                    }
                }
                Step::Send(request) => self.post(request),
                Step::Wait(wait) => {
                    if !self.caller.wait(wait).await {
                        acquire.handle(clock::now(), Input::NotCalled);
                        continue;
                    }
                    // Before the turn begins: a callback would use up the time of its round.
                    if !self.note_progress(acquire, true) {
                        acquire.handle(clock::now(), Input::Cancelled);
                        continue;
                    }
                    self.begin_attempt(acquire).await;
                }
                Step::Pause(until) => {
                    if self.caller.pause_until(until).await {
                        acquire.handle(clock::now(), Input::Cancelled);
                        continue;
                    }
                    self.begin_attempt(acquire).await;
                }
                Step::Done(Acquired::Unanswered) => return Ok(self.unanswered().await),
                Step::Done(outcome) => return Ok(outcome),
            }
        }
    }

    /// Sends a request that is not an attempt, and waits for its outcome.
    pub(super) async fn ask(&self, request: Request) -> RoundOutcome {
        match self.caller.round(request) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => self.caller.decision().await,
        }
    }

    /// Begins an attempt with random numbers of its own, or a waiter's turn.
    async fn begin_attempt(&mut self, acquire: &mut Acquire) {
        let end = acquire.deadline_of_call();
        if self.caller.await_room(end, acquire.is_awaited()).await {
            return acquire.handle(clock::now(), Input::Cancelled);
        }
        let entropy = draw().map(|entropy| entropy.at(clock::wall_micros()));
        let input = entropy.map_or(Input::NoEntropy, Input::Attempt);
        // Before the first byte is written: a lock must not look longer than it is.
        let now = clock::now();
        if let Some(recorder) = &mut self.recorder {
            recorder.begin_attempt(now);
        }
        acquire.handle(now, input);
    }

    /// Gives the machine the votes for what it wanted to know.
    fn take_outcome(&mut self, acquire: &mut Acquire, is_attempt: bool, outcome: RoundOutcome) {
        // After the answer that decided it: a grant must not look younger than it is.
        let now = clock::now();
        // A request about the queue that succeeds says nothing about the attempt before.
        if is_attempt || !outcome.reports.is_empty() {
            self.reports = outcome.reports;
        }
        if let Some(recorder) = self.recorder.as_mut().filter(|_| is_attempt) {
            recorder.end_round(now, &outcome.votes);
        }
        acquire.handle(now, Input::Votes(outcome.votes));
    }

    /// The attempt before has ended, and no other has begun. `is_called`: a majority of the nodes
    /// reserves the lock for this call, so that its turn begins. Returns whether the call goes on.
    fn note_progress(&mut self, acquire: &mut Acquire, is_called: bool) -> bool {
        if let Some(recorder) = &mut self.recorder {
            let reports = &self.reports;
            let emit = AssertUnwindSafe(|| recorder.emit_progress(acquire, reports, is_called));
            if let Err(panic) = panic::catch_unwind(emit) {
                // A callback that panics must not leave the caller in the nodes' queue.
                self.abandon(acquire);
                panic::resume_unwind(panic);
            }
        }
        // If a callback has forked, the call goes on in the parent only, whose mutexes may be held.
        if self.owner_process.is_known_forked() {
            return false;
        }
        if let Some(head) = self.head {
            head.set_held_elsewhere(acquire.held_elsewhere_until());
        }
        self.spec.call.set_waiter(acquire.waiter());
        !self.spec.call.is_cancelled()
    }

    /// Ends a call early, of which nothing must be left on the nodes.
    fn abandon(&self, acquire: &mut Acquire) {
        acquire.handle(clock::now(), Input::Cancelled);
        while let Step::Send(request) = acquire.poll() {
            self.post(request);
        }
    }

    /// Sends a request without waiting for an answer. In a child that a callback has forked, it
    /// does nothing: the connections are the parent's.
    fn post(&self, request: Request) {
        if !self.owner_process.is_known_forked() {
            self.caller.post(request);
        }
    }
}
