//! A thread that reads and changes registers at random, and records what it called and saw.

use super::operation::{Call, Id, Operation, Outcome, Seen, appended, from_bytes, now, to_bytes};
use redlatch::register::{Register, Value, Version};
use redlatch::{FencingToken, LockClient, RegisterError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::chance::Chance;

/// The names of the registers.
pub(crate) const REGISTERS: [&str; 2] = ["one", "two"];

/// What others see of a worker.
#[derive(Default)]
pub(crate) struct Progress {
    /// When its present operation was called. 0 if there is none.
    pub(crate) busy_since: AtomicU64,
    pub(crate) done: AtomicU64,
    /// No operation is begun any more.
    pub(crate) is_over: AtomicBool,
}

/// Is told each operation twice: when it is called, as unsure, and when it has returned.
pub(crate) type Journal = Box<dyn FnMut(&Operation) + Send>;

pub(crate) struct Worker {
    number: usize,
    registers: Vec<Register>,
    /// The last version that it has seen of each register.
    versions: Vec<Option<u64>>,
    chance: Chance,
    next_id: Id,
    journal: Journal,
    pub(crate) progress: Arc<Progress>,
    pub(crate) operations: Vec<Operation>,
}

impl Worker {
    /// The number is unique in a history.
    pub(crate) fn new(client: &LockClient, number: usize, seed: u64, journal: Journal) -> Self {
        let register = |name| client.register(name).expect("a good name");
        Self {
            number,
            registers: REGISTERS.into_iter().map(register).collect(),
            versions: vec![None; REGISTERS.len()],
            chance: Chance::new(seed.wrapping_add(number as u64 * 7_919)),
            next_id: number as u64 * 1_000_000,
            journal,
            progress: Arc::default(),
            operations: Vec::new(),
        }
    }

    /// Makes operations until it is told to end.
    pub(crate) fn run(&mut self) {
        while !self.progress.is_over.load(Ordering::SeqCst) {
            let (register, call) = self.any_call();
            let is_failed = self.make(register, call) == Outcome::Failed;
            // With a majority lost, errors come at once, and would fill the history.
            let pause = if is_failed { 5..=25 } else { 0..=3 };
            std::thread::sleep(self.chance.millis(pause));
        }
    }

    /// A read and a change of each register, which must succeed. All faults are over.
    pub(crate) fn run_to_success(&mut self) -> bool {
        (0..REGISTERS.len()).all(|register| {
            let id = self.id();
            [Call::Read, Call::Change(id)].into_iter().all(|call| {
                let outcome = self.make(register, call);
                !matches!(outcome, Outcome::Unsure | Outcome::Failed)
            })
        })
    }

    fn id(&mut self) -> Id {
        self.next_id += 1;
        self.next_id
    }

    fn any_call(&mut self) -> (usize, Call) {
        let register = self.chance.below(REGISTERS.len());
        let id = self.id();
        let call = match self.chance.below(20) {
            0..=6 => Call::Read,
            7..=12 => Call::Change(id),
            13..=15 => Call::Set {
                seen: self.versions[register],
                id,
            },
            16..=17 => {
                // Most tokens are the latest; some belong to a lock that was lost since.
                let late = if self.chance.one_in(3) {
                    self.chance.below(300) as u64
                } else {
                    0
                };
                Call::Fenced {
                    token: now() / 1_000_000 - late,
                    id,
                }
            }
            18 => Call::Set { seen: None, id },
            _ => Call::Delete,
        };
        (register, call)
    }

    /// Makes one operation, and records it.
    pub(crate) fn make(&mut self, register: usize, call: Call) -> Outcome {
        let called = now();
        let worker = self.number;
        let outcome = Outcome::Unsure;
        let mut operation = Operation {
            register,
            worker,
            called,
            returned: called,
            call,
            outcome,
        };
        (self.journal)(&operation);
        self.progress.busy_since.store(called, Ordering::SeqCst);
        let result = perform(&self.registers[register], &operation.call);
        operation.returned = now();
        self.progress.busy_since.store(0, Ordering::SeqCst);
        operation.outcome = result.unwrap_or_else(|error| match error {
            RegisterError::NoQuorum { .. } | RegisterError::Unknown => {
                if error.may_have_happened() {
                    Outcome::Unsure
                } else {
                    Outcome::Failed
                }
            }
            other => panic!("{other}: {operation:?}"),
        });
        (self.journal)(&operation);
        if !matches!(operation.outcome, Outcome::Unsure | Outcome::Failed) {
            self.progress.done.fetch_add(1, Ordering::SeqCst);
        }
        self.note_version(&operation);
        let outcome = operation.outcome.clone();
        self.operations.push(operation);
        outcome
    }

    fn note_version(&mut self, operation: &Operation) {
        let version = &mut self.versions[operation.register];
        match &operation.outcome {
            Outcome::Is(seen) => *version = seen.as_ref().map(|seen| seen.version),
            Outcome::Changed { version: new, .. } => *version = *new,
            Outcome::Set(new) => *version = Some(*new),
            _ => {}
        }
    }
}

fn seen(value: &Value) -> Seen {
    let fence = value.fence().map_or(0, FencingToken::as_u64);
    Seen {
        version: value.version().as_u64(),
        ids: from_bytes(value.bytes()),
        fence,
    }
}

fn perform(register: &Register, call: &Call) -> Result<Outcome, RegisterError> {
    let number = Version::as_u64;
    Ok(match call {
        Call::Read => Outcome::Is(register.read()?.as_ref().map(seen)),
        Call::Change(id) => {
            let changed = register.change(|before| {
                let before = before.map(|before| from_bytes(before.bytes()));
                Some(to_bytes(&appended(before.as_deref(), *id)))
            })?;
            let version = changed.version().map(number);
            Outcome::Changed {
                version,
                before: changed.before().map(seen),
            }
        }
        Call::Set { seen: version, id } => {
            let version = version.map(Version::from_u64);
            match register.compare_and_set(version, &to_bytes(&[*id]))? {
                Ok(version) => Outcome::Set(number(version)),
                Err(other) => Outcome::Is(other.as_ref().map(seen)),
            }
        }
        Call::Fenced { token, id } => {
            let token = FencingToken::try_from(*token).expect("milliseconds");
            match register.write_fenced(token, &to_bytes(&[*id]))? {
                Ok(version) => Outcome::Set(number(version)),
                Err(stale) => Outcome::Stale(stale.by().as_u64()),
            }
        }
        Call::Delete => {
            let before = register.delete()?;
            Outcome::Changed {
                version: None,
                before: before.as_ref().map(seen),
            }
        }
    })
}
