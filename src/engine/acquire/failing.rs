//! Attempts that fail: what is taken back, and whether there is another.

use super::{Acquire, Acquired, State, Wait};
use crate::clock::Time;
use crate::engine::{Action, Ballot, NodeSet, Removal, Request, Verdict, quorum};

impl Acquire {
    /// The attempt that was begun at `started` has failed, for the reason that the answers to its
    /// last request give, and is taken back from `nodes`.
    pub(super) fn fail(
        &mut self,
        now: Time,
        started: Time,
        request: &Request,
        nodes: NodeSet,
        ballot: &Ballot,
    ) {
        let failure = if ballot.same_server {
            Acquired::SameServer
        } else if ballot.tally.granted_by_majority() == Verdict::Won {
            Acquired::TooSlow(now.since(started))
        } else if self.is_contended(request, ballot) {
            Acquired::Contended
        } else {
            Acquired::Unanswered
        };
        let is_split = Self::is_split(request, ballot);
        self.failure = Some(failure.clone());
        self.undo = request.lock().map(|lock| {
            let removal = Removal { lock: lock.clone(), ttl: self.ttl, linger: None };
            let Request { started, deadline, .. } = *request;
            Request { action: Action::Undo(removal), started, deadline, nodes }
        });
        self.give_up_predecessor(now, NodeSet::EMPTY);
        self.state = self.after_failure(now, (started, is_split), ballot, failure);
    }

    /// The lock before has been given up by its holder: it is to be removed wherever it may still
    /// be and was not handed over.
    pub(super) fn give_up_predecessor(&mut self, now: Time, handed_off: NodeSet) {
        let Some(mut lease) = self.predecessor.take() else { return };
        lease.nodes = lease.nodes.without(handed_off);
        let is_anywhere = !lease.nodes.is_empty();
        self.undo_before = is_anywhere.then(|| lease.undo(now, &self.rules));
    }

    /// Do others hold the lock? A round that the caller's deadline cut short while answers could
    /// still come says nothing about the nodes; then the one before it counts.
    fn is_contended(&self, request: &Request, ballot: &Ballot) -> bool {
        match ballot.tally.answered_by_majority() {
            Verdict::Won => true,
            Verdict::Lost => false,
            Verdict::Pending => {
                let is_cut_short = request.deadline == self.end();
                is_cut_short && matches!(self.failure, Some(Acquired::Contended))
            }
        }
    }

    /// Rests before the next attempt, or ends with `failure` when there is no point in one. What
    /// has failed was begun at `started`, and may have been split.
    fn after_failure(
        &mut self,
        now: Time,
        (started, is_split): (Time, bool),
        ballot: &Ballot,
        failure: Acquired,
    ) -> State {
        let usable = self.rules.nodes - ballot.hopeless.len();
        if usable < quorum(self.rules.nodes) || matches!(failure, Acquired::SameServer) {
            return State::Over(Some(failure));
        }
        if is_split && self.is_single() {
            return self.after_split(now, started, failure);
        }
        let round = now.since(started);
        let Some(backoff) = &mut self.backoff else {
            return State::Over(Some(failure));
        };
        // An attempt before then would only be work for the nodes. The random part stays: everyone
        // who waits for the end of a quarantine waits for the same moment.
        let delay = ballot.quarantine.saturating_add(backoff.next_delay(round));
        match self.wait {
            Wait::No => State::Over(Some(failure)),
            Wait::Forever => State::Resting(now.after(delay)),
            Wait::Until(time) => {
                // Shortened so that a last attempt fits in before the caller's deadline, unless
                // what is left is too little for that: then attempts would only come faster.
                let left = time.since(now);
                let last = left.saturating_sub(round.max(self.rules.retry_base));
                if last.is_zero() {
                    State::Over(Some(failure))
                } else {
                    State::Resting(now.after(delay.min(last)))
                }
            }
        }
    }
}
