//! Rounds that wait a little for nodes which do not have the lock yet, after a majority has granted
//! it. Afterwards the caller may not use its client for as long as it holds the lock, and then
//! nothing [brings](super::reaching) the lock to these nodes.
//!
//! * **The first lock of a client** waits for nodes that are still connecting: as long again as its
//!   majority took, or a fifth of `node_timeout`, and a quarter of that for a node that has not
//!   even accepted the connection.
//! * **A waiter in its turn** waits for nodes that have not called it, because they had not carried
//!   out yet the release that called it on the others: briefly for their answer, and if they have
//!   refused, until they call or have taken a restoration, for the same time at most. After a
//!   wait in vain for a node, none waits for it for twenty times as long, or until it calls a
//!   waiter. None waits for a node that was silent for a whole round.
//!
//! No other round waits, and none for long: it costs an eighth of the validity at most, and 50 ms
//! unless the majority took as long.

use super::Rounds;
use super::entry::Entry;
use crate::engine::{Action, Node, NodeSet, Request};
use crate::node::Session;
use crate::time::Time;
use std::time::Duration;

/// For what part of a round's time a lock waits, if the majority was faster, and for what part to
/// know what a node answers that has not called.
const WAIT: u32 = 5;
const WAIT_UNANSWERED: u32 = 50;

/// The part of a round's time is no longer than this: `node_timeout` may be a minute.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// For how many times as long as it waited in vain for a node, no waiter waits for it.
const PAUSE: u32 = 20;

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
    fn uncalled(&self, sessions: &[Session]) -> (NodeSet, NodeSet) {
        let is_turn = matches!(self.request, Some(Request { action: Action::Turn { .. }, .. }));
        if !is_turn || !self.is_lock() {
            return (NodeSet::EMPTY, NodeSet::EMPTY);
        }
        let called = self.reach.called.union(self.reach.placed);
        (self.awaited_nodes(sessions).without(called), self.tally.refused.without(called))
    }

    /// Has a lock that a majority had granted waited beyond the deadline, for nodes that were still
    /// connecting?
    pub(super) fn has_waited_beyond(&self, now: Time) -> bool {
        let has_waited = self.reach.waits_until.is_some();
        has_waited && self.request.as_ref().is_some_and(|request| now > request.deadline)
    }
}

impl<W> Rounds<W> {
    /// Does this round wait for other nodes, after a majority has granted the lock?
    pub(super) fn waits_for_others(&mut self, now: Time, slot: usize) -> bool {
        let entry = &self.entries[slot];
        let Some(request) = entry.request.as_ref().filter(|it| it.verb().is_acquisition()) else {
            return false;
        };
        if !entry.is_confirmed() || entry.is_forgotten {
            return false;
        }
        let at = entry.reach.won_at.unwrap_or(now);
        let won = Won { at, took: at.since(request.started) };
        let last = won.after(self.part_of_round(WAIT));
        let last_arrival = *self.reaching.arrivals_until.get_or_insert(last);
        let last = last.min(request.connect_deadline).min(request.spare_until);
        let last_call = last.min(request.deadline);
        let arrival = self.arrival(slot, won).map(|until| until.min(last_arrival));
        let call = self.call(now, slot, won, last_call);
        let until = arrival.max(call).map_or(won.at, |until| until.min(last));
        if self.entries[slot].reach.waits_until.is_some() && now >= until {
            // Later locks do not wait once more for the same connections.
            self.reaching.arrivals_until = Some(last_arrival.min(now));
        }
        until > now && self.wait_for_others(now, slot, won, until)
    }

    fn part_of_round(&self, parts: u32) -> Duration {
        (self.sessions[0].round() / parts).min(WAIT_MAX)
    }

    /// Until when nodes may answer that are just connecting.
    fn arrival(&self, slot: usize, won: Won) -> Option<Time> {
        let voted = self.entries[slot].tally.voted();
        let open = self.sessions.iter().enumerate();
        let open = open.filter(|(index, _)| !voted.contains(Node::new(*index)));
        let least = self.part_of_round(WAIT);
        open.filter_map(|(_, session)| session.arrives_until(won.at, won.took, least)).max()
    }

    /// Until when the nodes may answer that have not called the waiter whose turn this is, or call
    /// it after they have refused. The waiter waits for neither where one waited in vain lately.
    fn call(&mut self, now: Time, slot: usize, won: Won, last_call: Time) -> Option<Time> {
        if self.reaching.in_vain_until.is_some_and(|until| now >= until) {
            self.reaching.in_vain = NodeSet::EMPTY;
        }
        let (open, refused) = self.entries[slot].uncalled(&self.sessions);
        let in_vain = self.reaching.in_vain;
        let (open, refused) = (open.without(in_vain), refused.without(in_vain));
        if now >= last_call && !refused.is_empty() {
            self.reaching.in_vain = self.reaching.in_vain.union(refused);
            let pause = last_call.since(won.at) * PAUSE;
            self.reaching.in_vain_until = Some(now.after(pause));
        }
        let answer = won.after(self.part_of_round(WAIT_UNANSWERED)).min(last_call);
        let answer = Some(answer).filter(|_| !open.is_empty());
        answer.max(Some(last_call).filter(|_| !refused.is_empty()))
    }

    fn wait_for_others(&mut self, now: Time, slot: usize, won: Won, until: Time) -> bool {
        let entry = &mut self.entries[slot];
        entry.reach.won_at = Some(won.at);
        entry.reach.waits_until = Some(until);
        self.ends_at = self.ends_at.min(until);
        self.has_overtime = true;
        if self.entries[slot].is_lock() {
            // From now on it may be restored, so its removal must find it.
            self.keep(slot);
            self.bring_to_new(now, slot);
        }
        true
    }
}
