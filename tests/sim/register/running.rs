//! Reads and changes, as `src/registers/register/read.rs` and `change.rs` do. Not simulated:
//! the turns that clients take in the queue of a lock, on which nothing depends.

use super::membership::Caller;
use super::shared::{Failure, Message, Part, Slot};
use crate::mistake::Mistake;
use redlatch_protocol::engine::{Backoff, Jitter};
use redlatch_registers::{
    Accepted, Ballot, Change, ChangeEnd, ChangeStep, Draft, Group, Proposer, RegisterCommand,
    RegisterReply, Replies, Stored,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// When the counts of ballots begin, in microseconds since 1970.
const COUNT_START: u64 = 1_577_836_800_000_000;

/// The longest pause while it is to be found out whether a change was made.
const PAUSE_URGENT: Duration = Duration::from_micros(250);

/// How often the marks of the nodes are looked at in one change, without finding another epoch.
const LOOKS_MAX: u32 = 3;

impl Caller {
    /// The value that a majority agrees on.
    pub(super) async fn read(&self, name: &[u8]) -> Result<Option<Stored>, Failure> {
        let mut group = self.group().await?;
        for attempt in 0.. {
            let replies = self
                .ask(name, &group, RegisterCommand::Read { watcher: None })
                .await;
            let value = |it: &Accepted| replies.value(it.ballot);
            let agreed = replies.agreed().map(|it| it.and_then(value));
            if let Some(value) = agreed.or_else(|| self.newest(&replies)) {
                return Ok(value);
            }
            if replies.are_enough() {
                break;
            }
            if attempt > 0 || !replies.lack_votes() {
                return Err(Failure::NoQuorum {
                    may_have_happened: false,
                });
            }
            group = self.follow(&replies, &group).await?;
        }
        let read = |draft: &mut Draft| draft.current().cloned();
        self.run(&Rc::default(), name, read).await
    }

    /// Makes a change, and returns what `body` has returned for the draft that counts.
    pub(super) async fn run<T: 'static>(
        &self,
        slot: &Rc<Slot>,
        name: &[u8],
        mut body: impl FnMut(&mut Draft) -> T + 'static,
    ) -> Result<T, Failure> {
        let drafts: Rc<RefCell<Vec<(Ballot, T)>>> = Rc::default();
        let made = Rc::clone(&drafts);
        let part = Part::new(self.worker, move |draft| {
            let result = body(draft);
            made.borrow_mut().push((draft.ballot(), result));
        });
        let counts = self.run_all(slot, name, &part).await?;
        let mut drafts = drafts.borrow_mut();
        let found = drafts.iter().position(|(ballot, _)| *ballot == counts);
        found.map_or(Err(Failure::Unknown), |index| {
            Ok(drafts.swap_remove(index).1)
        })
    }

    /// Makes a change: alone, together with those of other threads, or by one of them.
    async fn run_all(
        &self,
        slot: &Rc<Slot>,
        name: &[u8],
        part: &Rc<Part>,
    ) -> Result<Ballot, Failure> {
        if !slot.join(part) {
            if let Message::End(result) = self.line.receive(|| part.take_message()).await {
                return result;
            }
        }
        let result = match self.group().await {
            Ok(group) => self.make(slot, name, part, group).await,
            Err(failure) => Err(failure),
        };
        if matches!(result, Err(Failure::NoQuorum { .. })) {
            let failure = Failure::NoQuorum {
                may_have_happened: false,
            };
            for waiting in slot.followers() {
                self.shared.send(&waiting, Message::End(Err(failure)));
            }
        }
        slot.leave(&self.shared);
        result
    }

    /// Makes the change together with those of the threads that wait.
    async fn make(
        &self,
        slot: &Slot,
        name: &[u8],
        part: &Part,
        group: Group,
    ) -> Result<Ballot, Failure> {
        let entropy = self.shared.draw();
        let mut proposer = slot
            .proposer
            .take()
            .unwrap_or_else(|| Proposer::new(entropy.token));
        proposer.enter(&group);
        proposer.count_from(self.shared.wall.get().saturating_sub(COUNT_START) / 1000);
        let rules = &self.shared.rules;
        let jitter = Jitter::from_seed(entropy.seed);
        let mut running = Running {
            caller: self,
            name,
            group,
            change: Change::new(proposer),
            has_prepared_last: false,
            asked: None,
            looks: 0,
            backoff: Backoff::new(rules.retry_base, rules.retry_cap, jitter),
        };
        let mut followers: Option<Vec<Rc<Part>>> = None;
        let draw_up = |draft: &mut Draft| {
            let followers = followers.get_or_insert_with(|| slot.followers());
            part.change(draft);
            for follower in followers {
                draft.share();
                follower.change(draft);
            }
        };
        let end = running.run(draw_up).await;
        let result = running.result(end).await;
        *slot.proposer.borrow_mut() = Some(running.change.into_proposer());
        for follower in followers.into_iter().flatten() {
            self.shared.send(&follower, Message::End(result));
        }
        result
    }

    /// The newest value of a majority that disagrees, for a mistake.
    fn newest(&self, replies: &Replies) -> Option<Option<Stored>> {
        if !self.shared.has(Mistake::NewestRead) || !replies.are_enough() {
            return None;
        }
        let accepted = replies.0.iter().flatten().filter_map(|reply| match reply {
            RegisterReply::State(accepted) => accepted.as_ref(),
            _ => None,
        });
        let newest = accepted.max_by_key(|it| it.ballot.number());
        Some(newest.and_then(|it| it.value.clone()))
    }
}

/// A change on its way.
struct Running<'a> {
    caller: &'a Caller,
    name: &'a [u8],
    group: Group,
    change: Change,
    has_prepared_last: bool,
    /// The answers of the last round.
    asked: Option<Replies>,
    looks: u32,
    backoff: Backoff,
}

impl Running<'_> {
    async fn run(&mut self, mut draw_up: impl FnMut(&mut Draft)) -> ChangeEnd {
        loop {
            match self.change.poll() {
                ChangeStep::Send(command) => {
                    self.has_prepared_last = matches!(command, RegisterCommand::Prepare(_));
                    let asked = self
                        .caller
                        .ask(self.name, &self.group, command.clone())
                        .await;
                    let is_known = asked.are_enough();
                    if is_known || !self.look_again(&asked).await {
                        self.change.handle(&asked);
                    }
                    self.err(&command, &asked);
                    self.asked = Some(asked);
                }
                ChangeStep::Draft(mut draft) => {
                    draw_up(&mut draft);
                    self.change.propose(draft);
                }
                ChangeStep::Preempted(_) => {
                    let delay = match self.change.may_be_made() {
                        true => self.backoff.next_delay_within(Duration::ZERO, PAUSE_URGENT),
                        false => self.backoff.next_delay(Duration::ZERO),
                    };
                    let until = self.caller.now().after(delay);
                    self.caller.line.sleep(until, || self.caller.now()).await;
                    self.change.try_again();
                }
                ChangeStep::Done(end) => return end,
            }
        }
    }

    /// Looks at the marks of the nodes, if some of them have no vote. Returns whether the change
    /// has begun again for that.
    async fn look_again(&mut self, asked: &Replies) -> bool {
        if !asked.lack_votes() || self.looks == LOOKS_MAX {
            return false;
        }
        let learnt = self.caller.follow(asked, &self.group).await;
        let Ok(group) = learnt else { return false };
        self.looks += u32::from(group == self.group);
        self.change.enter(&group);
        self.group = group;
        true
    }

    async fn result(&mut self, end: ChangeEnd) -> Result<Ballot, Failure> {
        match end {
            ChangeEnd::Committed(ballot) | ChangeEnd::Unchanged(ballot) => {
                if self.has_prepared_last {
                    let command = RegisterCommand::Collect(None);
                    self.caller.collect(self.name, &self.group, command);
                }
                if self.asked.as_ref().is_some_and(Replies::lack_votes) {
                    self.caller.renew_votes().await;
                }
                Ok(ballot)
            }
            ChangeEnd::NoQuorum { may_have_happened } => {
                Err(Failure::NoQuorum { may_have_happened })
            }
            ChangeEnd::Unknown => Err(Failure::Unknown),
            ChangeEnd::Exhausted => unreachable!("there are numbers enough"),
            ChangeEnd::Invalid(value) => unreachable!("a node keeps {value:?}"),
        }
    }

    /// Makes a mistake, after these answers to an accept.
    fn err(&mut self, command: &RegisterCommand, asked: &Replies) {
        let RegisterCommand::Accept { ballot, value, .. } = command else {
            return;
        };
        let shared = &self.caller.shared;
        let is_done = matches!(
            self.change.clone().poll(),
            ChangeStep::Done(ChangeEnd::Committed(_))
        );
        if shared.has(Mistake::AppliedAgain) && !is_done && asked.are_enough() {
            self.change = Change::new(self.change.clone().into_proposer());
        }
        if shared.has(Mistake::CollectedAtMajority) && is_done && value.is_empty() {
            let command = RegisterCommand::Collect(Some(*ballot));
            self.caller.collect(self.name, &self.group, command);
        }
    }
}
