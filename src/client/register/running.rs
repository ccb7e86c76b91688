//! The loop that runs a change: over the rounds, the threads that take part, and other clients that
//! change the register at the same time.

use super::Register;
use super::changing::Changing;
use crate::client::request::{LockKeys, LockRequest};
use crate::clock;
use crate::core::registers::{Asked, Leader, Made, Message, Role, Seat, Slot};
use crate::core::{Redlock, draw};
use crate::engine::{Backoff, Jitter, TURN};
use crate::error::RegisterError;
use crate::guard::LockGuard;
use crate::registers::{
    Ballot, Change, ChangeEnd, ChangeStep, Draft, Group, Proposer, RegisterCommand,
};
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

/// How a change begins.
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

/// A change on its way.
struct Running<'a> {
    register: &'a Register,
    redlock: &'a Redlock,
    group: Group,
    change: Change,
    /// Was nothing accepted after the last prepare?
    has_prepared_last: bool,
    /// The answers of the last round.
    asked: Option<Asked>,
    /// How often the nodes were asked.
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
                ChangeStep::Outbid(times) => {
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
                    self.register.client.core.forget_promises(keys, &self.group);
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
