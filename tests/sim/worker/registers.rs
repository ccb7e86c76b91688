//! What a thread does with registers: one call after another.

use super::operation::Running;
use super::{State, Worker};
use crate::client::Client;
use crate::context::Context;
use crate::queue::Event;
use crate::register::{Call, Id, Outcome, begin};
use crate::registers::transaction::Participation;
use std::time::Duration;

/// The largest fencing token of a history.
const TOKEN_MAX: u64 = 40;

/// How many transactions a history has at most.
const TRANSACTIONS_MAX: usize = 12;

impl Worker {
    pub(super) fn uses_register(&self) -> bool {
        matches!(self.operation, Some(Running::Register(_)))
    }

    /// Begins a call, if there is one to make.
    pub(super) fn use_register(&mut self, client: &mut Client, context: &mut Context) -> bool {
        let part = self.choose_part(client, context);
        let chosen = match context.has_faults_ended {
            _ if part.is_some() => part.map(|part| (0, Call::Participate(part))),
            true => context.last_calls.pop_front(),
            false => Some(self.choose_call(context)),
        };
        let Some((register, call)) = chosen else {
            return false;
        };
        let id = context
            .checker
            .registers
            .called(register, call, context.queue.now());
        context.trace(|| {
            format!(
                "client {:?}.{}: {id} is {call:?} of {register}",
                client.name, self.index
            )
        });
        let task = begin(&client.registers, self.index, register, call, id);
        self.start(client, context, Running::Register(task), None);
        self.advance(client, context);
        true
    }

    /// What the first thread of a side does next.
    fn choose_part(&self, client: &Client, context: &mut Context) -> Option<Participation> {
        let Context {
            options,
            random,
            checker,
            ..
        } = context;
        let ledger = checker.transactions.borrow();
        let is_side = self.index == 0 && options.registers.as_ref()?.has_transactions;
        if !is_side || context.has_faults_ended && !ledger.awaits(client.name.0) {
            return None;
        }
        if context.has_faults_ended || !self.has_recovered {
            return Some(Participation::Recover);
        }
        let begun = ledger.joinable();
        let may_begin = ledger.len() < TRANSACTIONS_MAX;
        let number = match ledger.next(client.name.0) {
            // A late request.
            _ if !begun.is_empty() && random.chance(50) => random.pick(&begun),
            Some(number) => number,
            None if may_begin && random.chance(150) => {
                let refuses = random.chance(100);
                return Some(Participation::Whole { refuses });
            }
            None => return (may_begin && random.chance(300)).then_some(Participation::Begin),
        };
        let patience = Duration::from_millis(random.pick(&[0, 300, 1_000, 1_000]));
        Some(Participation::Join {
            number,
            patience,
            refuses: random.chance(50),
        })
    }

    fn choose_call(&self, context: &mut Context) -> (u64, Call) {
        let Context {
            options, random, ..
        } = context;
        let register = random.below(options.resources);
        let Some(registers) = &options.registers else {
            unreachable!("they are in use")
        };
        let call = if random.chance(registers.repair_permille) {
            Call::Repair
        } else if random.chance(registers.read_permille) {
            Call::Read
        } else if random.chance(registers.delete_permille) {
            Call::Delete
        } else if random.chance(registers.set_permille) {
            Call::Set(self.versions.get(&register).copied().flatten())
        } else if random.chance(registers.fenced_permille) {
            Call::Fenced(random.between(1, TOKEN_MAX))
        } else {
            Call::Append
        };
        (register, call)
    }

    /// It waits for what other threads are to do for it: they do it now. Returns whether there are
    /// such threads.
    pub(super) fn let_others_change(&self, client: &mut Client) -> bool {
        let asked = client.registers.asked_by(self.index);
        for worker in &asked {
            if let Some(operation) = &mut client.workers[*worker].operation {
                operation.poll();
            }
        }
        !asked.is_empty()
    }

    /// After a step of its call: sends what nobody waits for, and wakes the threads for which it
    /// has made a change.
    pub(super) fn after_step(&mut self, client: &mut Client, context: &mut Context) {
        match &mut self.operation {
            Some(Running::Register(task)) => {
                for request in task.posts() {
                    client.post(context, request);
                }
            }
            Some(Running::Acquire(task)) => {
                for request in task.posts() {
                    self.undo(client, context, request);
                }
                return;
            }
            _ => return,
        }
        for worker in client.registers.woken() {
            let delay = context.network.scheduling_delay(&mut context.random);
            let (client, life) = client.name;
            context.queue.after(
                delay,
                Event::Work {
                    client,
                    life,
                    worker,
                },
            );
        }
    }

    pub(super) fn register_returned(
        &mut self,
        client: &Client,
        context: &mut Context,
        id: Id,
        outcome: Outcome,
    ) {
        context.trace(|| {
            format!(
                "client {:?}.{}: {id} ends: {outcome:?}",
                client.name, self.index
            )
        });
        let operation = context.checker.registers.of(id);
        let register = operation.register;
        let call = operation.call;
        let seen = match &outcome {
            Outcome::Is(seen) => Some(seen.as_ref().map(|seen| seen.version)),
            Outcome::Made { version, .. } => Some(*version),
            _ => None,
        };
        self.versions
            .extend(seen.map(|version| (register, version)));
        self.has_recovered |=
            call == Call::Participate(Participation::Recover) && outcome == Outcome::Done;
        context.tally.registers.count(call, &outcome);
        let is_failed = matches!(outcome, Outcome::Failed | Outcome::Unsure);
        if context.has_faults_ended && is_failed && call == Call::Read {
            context.last_calls.push_back((register, call));
        }
        context
            .checker
            .registers
            .returned(id, outcome, context.queue.now());
        self.state = State::Idle;
        self.rest(client, context);
    }
}
