//! Fencing tokens: numbers that grow with every grant of a lock.
//!
//! Each node has a counter for the lock. A grant raises it by one, or to the wall clock of the
//! client that asks, in microseconds, if that is more; and answers with it. The largest answer is
//! the token, and must be known to a majority before the lock is held: whoever is granted it next
//! asks a majority too, and so hears of more. If a majority has answered with the largest, that is
//! so already. If not, a second round writes it back, on each node only if the lock's key still
//! holds our token and the counter is not above it.
//!
//! The wall clock is what makes tokens grow where nodes have lost their data, as long as there are
//! fewer grants than microseconds; the counters are what makes them grow where clients' wall clocks
//! disagree. `tests/fencing_search` goes through all histories of a certain size for both. A clock
//! that counts only where there is no counter is not enough: a claim that was under way while a
//! node lost its data would begin a counter below tokens that were given meanwhile.

use super::{Acquire, Acquired, State};
use crate::clock::Time;
use crate::engine::{
    Action, Ballot, Counters, FENCE_SEED_MAX, Lease, LockId, Request, Verdict, quorum,
};

/// What a counter is at least, by this wall clock.
pub(super) fn seed(wall: u64) -> u64 {
    wall.clamp(1, FENCE_SEED_MAX)
}

impl Acquire {
    pub(super) fn is_fenced(&self) -> bool {
        self.attributes.as_ref().is_some_and(|attributes| attributes.fence.is_some())
    }

    /// A majority has granted the lock in time.
    pub(super) fn granted(&self, now: Time, lease: Lease, lock: LockId, ballot: &Ballot) -> State {
        if !self.is_fenced() {
            return State::Over(Some(Acquired::Held(lease)));
        }
        let Counters { largest, nodes } = ballot.counters;
        if nodes.len() >= quorum(self.rules.nodes) {
            return State::Over(Some(Acquired::Held(Lease { fence: Some(largest), ..lease })));
        }
        let request = Request {
            started: lease.since,
            deadline: self.deadline(now, lease.since).min(lease.valid_until),
            ..Request::to_all(&self.rules, now, Action::Fence { lock, fence: largest })
        };
        State::Confirming { lease, request, is_sent: false }
    }

    /// The nodes have been asked to raise their counters to the token.
    pub(super) fn confirmed(
        &mut self,
        now: Time,
        lease: Lease,
        request: &Request,
        ballot: &Ballot,
    ) {
        let is_confirmed = ballot.tally.granted_by_majority() == Verdict::Won;
        let in_time = self.is_in_time(now, lease.valid_until);
        if is_confirmed && in_time && !ballot.same_server {
            let lease = Lease { fence: request.fence(), ..lease };
            self.state = State::Over(Some(Acquired::Held(lease)));
            return;
        }
        // If a majority refused: the key is not ours any more, somebody took it away.
        let nodes = lease.nodes.union(ballot.sent);
        self.fail(now, lease.since, request, nodes, ballot);
    }
}
