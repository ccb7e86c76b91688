//! The loop that runs a change: over the rounds, the threads that take part, and other clients that
//! change the register at the same time.

use super::Register;
use super::caller::Caller;
use super::nodes::{RegisterNodes, RegisterRound};
use super::turn::Turn;
use crate::backend::{
    CombinedRegister, Combiner, CombinerMessage, CombiningRole, Committed, Contribution,
};
use crate::clock;
use crate::engine::{Backoff, Jitter, Rules};
use crate::entropy::draw;
use crate::error::RegisterError;
use redlatch_registers::{
    Ballot, Change, ChangeEnd, ChangeStep, Draft, Group, Proposer, RegisterCommand, Replies,
};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// When the counts of ballots begin, in microseconds since 1970: 2020. There is room for the
/// milliseconds of 34 years.
const COUNT_START: u64 = 1_577_836_800_000_000;

/// The longest pause while it is to be found out whether a change was made.
const PAUSE_URGENT: Duration = Duration::from_micros(250);

/// How often the marks of the nodes are looked at in one change, without finding another epoch.
const LOOKS_MAX: u32 = 3;

impl Register {
    /// What the threads of this client share that change this register.
    pub(super) fn combined(&self) -> Result<Arc<CombinedRegister>, RegisterError> {
        Ok(self.nodes()?.caller.memory().register(&self.keys.value))
    }

    /// Makes a change without the threads of this client that change the register, and without
    /// waiting for them: see [`run_with`](Self::run_with).
    pub(super) async fn run_alone<T>(
        &self,
        body: impl FnMut(&mut Draft) -> Result<T, RegisterError>,
    ) -> Result<(T, u32), RegisterError> {
        self.run_with(&Arc::default(), Change::new, body).await
    }

    /// Makes a change, and returns what `body` has returned for the draft that counts: there may be
    /// several, and it need not be the last one. Returns also how often the nodes were asked.
    ///
    /// Each `async` function within another is one more copy of what all of them keep, as it is
    /// called. So there are few, for a change of a thread that blocks.
    pub(super) async fn run_with<T>(
        &self,
        combined: &Arc<CombinedRegister>,
        begin: fn(Proposer) -> Change,
        mut body: impl FnMut(&mut Draft) -> Result<T, RegisterError>,
    ) -> Result<(T, u32), RegisterError> {
        let mut drafts: Vec<(Ballot, Result<T, RegisterError>)> = Vec::new();
        let mut note_draft = |draft: &mut Draft| {
            let result = Changing::call(|| body(draft));
            drafts.push((draft.ballot(), result));
        };
        let committed = self.take_part(combined, begin, &mut note_draft).await?;
        let found = drafts
            .into_iter()
            .find(|(ballot, _)| *ballot == committed.ballot);
        let result = found.map_or(Err(RegisterError::Unknown), |(_, result)| result)?;
        Ok((result, committed.rounds))
    }

    /// Makes a change: alone, together with those of other threads, or by one of them.
    async fn take_part(
        &self,
        combined: &Arc<CombinedRegister>,
        begin: fn(Proposer) -> Change,
        body: &mut dyn FnMut(&mut Draft),
    ) -> Result<Committed, RegisterError> {
        Changing::check()?;
        let nodes = self.nodes()?;
        let combiner = match combined.join() {
            CombiningRole::Combine(combiner) => combiner,
            CombiningRole::Contribute(messages) => loop {
                match nodes.caller.receive(&messages).await {
                    Ok(CombinerMessage::Change(mut draft, back)) => {
                        body(&mut draft);
                        // A combiner that is gone has no use for it.
                        let _ = back.send(draft);
                    }
                    Ok(CombinerMessage::End(result)) => return result,
                    Ok(CombinerMessage::Combine(combiner)) => break combiner,
                    // The combiner has panicked: its change may have been sent.
                    Err(_) => return Err(RegisterError::Unknown),
                }
            },
        };
        let mut changes = CombinedChanges {
            body,
            combiner: &combiner,
            contributions: None,
        };
        let result = self.run_change(nodes, begin, &mut changes).await;
        for contribution in changes.contributions.into_iter().flatten() {
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

    async fn run_change(
        &self,
        nodes: RegisterNodes<'_>,
        begin: fn(Proposer) -> Change,
        changes: &mut CombinedChanges<'_>,
    ) -> Result<Committed, RegisterError> {
        let group = nodes.group().await?;
        let entropy = draw().ok_or(RegisterError::NoEntropy)?;
        let mut proposer = changes
            .combiner
            .take_proposer()
            .unwrap_or_else(|| Proposer::new(entropy.token));
        proposer.enter(&group);
        proposer.count_from(clock::wall_micros().saturating_sub(COUNT_START) / 1000);
        let Rules {
            retry_base,
            retry_cap,
            ..
        } = *nodes.core.rules;
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
        let end = running.run(changes).await;
        let result = running.result(end).await;
        changes.combiner.keep(running.change.into_proposer());
        result
    }
}

/// The changes that are made as one: the combiner's own, and from its first draft on those of the
/// threads that wait.
struct CombinedChanges<'a> {
    body: &'a mut dyn FnMut(&mut Draft),
    combiner: &'a Combiner,
    /// `None` before the first draft.
    contributions: Option<Vec<Contribution>>,
}

impl CombinedChanges<'_> {
    async fn make(&mut self, draft: &mut Draft, caller: Caller<'_>) {
        (self.body)(draft);
        // Not before: if that panics, the threads that wait go on without this one.
        let contributions = self
            .contributions
            .get_or_insert_with(|| self.combiner.contributions());
        for contribution in contributions {
            let changed = contribution.begin_change(draft);
            // A thread that panics makes none.
            if let Ok(changed) = caller.receive(&changed).await {
                *draft = changed;
            }
        }
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
    turn: Option<Turn>,
}

impl RunningChange<'_> {
    async fn run(&mut self, changes: &mut CombinedChanges<'_>) -> ChangeEnd {
        loop {
            match self.change.poll() {
                ChangeStep::Send(command) => {
                    self.has_prepared_last = matches!(command, RegisterCommand::Prepare(_));
                    let asked = self.nodes.ask(&self.register.keys, &self.group, command);
                    let round = asked.await;
                    self.rounds += 1;
                    if round.replies.are_enough() || !self.look_again(&round.replies).await {
                        self.change.handle(&round.replies);
                    }
                    self.last_round = Some(round);
                }
                ChangeStep::Draft(mut draft) => {
                    changes.make(&mut draft, self.nodes.caller).await;
                    self.change.propose(draft);
                }
                ChangeStep::Preempted(_) => {
                    self.pause().await;
                    self.change.try_again();
                }
                ChangeStep::Done(end) => return end,
            }
        }
    }

    /// Looks at the marks of the nodes, if some of them have no vote. Returns whether the change
    /// has begun again for that.
    async fn look_again(&mut self, replies: &Replies) -> bool {
        if !replies.lack_votes() || self.looks == LOOKS_MAX {
            return false;
        }
        let Ok(group) = self.nodes.follow(replies, &self.group).await else {
            return false;
        };
        self.looks += u32::from(group == self.group);
        self.change.enter(&group);
        self.group = group;
        true
    }

    /// Another client came first: this one takes its turn, if it has not done so.
    async fn pause(&mut self) {
        let delay = if self.change.may_be_made() {
            self.backoff.next_delay_within(Duration::ZERO, PAUSE_URGENT)
        } else if self.has_queued {
            self.backoff.next_delay(Duration::ZERO)
        } else {
            self.has_queued = true;
            self.turn = self.register.take_turn().await;
            return;
        };
        self.nodes.caller.pause(delay).await;
    }

    async fn result(&mut self, end: ChangeEnd) -> Result<Committed, RegisterError> {
        match (end, self.last_round.take()) {
            (ChangeEnd::Committed(ballot) | ChangeEnd::Unchanged(ballot), round) => {
                if self.has_prepared_last {
                    // There is no value, and the promises of the nodes are of no use.
                    self.nodes.forget_promises(&self.register.keys, &self.group);
                }
                if round.is_some_and(|round| round.replies.lack_votes()) {
                    self.nodes.renew_votes().await;
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
