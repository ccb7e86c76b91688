//! Fencing tokens: numbers that grow with every grant of a lock.
//!
//! Each node counts the grants of a lock that it has seen, and answers a grant with its counter.
//! The largest counter is the token, and must be known to a majority before the lock is held: the
//! next one to be granted it asks a majority, one of which then answers with more. If a majority
//! has answered with the largest, that is so already. If not, a second round writes it back, on
//! each node only if the lock's key still holds our token.
//!
//! Nodes that have lost their data begin to count from the client's wall clock, in microseconds,
//! which is above every counter that began earlier, as long as there are fewer grants than
//! microseconds and the clients' wall clocks do not go back.

use super::{Acquire, Acquired, State};
use crate::clock::Time;
use crate::engine::{Ballot, Counters, Lease, NodeSet, Request, Verb, Verdict, quorum};

impl Acquire {
    pub(super) fn is_fenced(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.fence.is_some())
    }

    /// A majority has granted the lock in time.
    pub(super) fn granted(
        &self,
        now: Time,
        lease: Lease,
        request: Request,
        ballot: &Ballot,
    ) -> State {
        if !self.is_fenced() {
            return State::Over(Some(Acquired::Held(lease)));
        }
        let Counters { largest, nodes } = ballot.counters;
        if nodes.len() >= quorum(self.rules.nodes) {
            return State::Over(Some(Acquired::Held(Lease { fence: Some(largest), ..lease })));
        }
        let request = Request {
            verb: Verb::Fence,
            fence: largest,
            predecessor: None,
            deadline: self.deadline(now).min(lease.valid_until),
            nodes: NodeSet::all(self.rules.nodes),
            ..request
        };
        State::Confirming { lease, request, is_sent: false }
    }

    /// The nodes have been asked to raise their counters to the token.
    pub(super) fn confirmed(&mut self, now: Time, lease: Lease, request: Request, ballot: &Ballot) {
        let is_confirmed = ballot.tally.granted_by_majority() == Verdict::Won;
        let in_time = self.is_in_time(now, lease.valid_until);
        if is_confirmed && in_time && !ballot.same_server {
            let lease = Lease { fence: Some(request.fence), ..lease };
            self.state = State::Over(Some(Acquired::Held(lease)));
            return;
        }
        let failure = if ballot.same_server {
            Acquired::SameServer
        } else if is_confirmed {
            Acquired::TooLate(now.since(lease.since))
        } else if self.is_contended(&request, ballot) {
            // The nodes answered that the key is not ours any more: somebody took it away.
            Acquired::Contended
        } else {
            Acquired::Unanswered
        };
        self.failure = Some(failure.clone());
        let nodes = lease.nodes.union(ballot.sent);
        self.undo = Some(Request { verb: Verb::Undo, nodes, fence: 0, ..request });
        self.state = self.after_failure(now, lease.since, ballot, failure);
    }
}
