//! The loop that runs a change: over the rounds, the threads that take part, and other clients that
//! change the register at the same time.

use super::{Register, Value};
use crate::client::request::{LockKeys, LockRequest};
use crate::clock;
use crate::core::Core;
use crate::core::registers::{Asked, Leader, Made, Message, Role, Seat, Slot};
use crate::engine::{Backoff, Jitter, QueueWait, TURN, Token};
use crate::entropy::draw;
use crate::error::RegisterError;
use crate::guard::LockGuard;
use crate::redlock::Redlock;
use crate::registers::{
    Ballot, Change, ChangeEnd, ChangeStep, Draft, Group, Proposer, RegisterCommand, Version,
};
use std::cell::Cell;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// For how long a client has its turn, and for how long it waits for it at most. Whether a change
/// is made does not depend on it.
const TURN_TTL: Duration = Duration::from_secs(2);

/// When the counts of ballots begin, in microseconds since 1970: 2020. There is room for the
/// milliseconds of 34 years.
const COUNT_START: u64 = 1_577_836_800_000_000;

/// How often another client may come first before a client takes its turn in the queue.
const OUTBID_MAX: u32 = 1;

/// The longest pause while it is to be found out whether a change was made.
const PAUSE_URGENT: Duration = Duration::from_micros(250);

/// How often the marks of the nodes are looked at in one change, without finding another epoch.
const LOOKS_MAX: u32 = 3;

/// A change that a thread makes of a draft.
type Body<'a> = &'a mut dyn FnMut(&mut Draft);

type Begin = fn(Proposer) -> Change;

impl Register {
    /// Makes a change, and returns what `body` has returned for the draft that counts: there may be
    /// several, and it need not be the last one. Returns also how often the nodes were asked.
    pub(super) fn run<T>(
        &self,
        body: impl FnMut(&mut Draft) -> Result<T, RegisterError>,
    ) -> Result<(T, u32), RegisterError> {
        self.run_with(&self.client.core.registers.slot(&self.keys.value), Change::new, body)
    }

    /// The same for the change that creates a register which nobody else gives a value to before:
    /// see [`Change::create`].
    pub(super) fn run_first<T>(
        &self,
        body: impl FnMut(&mut Draft) -> Result<T, RegisterError>,
    ) -> Result<(T, u32), RegisterError> {
        self.run_with(&self.client.core.registers.slot(&self.keys.value), Change::create, body)
    }

    /// The same, without the threads of this client that change the register, and without waiting
    /// for them.
    pub(super) fn run_alone<T>(
        &self,
        body: impl FnMut(&mut Draft) -> Result<T, RegisterError>,
    ) -> Result<(T, u32), RegisterError> {
        self.run_with(&Arc::default(), Change::new, body)
    }

    fn run_with<T>(
        &self,
        slot: &Arc<Slot>,
        begin: Begin,
        mut body: impl FnMut(&mut Draft) -> Result<T, RegisterError>,
    ) -> Result<(T, u32), RegisterError> {
        let mut drafts: Vec<(Ballot, Result<T, RegisterError>)> = Vec::new();
        let made = self.run_all(slot, begin, &mut |draft| {
            let result = Changing::call(|| body(draft));
            drafts.push((draft.ballot(), result));
        })?;
        let found = drafts.into_iter().find(|(ballot, _)| *ballot == made.ballot);
        let result = found.map_or(Err(RegisterError::Unknown), |(_, result)| result)?;
        Ok((result, made.rounds))
    }

    /// Makes a change: alone, together with those of other threads, or by one of them.
    fn run_all(
        &self,
        slot: &Arc<Slot>,
        begin: Begin,
        body: Body<'_>,
    ) -> Result<Made, RegisterError> {
        Changing::check()?;
        let redlock = self.client.core.register_nodes()?;
        match slot.join() {
            Role::Leader(leader) => self.lead(redlock, &leader, begin, body),
            Role::Follower(seat) => match follow(&seat, body) {
                Some(result) => result,
                None => self.lead(redlock, &slot.lead(), begin, body),
            },
        }
    }

    fn lead(
        &self,
        redlock: &Redlock,
        leader: &Leader,
        begin: Begin,
        body: Body<'_>,
    ) -> Result<Made, RegisterError> {
        let result = self.make(redlock, leader, begin, body);
        if let Err(RegisterError::NoQuorum { error, .. }) = &result {
            // The threads that wait would find the same, each after as long a time.
            let (error, may_have_happened) = (error.clone(), false);
            leader.dismiss(&RegisterError::NoQuorum { error, may_have_happened });
        }
        result
    }

    /// Makes the change together with those of the threads that wait.
    fn make(
        &self,
        redlock: &Redlock,
        leader: &Leader,
        begin: Begin,
        body: Body<'_>,
    ) -> Result<Made, RegisterError> {
        let core = &self.client.core;
        let group = core.group(redlock)?;
        let entropy = draw().ok_or(RegisterError::NoEntropy)?;
        let mut proposer = leader.take_proposer().unwrap_or_else(|| Proposer::new(entropy.token));
        proposer.enter(&group);
        proposer.count_from(clock::wall_micros().saturating_sub(COUNT_START) / 1000);
        let (base, cap) = (core.rules.retry_base, core.rules.retry_cap);
        let backoff = Backoff::new(base, cap, Jitter::from_seed(entropy.seed));
        let mut running = Running {
            register: self,
            redlock,
            group,
            change: begin(proposer),
            has_prepared_last: false,
            asked: None,
            rounds: 0,
            looks: 0,
            backoff,
            has_queued: false,
            turn: None,
        };
        let mut followers = None;
        let end = running.run(|draft| {
            body(draft);
            // Not before: if that panics, the threads that wait go on without this one.
            let followers = followers.get_or_insert_with(|| leader.followers());
            for follower in followers {
                follower.change(draft);
            }
        });
        let result = running.result(end);
        leader.keep(running.change.into_proposer());
        for follower in followers.into_iter().flatten() {
            follower.end(result.clone());
        }
        result
    }
}

/// Has another thread make the change. `None` if that one left it to this one.
fn follow(seat: &Seat, body: Body<'_>) -> Option<Result<Made, RegisterError>> {
    loop {
        match seat.receive() {
            Message::Draft(mut draft) => {
                body(&mut draft);
                seat.give_back(draft);
            }
            Message::End(result) => return Some(result),
            Message::Lead => return None,
        }
    }
}

struct Running<'a> {
    register: &'a Register,
    redlock: &'a Redlock,
    group: Group,
    change: Change,
    /// Was nothing accepted after the last prepare?
    has_prepared_last: bool,
    asked: Option<Asked>,
    rounds: u32,
    looks: u32,
    backoff: Backoff,
    /// Has it asked for its turn? It does so once: without one it goes on as before.
    has_queued: bool,
    turn: Option<LockGuard>,
}

impl Running<'_> {
    fn run(&mut self, mut draw_up: impl FnMut(&mut Draft)) -> ChangeEnd {
        let core = &self.register.client.core;
        loop {
            match self.change.poll() {
                ChangeStep::Send(command) => {
                    self.has_prepared_last = matches!(command, RegisterCommand::Prepare(_));
                    let asked = core.ask(self.redlock, &self.register.keys, &self.group, command);
                    self.rounds += 1;
                    let is_known = asked.replies.are_enough();
                    if is_known || !self.look_again(&asked) {
                        self.change.handle(&asked.replies);
                    }
                    self.asked = Some(asked);
                }
                ChangeStep::Draft(mut draft) => {
                    draw_up(&mut draft);
                    self.change.propose(draft);
                }
                ChangeStep::Preempted(times) => {
                    self.pause(times);
                    self.change.try_again();
                }
                ChangeStep::Done(end) => return end,
            }
        }
    }

    /// Looks at the marks of the nodes, if some of them have no vote. Returns whether the change
    /// has begun again for that.
    fn look_again(&mut self, asked: &Asked) -> bool {
        if !asked.replies.lack_votes() || self.looks == LOOKS_MAX {
            return false;
        }
        let core = &self.register.client.core;
        let learnt = core.follow(self.redlock, &asked.replies, &self.group);
        let Ok(group) = learnt else { return false };
        self.looks += u32::from(group == self.group);
        self.change.enter(&group);
        self.group = group;
        true
    }

    /// Another client came first. If that happens again and again, this one takes its turn.
    fn pause(&mut self, times: u32) {
        if self.change.may_be_made() {
            return thread::sleep(self.backoff.next_delay_within(Duration::ZERO, PAUSE_URGENT));
        }
        if times < OUTBID_MAX || self.has_queued {
            return thread::sleep(self.backoff.next_delay(Duration::ZERO));
        }
        let client = &self.register.client;
        let first: Arc<[u8]> = [&self.register.lock, TURN].concat().into();
        let keys = Ok(LockKeys { first, more: Vec::new() });
        let ttl = TURN_TTL.min(client.core.max_ttl);
        self.has_queued = true;
        let request = LockRequest::new(client, keys).ttl(ttl).min_validity(Duration::ZERO);
        self.turn = request.try_lock_for(ttl).ok().flatten();
    }

    fn result(&mut self, end: ChangeEnd) -> Result<Made, RegisterError> {
        match (end, self.asked.take()) {
            (ChangeEnd::Made(ballot) | ChangeEnd::Unchanged(ballot), asked) => {
                if self.has_prepared_last {
                    // There is no value, and the promises of the nodes are of no use.
                    let keys = &self.register.keys;
                    self.register.client.core.forget_promises(self.redlock, keys, &self.group);
                }
                if asked.is_some_and(|asked| asked.replies.lack_votes()) {
                    self.register.client.core.renew_votes(self.redlock);
                }
                Ok(Made { ballot, rounds: self.rounds })
            }
            (ChangeEnd::NoQuorum { may_have_happened }, Some(asked)) => {
                Err(asked.no_quorum(may_have_happened))
            }
            (ChangeEnd::Invalid(value), asked) => {
                let (url, format) = (None, value.format);
                let named = asked.and_then(|asked| asked.invalid());
                Err(named.unwrap_or(RegisterError::OtherFormat { url, format }))
            }
            (ChangeEnd::Exhausted, _) => Err(RegisterError::Exhausted),
            (ChangeEnd::Unknown | ChangeEnd::NoQuorum { .. }, _) => Err(RegisterError::Unknown),
        }
    }
}

// Notes that a thread is in the middle of a change, where it must not use a register.

thread_local! {
    /// Does this thread call a function that makes a change?
    static CHANGING: Cell<bool> = const { Cell::new(false) };
}

/// Ends the call of such a function, also if it panics.
pub(super) struct Changing;

impl Changing {
    pub(super) fn call<T>(body: impl FnOnce() -> T) -> T {
        CHANGING.set(true);
        let _ends = Self;
        body()
    }

    /// Refuses to use a register there: the thread would wait for itself.
    pub(super) fn check() -> Result<(), RegisterError> {
        if CHANGING.get() { Err(RegisterError::WithinChange) } else { Ok(()) }
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        CHANGING.set(false);
    }
}

// Waiting until a register has changed.

/// The pauses between two looks while not all nodes tell of changes: the first one, and any.
const LOOK_FIRST: Duration = Duration::from_millis(2);
const LOOK_LAST: Duration = Duration::from_millis(250);

/// How many waits in a row may end at once for nothing before looks have pauses again.
const EARLY_MAX: u32 = 3;

/// The pause between two looks while all do.
const LOOK_WATCHED: Duration = Duration::from_secs(1);

impl Register {
    /// Waits until the version is another than `seen` (`None`: until there is a value), for up to
    /// `wait`, and returns the value that there is then.
    ///
    /// The nodes tell this client of a change (`CLIENT TRACKING`, from Redis 6 on), and it looks
    /// once a second. While one of them is down, cannot tell, or may not be asked to, it looks up
    /// to four times a second. Errors are those of [`read`](Self::read).
    pub fn wait_for_change(
        &self,
        seen: Option<Version>,
        wait: Duration,
    ) -> Result<Option<Value>, RegisterError> {
        let redlock = self.client.core.register_nodes()?;
        let waiter = draw().ok_or(RegisterError::NoEntropy)?.token;
        let watching = Watching { core: &self.client.core, redlock, waiter };
        let (until, mut unwatched, mut early) = (clock::now().after(wait), LOOK_FIRST, 0);
        loop {
            let look = self.report_read(|| self.look(Some(waiter)))?;
            if self.client.core.is_known_forked() {
                // By a callback that was told of the look: the connections are the parent's.
                return Err(RegisterError::OtherProcess);
            }
            let now = clock::now();
            if look.value.as_ref().map(Value::version) != seen || now >= until {
                return Ok(look.value);
            }
            let pause = if look.is_watched { LOOK_WATCHED } else { unwatched };
            let pause = pause.min(until.since(now));
            if self.client.core.cancellation.token().is_cancelled() {
                // Waits for what the nodes tell end at once then, and this call is none of those
                // that are cancelled.
                thread::sleep(pause);
            } else {
                watching.wait(&self.keys.value, pause);
                let is_early = clock::now().since(now) < LOOK_FIRST;
                early = if is_early { early + 1 } else { 0 };
                if early > EARLY_MAX {
                    // A connection that is lost again and again, or a server that forgets at once
                    // whom to tell.
                    thread::sleep(unwatched.min(until.since(now)));
                }
            }
            unwatched = (unwatched * 2).min(LOOK_LAST);
        }
    }
}

/// What a look at a register has shown.
pub(super) struct Look {
    pub(super) value: Option<Value>,
    /// Do all nodes tell the watcher when that changes?
    pub(super) is_watched: bool,
}

/// A call that the nodes tell of changes. When it is dropped, it is forgotten.
struct Watching<'a> {
    core: &'a Core,
    redlock: &'a Redlock,
    waiter: Token,
}

impl Watching<'_> {
    /// Waits until a majority has told of a change since the last look, or for as long.
    fn wait(&self, key: &Arc<[u8]>, pause: Duration) {
        let (key, until) = (Arc::clone(key), clock::now().after(pause));
        let wait = QueueWait { key, waiter: self.waiter, watches: false, until };
        self.redlock.net.wait(wait);
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        // In a child that a callback has forked, the connections are the parent's.
        if !self.core.is_known_forked() {
            self.redlock.net.leave(self.waiter);
        }
    }
}
