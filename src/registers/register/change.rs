//! The loop that runs a change: over the rounds, the threads that take part, and other clients that
//! change the register at the same time.

use super::Register;
use super::nodes::{RegisterNodes, RegisterRound};
use crate::backend::{CombinedRegister, Combiner, CombinerMessage, CombiningRole, Committed};
use crate::clock;
use crate::engine::{Backoff, Jitter, Rules};
use crate::entropy::draw;
use crate::error::RegisterError;
use crate::guard::LockGuard;
use redlatch_registers::{
    Ballot, Change, ChangeEnd, ChangeStep, Draft, Group, Proposer, RegisterCommand, Replies,
};
use std::cell::Cell;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How the key of a lock ends in whose queue those stand who change a register at the same time.
const TURN: &[u8] = b":redlatch:turn";

/// For how long a client has its turn, and for how long it waits for it at most. Whether a change
/// is made does not depend on it.
const TURN_TTL: Duration = Duration::from_secs(2);

/// When the counts of ballots begin, in microseconds since 1970: 2020. There is room for the
/// milliseconds of 34 years.
const COUNT_START: u64 = 1_577_836_800_000_000;

/// The longest pause while it is to be found out whether a change was made.
const PAUSE_URGENT: Duration = Duration::from_micros(250);

/// How often the marks of the nodes are looked at in one change, without finding another epoch.
const LOOKS_MAX: u32 = 3;

impl Register {
    /// Makes a change, and returns what `body` has returned for the draft that counts: there may be
    /// several, and it need not be the last one. Returns also how often the nodes were asked.
    pub(super) fn run<T>(
        &self,
        body: impl FnMut(&mut Draft) -> Result<T, RegisterError>,
    ) -> Result<(T, u32), RegisterError> {
        let memory = self.client.core.register_nodes()?.quorum.memory();
        self.run_with(&memory.register(&self.keys.value), Change::new, body)
    }

    /// The same, without the threads of this client that change the register, and without waiting
    /// for them.
    pub(super) fn run_alone<T>(
        &self,
        body: impl FnMut(&mut Draft) -> Result<T, RegisterError>,
    ) -> Result<(T, u32), RegisterError> {
        self.run_with(&Arc::default(), Change::new, body)
    }

    pub(super) fn run_with<T>(
        &self,
        combined: &Arc<CombinedRegister>,
        begin: fn(Proposer) -> Change,
        mut body: impl FnMut(&mut Draft) -> Result<T, RegisterError>,
    ) -> Result<(T, u32), RegisterError> {
        let mut drafts: Vec<(Ballot, Result<T, RegisterError>)> = Vec::new();
        let committed = self.take_part(combined, begin, &mut |draft| {
            let result = Changing::call(|| body(draft));
            drafts.push((draft.ballot(), result));
        })?;
        let found = drafts
            .into_iter()
            .find(|(ballot, _)| *ballot == committed.ballot);
        let result = found.map_or(Err(RegisterError::Unknown), |(_, result)| result)?;
        Ok((result, committed.rounds))
    }

    /// Makes a change: alone, together with those of other threads, or by one of them.
    fn take_part(
        &self,
        combined: &Arc<CombinedRegister>,
        begin: fn(Proposer) -> Change,
        body: &mut dyn FnMut(&mut Draft),
    ) -> Result<Committed, RegisterError> {
        Changing::check()?;
        let nodes = self.client.core.register_nodes()?;
        let messages = match combined.join() {
            CombiningRole::Combine(combiner) => return self.combine(nodes, &combiner, begin, body),
            CombiningRole::Contribute(messages) => messages,
        };
        loop {
            match messages.recv() {
                Ok(CombinerMessage::Change(mut draft, back)) => {
                    body(&mut draft);
                    // A combiner that is gone has no use for it.
                    let _ = back.send(draft);
                }
                Ok(CombinerMessage::End(result)) => return result,
                Ok(CombinerMessage::Combine(combiner)) => {
                    return self.combine(nodes, &combiner, begin, body);
                }
                // The combiner has panicked: its change may have been sent.
                Err(_) => return Err(RegisterError::Unknown),
            }
        }
    }

    /// Makes the change together with those of the threads that wait.
    fn combine(
        &self,
        nodes: RegisterNodes<'_>,
        combiner: &Combiner,
        begin: fn(Proposer) -> Change,
        body: &mut dyn FnMut(&mut Draft),
    ) -> Result<Committed, RegisterError> {
        let mut contributions = None;
        let result = self.run_change(nodes, combiner, begin, &mut |draft: &mut Draft| {
            body(draft);
            // Not before: if that panics, the threads that wait go on without this one.
            let contributions = contributions.get_or_insert_with(|| combiner.contributions());
            contributions.iter().for_each(|it| it.change(draft));
        });
        for contribution in contributions.into_iter().flatten() {
            contribution.end(result.clone());
        }
        if let Err(RegisterError::NoQuorum { error, .. }) = &result {
            // The threads that wait would find the same, each after as long a time.
            let error = error.clone();
            let may_have_happened = false;
            combiner.dismiss(&RegisterError::NoQuorum {
                error,
                may_have_happened,
            });
        }
        result
    }

    fn run_change(
        &self,
        nodes: RegisterNodes<'_>,
        combiner: &Combiner,
        begin: fn(Proposer) -> Change,
        draw_up: &mut dyn FnMut(&mut Draft),
    ) -> Result<Committed, RegisterError> {
        let group = nodes.group()?;
        let entropy = draw().ok_or(RegisterError::NoEntropy)?;
        let mut proposer = combiner
            .take_proposer()
            .unwrap_or_else(|| Proposer::new(entropy.token));
        proposer.enter(&group);
        proposer.count_from(clock::wall_micros().saturating_sub(COUNT_START) / 1000);
        let Rules {
            retry_base,
            retry_cap,
            ..
        } = *self.client.core.rules;
        let mut running = RunningChange {
            register: self,
            nodes,
            group,
            change: begin(proposer),
            has_prepared_last: false,
            last_round: None,
            rounds: 0,
            looks: 0,
            backoff: Backoff::new(retry_base, retry_cap, Jitter::from_seed(entropy.seed)),
            has_queued: false,
            turn: None,
        };
        let end = running.run(draw_up);
        let result = running.result(end);
        combiner.keep(running.change.into_proposer());
        result
    }
}

struct RunningChange<'a> {
    register: &'a Register,
    nodes: RegisterNodes<'a>,
    group: Group,
    change: Change,
    /// Was nothing accepted after the last prepare?
    has_prepared_last: bool,
    last_round: Option<RegisterRound>,
    rounds: u32,
    looks: u32,
    backoff: Backoff,
    /// Has it asked for its turn? It does so once: without one it goes on as before.
    has_queued: bool,
    turn: Option<LockGuard>,
}

impl RunningChange<'_> {
    fn run(&mut self, draw_up: &mut dyn FnMut(&mut Draft)) -> ChangeEnd {
        loop {
            match self.change.poll() {
                ChangeStep::Send(command) => {
                    self.has_prepared_last = matches!(command, RegisterCommand::Prepare(_));
                    let round = self.nodes.ask(&self.register.keys, &self.group, command);
                    self.rounds += 1;
                    if round.replies.are_enough() || !self.look_again(&round.replies) {
                        self.change.handle(&round.replies);
                    }
                    self.last_round = Some(round);
                }
                ChangeStep::Draft(mut draft) => {
                    draw_up(&mut draft);
                    self.change.propose(draft);
                }
                ChangeStep::Preempted(_) => {
                    self.pause();
                    self.change.try_again();
                }
                ChangeStep::Done(end) => return end,
            }
        }
    }

    /// Looks at the marks of the nodes, if some of them have no vote. Returns whether the change
    /// has begun again for that.
    fn look_again(&mut self, replies: &Replies) -> bool {
        if !replies.lack_votes() || self.looks == LOOKS_MAX {
            return false;
        }
        let Ok(group) = self.nodes.follow(replies, &self.group) else {
            return false;
        };
        self.looks += u32::from(group == self.group);
        self.change.enter(&group);
        self.group = group;
        true
    }

    /// Another client came first: this one takes its turn, if it has not done so.
    fn pause(&mut self) {
        if self.change.may_be_made() {
            return thread::sleep(self.backoff.next_delay_within(Duration::ZERO, PAUSE_URGENT));
        }
        if self.has_queued {
            return thread::sleep(self.backoff.next_delay(Duration::ZERO));
        }
        let client = &self.register.client;
        let turn = [&self.register.lock, TURN].concat();
        let ttl = TURN_TTL.min(client.core.max_ttl);
        self.has_queued = true;
        let mut request = client
            .request_key(turn.into())
            .ttl(ttl)
            .min_validity(Duration::ZERO);
        request.settings.counts_in_quarantine = true;
        self.turn = request.try_lock_for(ttl).ok().flatten();
    }

    fn result(&mut self, end: ChangeEnd) -> Result<Committed, RegisterError> {
        match (end, self.last_round.take()) {
            (ChangeEnd::Committed(ballot) | ChangeEnd::Unchanged(ballot), round) => {
                if self.has_prepared_last {
                    // There is no value, and the promises of the nodes are of no use.
                    self.nodes.forget_promises(&self.register.keys, &self.group);
                }
                if round.is_some_and(|round| round.replies.lack_votes()) {
                    self.nodes.renew_votes();
                }
                Ok(Committed {
                    ballot,
                    rounds: self.rounds,
                })
            }
            (ChangeEnd::NoQuorum { may_have_happened }, Some(round)) => {
                Err(round.no_quorum(may_have_happened))
            }
            (ChangeEnd::Invalid(value), round) => {
                let url = None;
                let format = value.format;
                let named = round.and_then(|round| round.invalid());
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
        if CHANGING.get() {
            Err(RegisterError::WithinChange)
        } else {
            Ok(())
        }
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        CHANGING.set(false);
    }
}
