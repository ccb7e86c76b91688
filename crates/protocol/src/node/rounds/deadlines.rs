//! Until when rounds wait, and for whom.
//!
//! There may be thousands of rounds, and the next deadline is needed after every read. So it is not
//! searched for: `ends_at` is a lower bound of all deadlines, recomputed only when it has passed.

use super::Rounds;
use super::entry::Entry;
use super::waits::Waits;
use crate::engine::{Node, NodeSet, Request, quorum};
use crate::node::session::Session;
use crate::time::Time;
use std::time::Duration;

/// The least time for which a round that could end waits for answers that may help.
const SPARE_MIN: Duration = Duration::from_millis(5);

impl<W> Rounds<W> {
    /// Has a majority of the nodes answered on the connections that there are? Then rounds take no
    /// longer than their deadline, unless they wait for nodes that are silent.
    pub fn is_connected(&self) -> bool {
        let answering = self
            .sessions
            .iter()
            .filter(|session| session.has_answered());
        answering.count() >= quorum(self.sessions.len())
    }

    /// Counts a new waiter, whose round has this deadline.
    pub(super) fn await_until(&mut self, deadline: Time) {
        let is_first = self.awaited == 0;
        self.ends_at = if is_first {
            deadline
        } else {
            self.ends_at.min(deadline)
        };
        self.awaited += 1;
    }

    /// Ends the attempt that this removal undoes, if its deadline has passed. Parts of the attempt
    /// may wait for a connection or for room, and must not be written after the removal.
    pub(super) fn end_attempt(&mut self, now: Time, request: &Request) {
        let is_early = now < self.ends_at && !self.has_overtime;
        if self.awaited == 0 || is_early || !request.is_removal() {
            return;
        }
        let Some(token) = request.token() else { return };
        let of_token = self.attempts.range((token, 0)..=(token, usize::MAX));
        let rounds: Vec<usize> = of_token.map(|(_, round)| *round).collect();
        for round in rounds {
            self.settle(now, round, true);
        }
    }

    /// Ends the rounds whose deadline has passed, and drops extensions whose ttl has passed.
    pub(super) fn end_rounds(&mut self, now: Time) {
        if self.awaited == 0 || now < self.ends_at {
            return;
        }
        let mut next: Option<Time> = None;
        self.has_overtime = false;
        for round in 0..self.entries.len() {
            let entry = &self.entries[round];
            let Some(request) = &entry.request else {
                continue;
            };
            if entry.waiter.is_none() {
                let is_over = match entry.is_followed() {
                    true => now >= request.deadline,
                    false => request.ttl_left(now).is_none(),
                };
                if is_over {
                    self.end_round(round);
                }
                continue;
            }
            let deadline = request.deadline;
            let mut end = entry.end(now, &self.sessions, self.wait_for_all);
            if now >= end {
                // A lock that only waits for other nodes is not late, and may wait on.
                let is_granted =
                    entry.spread.waits_until.is_some() && now < request.connect_deadline;
                self.settle(now, round, !is_granted);
                let entry = &self.entries[round];
                if entry.waiter.is_none() {
                    continue;
                }
                end = entry.end(now, &self.sessions, self.wait_for_all);
            }
            let entry = &mut self.entries[round];
            entry.is_prolonged |= now >= deadline;
            self.has_overtime |= entry.is_prolonged || entry.spread.waits_until.is_some();
            next = Some(next.map_or(end, |next| next.min(end)));
        }
        self.ends_at = next.unwrap_or(self.ends_at);
    }
}

impl<W> Entry<W> {
    /// When the round ends, as things are. One that could end waits for other answers for as long
    /// again as the majority took, unless all are waited for: a node that is frozen does not delay
    /// it by much. Beyond its deadline, a round waits for nodes that have never answered on their
    /// connection: until a majority has answered, and then for as long again as that took. Until a
    /// majority has answered, it also waits for nodes that are slow, as long as they may still
    /// complete one: if a disk or a processor is overloaded, all nodes are, and a round that gives
    /// up only adds to the load.
    pub(super) fn end(&self, now: Time, sessions: &[Session], waits_for_all: bool) -> Time {
        let Some(request) = &self.request else {
            return Time::MAX;
        };
        if let Some(until) = self.spread.waits_until {
            return until;
        }
        if let Some(at) = self
            .majority_at
            .filter(|_| self.could_end() && !waits_for_all)
        {
            let spare = at.since(request.started).max(SPARE_MIN);
            return request.deadline.min(at.after(spare));
        }
        if now < request.deadline {
            return request.deadline;
        }
        let voted = self.tally.voted();
        let is_patient = self.majority_at.is_none() && !self.is_ping();
        let mut count = 0;
        let mut last = Time::ZERO;
        for (index, session) in sessions.iter().enumerate() {
            if voted.contains(Node::new(index)) {
                continue;
            }
            let mut until = session.is_awaited_until();
            if until.is_none() && is_patient {
                until = session.may_answer_until();
            }
            if let Some(until) = until.filter(|until| *until > now) {
                count += 1;
                last = last.max(until);
            }
        }
        let end = match self.majority_at {
            Some(at) => last.min(at.after(at.since(request.started))),
            None if self.answered().len() + count >= quorum(request.nodes.len()) => last,
            None => Time::ZERO,
        };
        end.min(request.connect_deadline).max(request.deadline)
    }

    /// The nodes that were asked and have answered.
    fn answered(&self) -> NodeSet {
        let asked = self
            .request
            .as_ref()
            .map_or(NodeSet::EMPTY, |request| request.nodes);
        let answered = self.tally.granted.union(self.tally.refused);
        answered.without(answered.without(asked))
    }

    /// Notes when a majority of the nodes that were asked has answered. Returns whether the round
    /// may end earlier because of the last answer.
    pub(super) fn note_majority(&mut self, now: Time) -> bool {
        let asked = self
            .request
            .as_ref()
            .map_or(0, |request| request.nodes.len());
        if self.majority_at.is_none() && self.answered().len() >= quorum(asked) {
            self.majority_at = Some(now);
        }
        self.is_prolonged || self.could_end()
    }
}

// Rounds that wait a little for nodes which do not have the lock yet, after a majority has granted
// it. Afterwards the caller may not use its client for as long as it holds the lock, and then
// nothing brings (`propagation.rs`) the lock to these nodes.
//
// * **The first lock of a client** waits for nodes that are still connecting: as long again as its
//   majority took, or a fifth of `node_timeout`, and a quarter of that for a node that has not
//   even accepted the connection.
// * **A waiter in its turn** waits for nodes that have not called it, because they had not carried
//   out yet the release that called it on the others: briefly for their answer, and if they have
//   refused, until they call or have taken a restoration, for the same time at most. After a
//   wait in vain for a node, none waits for it for twenty times as long, or until it calls a
//   waiter. None waits for a node that was silent for a whole round.
//
// No other round waits, and none for long: it costs an eighth of the validity at most, and 50 ms
// unless the majority took as long.

/// For what part of a round's time a lock waits, if the majority was faster, and for what part to
/// know what a node answers that has not called.
const WAIT: u32 = 5;
const WAIT_UNANSWERED: u32 = 50;

/// The part of a round's time is no longer than this: `node_timeout` may be a minute.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// For how many times as long as it waited in vain for a node, no waiter waits for it.
const NOT_AGAIN_FOR: u32 = 20;

/// When a majority granted the lock, and how long that took.
#[derive(Clone, Copy)]
struct Won {
    at: Time,
    took: Duration,
}

impl Won {
    /// After as long again, and after `least` at least.
    fn after(self, least: Duration) -> Time {
        self.at.after(self.took.max(least))
    }
}

impl<W> Entry<W> {
    /// The nodes that have not called the waiter whose turn this is, and lack the lock: those whose
    /// answer is awaited, and those that refused.
    fn not_notified(&self, sessions: &[Session], waits: &Waits<W>) -> (NodeSet, NodeSet) {
        let request = self.request.as_deref().filter(|it| it.is_turn());
        let waiter = request.and_then(Request::waiter);
        let Some(waiter) = waiter.filter(|_| self.is_lock()) else {
            return (NodeSet::EMPTY, NodeSet::EMPTY);
        };
        let called = waits.reserved(&waiter).union(self.spread.placed);
        (
            self.awaited_nodes(sessions).without(called),
            self.tally.refused.without(called),
        )
    }

    /// Has a lock that a majority had granted waited beyond the deadline, for nodes that were still
    /// connecting?
    pub(super) fn has_waited_beyond(&self, now: Time) -> bool {
        let has_waited = self.spread.waits_until.is_some();
        has_waited
            && self
                .request
                .as_deref()
                .is_some_and(|request| now > request.deadline)
    }
}

impl<W> Rounds<W> {
    /// Does this round wait for other nodes, after a majority has granted the lock?
    pub(super) fn waits_for_others(&mut self, now: Time, round: usize) -> bool {
        let entry = &self.entries[round];
        let Some(request) = entry.request.as_ref().filter(|it| it.is_claim()) else {
            return false;
        };
        if !entry.is_confirmed() || entry.is_forgotten {
            return false;
        }
        let at = entry.spread.won_at.unwrap_or(now);
        let won = Won {
            at,
            took: at.since(request.started),
        };
        let last = won.after(self.part_of_round(WAIT));
        let last_arrival = *self.propagation.arrivals_until.get_or_insert(last);
        let last = last.min(request.connect_deadline).min(request.spare_until);
        let last_call = last.min(request.deadline);
        let arrival = self
            .arrival(round, won)
            .map(|until| until.min(last_arrival));
        let call = self.call(now, round, won, last_call);
        let until = arrival.max(call).map_or(won.at, |until| until.min(last));
        if self.entries[round].spread.waits_until.is_some() && now >= until {
            // Later locks do not wait once more for the same connections.
            self.propagation.arrivals_until = Some(last_arrival.min(now));
        }
        until > now && self.wait_for_others(now, round, won, until)
    }

    fn part_of_round(&self, parts: u32) -> Duration {
        (self.sessions[0].round() / parts).min(WAIT_MAX)
    }

    /// Until when nodes may answer that are just connecting.
    fn arrival(&self, round: usize, won: Won) -> Option<Time> {
        let voted = self.entries[round].tally.voted();
        let least = self.part_of_round(WAIT);
        self.sessions
            .iter()
            .enumerate()
            .filter(|(index, _)| !voted.contains(Node::new(*index)))
            .filter_map(|(_, session)| session.arrives_until(won.at, won.took, least))
            .max()
    }

    /// Until when the nodes may answer that have not called the waiter whose turn this is, or call
    /// it after they have refused. The waiter waits for neither where one waited in vain lately.
    fn call(&mut self, now: Time, round: usize, won: Won, last_call: Time) -> Option<Time> {
        if self
            .propagation
            .late_until
            .is_some_and(|until| now >= until)
        {
            self.propagation.late_nodes = NodeSet::EMPTY;
        }
        let (open, refused) = self.entries[round].not_notified(&self.sessions, &self.waits);
        let late_nodes = self.propagation.late_nodes;
        let open = open.without(late_nodes);
        let refused = refused.without(late_nodes);
        if now >= last_call && !refused.is_empty() {
            self.propagation.late_nodes = self.propagation.late_nodes.union(refused);
            let pause = last_call.since(won.at) * NOT_AGAIN_FOR;
            self.propagation.late_until = Some(now.after(pause));
        }
        let answer = won
            .after(self.part_of_round(WAIT_UNANSWERED))
            .min(last_call);
        let answer = Some(answer).filter(|_| !open.is_empty());
        answer.max(Some(last_call).filter(|_| !refused.is_empty()))
    }

    fn wait_for_others(&mut self, now: Time, round: usize, won: Won, until: Time) -> bool {
        let entry = &mut self.entries[round];
        entry.spread.won_at = Some(won.at);
        entry.spread.waits_until = Some(until);
        self.ends_at = self.ends_at.min(until);
        self.has_overtime = true;
        if self.entries[round].is_lock() {
            // From now on it may be restored, so its removal must find it.
            self.keep(round);
            self.send_to_new(now, round);
        }
        true
    }
}
