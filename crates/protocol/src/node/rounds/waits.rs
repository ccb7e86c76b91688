//! Waits in the nodes' queue: what the nodes tell about waiters, and the callers that wait for it.
//!
//! A wait is not a round. Nothing is sent for it, except that the first waiter has the nodes tell
//! when the lock's key changes. It ends when a majority of the nodes reserves the lock for the
//! waiter. It ends early, and the waiter asks, if the key has changed on enough nodes that it may
//! be free, if a connection on which a node would have told was lost, or when the time is over for
//! which a node reserves the lock for another waiter.
//!
//! Which nodes reserve the lock for a waiter is kept here and nowhere else, from when it enters
//! the queue until its turn has ended: what a node answers to it takes the place of what the node
//! told before, and a node that fails to answer reserves nothing.
//!
//! Callers that wait for a time alone are here as well: of both kinds, the next end is known.

use super::{Ended, Rounds};
use crate::engine::{Command, Node, NodeSet, QueueEntry, QueueWait, Request, Token, quorum};
use crate::node::session::{Hint, Session};
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Within this time of each other, nodes carry out one release.
const TOGETHER: Duration = Duration::from_millis(10);

/// The waiters of this client, and what the nodes have told about them.
#[derive(Debug)]
pub(super) struct Waits<W> {
    quorum: usize,
    waiters: BTreeMap<Token, Waiter<W>>,
    /// The waiters with a caller that waits, in the order in which their waits end: there may be
    /// thousands, and the next end is needed after every read.
    ends: BTreeSet<(Time, Token)>,
    /// Who waits for a time alone, by that and by the number of such waits before.
    pauses: BTreeMap<(Time, u64), W>,
    pauses_so_far: u64,
    /// Do all waits end at once, because the client's calls were cancelled?
    are_over: bool,
    /// The waits that have ended, and how.
    finished: VecDeque<(W, Ended)>,
}

/// What the nodes have told about a waiter: which reserve the lock for it, and the rest since its
/// last request.
#[derive(Debug)]
struct Waiter<W> {
    /// How many keys the lock has that it waits for: a set may wait for one of them alone.
    keys: usize,
    /// Has its turn begun?
    is_turn: bool,
    /// The nodes that reserve the lock for it: all of its keys.
    reserved: NodeSet,
    /// The nodes where the lock's key has changed, or one of several is reserved.
    changed: NodeSet,
    /// When another waiter's time to claim the lock is over, as each node told last, in order.
    claims: Vec<(Time, Node)>,
    /// Has a node called on it to ask, or was the connection lost on which it would have told?
    is_called_on: bool,
    /// Do its waits end at once, because its call was cancelled?
    is_ended: bool,
    caller: Option<Caller<W>>,
}

/// The caller that waits for a waiter.
#[derive(Debug)]
struct Caller<W> {
    identity: W,
    /// When its wait ends if nothing is told.
    until: Time,
    /// When it ends, as things are: its place among all ends.
    ends_at: Time,
}

impl<W> Waiter<W> {
    fn new(keys: usize) -> Self {
        Self {
            keys,
            is_turn: false,
            reserved: NodeSet::EMPTY,
            changed: NodeSet::EMPTY,
            claims: Vec::new(),
            is_called_on: false,
            is_ended: false,
            caller: None,
        }
    }

    /// When it asks at the latest: when the time to claim is over on a majority of the nodes, with
    /// those that reserve the lock for it, and on others where it is over soon after.
    fn asks_at(&self, quorum: usize) -> Option<Time> {
        let more = quorum.saturating_sub(self.reserved.len()).max(1);
        let (enough, _) = *self.claims.get(more - 1).or(self.claims.last())?;
        let mut times = self.claims.iter().map(|(time, _)| *time);
        times.rfind(|time| *time <= enough.after(TOGETHER))
    }

    /// A node has told this about it.
    fn told(&mut self, now: Time, node: Node, hint: Hint) {
        match hint {
            // Of a set, a node tells of each key, and only its answer says that it has all. Once
            // the turn has begun, each says that the node has carried the release out.
            Hint::Reserved if self.keys > 1 && !self.is_turn => self.changed.insert(node),
            Hint::Reserved => self.reserve(node),
            // It answers to a request of before, about other keys.
            Hint::Answered { keys, .. } if keys != self.keys => {}
            Hint::Answered { reserves: true, .. } => self.reserve(node),
            Hint::Answered { .. } => self.reserved.remove(node),
            Hint::Changed => self.changed.insert(node),
            Hint::Lost | Hint::AskIn(Duration::ZERO) => self.is_called_on = true,
            Hint::AskIn(time) => {
                self.forget_claim(node);
                self.claims.push((now.after(time), node));
                self.claims.sort_unstable();
            }
        }
    }

    fn reserve(&mut self, node: Node) {
        self.reserved.insert(node);
        self.forget_claim(node);
    }

    fn forget_claim(&mut self, node: Node) {
        self.claims.retain(|(_, other)| *other != node);
    }

    /// Does a majority of the nodes reserve the lock for it?
    fn is_called(&self, quorum: usize) -> bool {
        self.reserved.len() >= quorum
    }

    /// Is the lock reserved for it, or is there something that only a request can clear up?
    fn is_over(&self, quorum: usize) -> bool {
        let must_ask = self.is_ended || self.is_called_on;
        let may_be_free =
            !self.changed.is_empty() && self.reserved.union(self.changed).len() >= quorum;
        must_ask || self.is_called(quorum) || may_be_free
    }
}

impl<W> Waits<W> {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            quorum: quorum(nodes),
            waiters: BTreeMap::new(),
            ends: BTreeSet::new(),
            pauses: BTreeMap::new(),
            pauses_so_far: 0,
            are_over: false,
            finished: VecDeque::new(),
        }
    }

    /// The next wait that has ended.
    pub(super) fn poll(&mut self) -> Option<(W, Ended)> {
        self.finished.pop_front()
    }

    /// The callers that wait. First the one whose wait ends last: whoever is to drive the
    /// connections for the others does so for longest.
    pub(super) fn callers(&self) -> impl Iterator<Item = &W> {
        let names = self.ends.iter().rev().map(|(_, name)| name);
        names
            .filter_map(|name| self.waiters.get(name)?.caller.as_ref())
            .map(|caller| &caller.identity)
            .chain(self.pauses.values().rev())
    }

    /// When the next wait ends.
    pub(super) fn next_end(&self) -> Option<Time> {
        let in_queue = self.ends.first().map(|(end, _)| *end);
        let Some(((pause, _), _)) = self.pauses.first_key_value() else {
            return in_queue;
        };
        Some(in_queue.map_or(*pause, |end| end.min(*pause)))
    }

    pub(super) fn count(&self) -> usize {
        self.waiters.len()
    }

    /// Does this waiter stand in the queue, and has its turn not begun?
    pub(super) fn is_queued(&self, name: &Token) -> bool {
        self.waiters.get(name).is_some_and(|waiter| !waiter.is_turn)
    }

    /// Is there a caller that waits for it?
    fn is_awaited(&self, name: &Token) -> bool {
        self.waiters
            .get(name)
            .is_some_and(|waiter| waiter.caller.is_some())
    }

    /// The nodes that reserve the lock for this waiter.
    pub(super) fn reserved(&self, name: &Token) -> NodeSet {
        self.waiters
            .get(name)
            .map_or(NodeSet::EMPTY, |waiter| waiter.reserved)
    }

    /// A waiter for which this node reserves the lock.
    #[cfg(test)]
    pub(super) fn reserve(&mut self, name: Token, node: Node) {
        let waiter = self.waiters.entry(name).or_insert_with(|| Waiter::new(1));
        waiter.reserved.insert(node);
    }

    /// The waiter asks the nodes about a lock of this many keys. They answer which of them reserve
    /// it; until then, what they told counts, unless it was about other keys.
    fn enter(&mut self, name: Token, keys: usize) {
        self.finish(&name);
        let mut entered = Waiter::new(keys);
        if let Some(before) = self.waiters.get(&name) {
            entered.is_ended = before.is_ended;
            if before.keys == keys {
                entered.reserved = before.reserved;
            }
        }
        self.waiters.insert(name, entered);
    }

    /// The waiter's turn begins. It stays until that has ended: the nodes that have not called it
    /// yet may still do so.
    fn begin_turn(&mut self, name: Token) {
        self.finish(&name);
        let waiter = self.waiters.entry(name).or_insert_with(|| Waiter::new(1));
        waiter.is_turn = true;
    }

    fn leave(&mut self, name: &Token) {
        self.finish(name);
        self.waiters.remove(name);
    }

    fn open(&mut self, now: Time, name: Token, until: Time, caller: W) {
        self.finish(&name);
        let waiter = self.waiters.entry(name).or_insert_with(|| Waiter::new(1));
        waiter.caller = Some(Caller {
            identity: caller,
            until,
            ends_at: until,
        });
        self.ends.insert((until, name));
        if self.are_over || until <= now {
            self.finish(&name);
        }
        self.settle(&name);
    }

    /// A caller waits for a time alone.
    pub(super) fn pause(&mut self, now: Time, until: Time, caller: W) {
        if self.are_over || until <= now {
            self.finished.push_back((caller, Ended::Until));
            return;
        }
        self.pauses.insert((until, self.pauses_so_far), caller);
        self.pauses_so_far += 1;
    }

    /// A node has told this about a waiter. Returns whether it calls one in its turn.
    fn told(&mut self, now: Time, node: Node, name: &Token, hint: Hint) -> bool {
        let Some(waiter) = self.waiters.get_mut(name) else {
            return false;
        };
        waiter.told(now, node, hint);
        let calls = waiter.is_turn && hint.is_reservation();
        self.settle(name);
        calls
    }

    /// These nodes have not answered the waiter's request.
    pub(super) fn not_answered(&mut self, name: &Token, nodes: NodeSet) {
        if let Some(waiter) = self.waiters.get_mut(name) {
            waiter.reserved = waiter.reserved.without(nodes);
        }
    }

    /// Ends the wait of a waiter if it is over, or notes when it will be.
    fn settle(&mut self, name: &Token) {
        let Some(waiter) = self.waiters.get_mut(name) else {
            return;
        };
        if waiter.is_over(self.quorum) {
            return self.finish(name);
        }
        let asks_at = waiter.asks_at(self.quorum);
        let Some(caller) = &mut waiter.caller else {
            return;
        };
        let ends_at = asks_at.map_or(caller.until, |time| time.min(caller.until));
        if ends_at != caller.ends_at {
            self.ends.remove(&(caller.ends_at, *name));
            self.ends.insert((ends_at, *name));
            caller.ends_at = ends_at;
        }
    }

    /// Ends the wait of a waiter, if it has a caller that waits.
    fn finish(&mut self, name: &Token) {
        let Some(waiter) = self.waiters.get_mut(name) else {
            return;
        };
        if let Some(caller) = waiter.caller.take() {
            self.ends.remove(&(caller.ends_at, *name));
            let is_called = waiter.is_called(self.quorum);
            self.finished
                .push_back((caller.identity, Ended::Wait { is_called }));
        }
    }

    /// Ends the waits whose time has come.
    pub(super) fn end_due(&mut self, now: Time) {
        while let Some((_, name)) = self.ends.first().copied().filter(|(end, _)| *end <= now) {
            self.finish(&name);
        }
        // Most clients have none, and it is asked for after every read.
        if self.pauses.is_empty() {
            return;
        }
        while let Some(pause) = self.pauses.first_entry().filter(|it| it.key().0 <= now) {
            self.finished.push_back((pause.remove(), Ended::Until));
        }
    }

    /// Ends the waits of one waiter, now and until it leaves, or of all, now and from now on.
    pub(super) fn end(&mut self, waiter: Option<Token>) {
        let Some(name) = waiter else {
            self.are_over = true;
            return self.end_due(Time::MAX);
        };
        if let Some(waiter) = self.waiters.get_mut(&name) {
            waiter.is_ended = true;
        }
        self.finish(&name);
    }
}

impl<W> Rounds<W> {
    pub(super) fn wait(&mut self, now: Time, wait: &QueueWait, caller: W) {
        self.waits.open(now, wait.waiter, wait.until, caller);
        if self.waits.is_awaited(&wait.waiter) {
            for session in &mut self.sessions {
                session.watch_key(now, wait);
            }
        }
    }

    /// Notes the waiters that come and go with this request. A reservation that is told before the
    /// waiter's wait begins must not be lost.
    pub(super) fn note_waiter(&mut self, request: &Request) {
        let predecessor = request.predecessor().and_then(|before| before.waiter);
        let Some(name) = request.waiter().or(predecessor) else {
            return;
        };
        match request.command {
            Command::Queue(_) | Command::Custom(_) => {
                let keys = request.lock().map_or(1, |lock| lock.keys().count());
                self.waits.enter(name, keys);
            }
            Command::Claim(_) if request.is_turn() => self.waits.begin_turn(name),
            _ => self.leave(&name),
        }
    }

    /// The round of a waiter's turn is over, and no node without the lock is brought it any more.
    /// Nothing else may ever be sent about it: another process may have the lock's token.
    pub(super) fn end_turn(&mut self, name: &Token) {
        if !self.waits.is_queued(name) {
            self.leave(name);
        }
    }

    /// A waiter is gone.
    pub(super) fn leave(&mut self, name: &Token) {
        self.waits.leave(name);
        self.sessions
            .iter_mut()
            .for_each(|session| session.forget_waiter(name));
    }

    /// Hands on what a node has told about a waiter.
    pub(super) fn told(&mut self, now: Time, node: Node, name: &Token, hint: Hint) {
        if hint.is_reservation() {
            self.propagation.late_nodes.remove(node);
        }
        if self.waits.told(now, node, name, hint) {
            self.note_reservation(now, node, name);
        }
    }

    /// How many waiters are known, and how many the nodes notify. Both are zero when nobody waits,
    /// and every node has the locks that were taken in a turn.
    pub fn queue_load(&self) -> (usize, usize) {
        (
            self.waits.count(),
            self.sessions.iter().map(Session::waiters_heard).sum(),
        )
    }
}

impl<W> super::entry::Entry<W> {
    pub(super) fn queue_entry(&self) -> Option<&QueueEntry> {
        self.request.as_ref()?.queue_entry()
    }
}
