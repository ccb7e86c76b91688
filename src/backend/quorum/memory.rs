//! What a client remembers of the registers that it uses: the group of nodes, which of them were
//! reported to vote, and for each register the ballot that a majority has promised it.
//!
//! Threads that change a register at once are combined: one of them, the combiner, has each of the
//! others make its change of the draft, one after another, and sends the result as one.

use crate::clock::Time;
use crate::engine::NodeSet;
use crate::error::RegisterError;
use crossbeam_channel::{Receiver, Sender, bounded};
use redlatch_registers::transaction::{Record, TransactionId};
use redlatch_registers::{Ballot, COMBINED_MAX, Draft, Epoch, Proposer};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many registers are remembered. Those that are in use are, however many.
const REMEMBERED_MAX: usize = 1024;

/// How many transactions are remembered that were begun and not joined.
const BEGUN_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct RegisterMemory {
    /// The latest known epoch of the group, and when it was looked at.
    group: Mutex<Option<(Epoch, Time)>>,
    reported: Mutex<ReportedVotes>,
    registers: Mutex<HashMap<Arc<[u8]>, Arc<CombinedRegister>>>,
    /// The transactions that this client has begun, oldest first.
    begun: Mutex<VecDeque<BegunTransaction>>,
}

/// A transaction that this client has begun, which some of its sides have not joined here.
#[derive(Debug)]
struct BegunTransaction {
    id: TransactionId,
    record: Record,
    unjoined: Vec<String>,
}

/// The nodes that were last reported to have a vote on registers, and to have none.
#[derive(Debug, Default)]
pub(crate) struct ReportedVotes {
    pub(crate) with: NodeSet,
    pub(crate) without: NodeSet,
}

impl RegisterMemory {
    pub(crate) fn group(&self) -> MutexGuard<'_, Option<(Epoch, Time)>> {
        lock(&self.group)
    }

    pub(crate) fn reported(&self) -> MutexGuard<'_, ReportedVotes> {
        lock(&self.reported)
    }

    /// The register with this key.
    pub(crate) fn register(&self, key: &Arc<[u8]>) -> Arc<CombinedRegister> {
        let mut registers = lock(&self.registers);
        if registers.len() >= REMEMBERED_MAX && !registers.contains_key(key) {
            // What is forgotten costs a round at the next change.
            registers.retain(|_, register| Arc::strong_count(register) > 1);
        }
        Arc::clone(registers.entry(Arc::clone(key)).or_default())
    }

    /// This client has begun a transaction, with this record.
    pub(crate) fn began(&self, id: TransactionId, record: Record) {
        let mut begun = lock(&self.begun);
        if begun.len() == BEGUN_MAX {
            // What is forgotten is looked at by who joins.
            begun.pop_front();
        }
        let names = record.participants();
        begun.push_back(BegunTransaction {
            id,
            unjoined: names.map(|(name, _)| name.to_owned()).collect(),
            record,
        });
    }

    /// A side joins a transaction. Returns the record as this client has begun it: once for each
    /// side, since one that joins again may have committed and forgotten it.
    pub(crate) fn joins(&self, id: &TransactionId, name: &str) -> Option<Record> {
        let mut begun = lock(&self.begun);
        let index = begun.iter().position(|it| it.id == *id)?;
        let transaction = &mut begun[index];
        let side = transaction.unjoined.iter().position(|it| it == name)?;
        transaction.unjoined.swap_remove(side);
        let record = transaction.record.clone();
        if transaction.unjoined.is_empty() {
            begun.remove(index);
        }
        Some(record)
    }

    /// A majority of the nodes has accepted this last for the register with this key.
    pub(crate) fn saw(&self, key: &Arc<[u8]>, accepted: Option<Ballot>) {
        let register = lock(&self.registers).get(key).cloned();
        register.iter().for_each(|it| {
            lock(&it.0)
                .proposer
                .iter_mut()
                .for_each(|proposer| proposer.saw(accepted));
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One register.
#[derive(Debug, Default)]
pub(crate) struct CombinedRegister(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// `None` before the first change, and while there is one.
    proposer: Option<Proposer>,
    /// The threads that wait for the combiner. `None` if there is none.
    waiting: Option<VecDeque<Contribution>>,
}

/// What a thread does that is to change a register.
pub(crate) enum CombiningRole {
    Combine(Combiner),
    /// It does what it is told.
    Contribute(Receiver<CombinerMessage>),
}

/// What the combiner tells a thread that contributes a change.
#[derive(Debug)]
pub(crate) enum CombinerMessage {
    /// Make the change, and give the draft back.
    Change(Draft, Sender<Draft>),
    /// The change is over.
    End(Result<Committed, RegisterError>),
    /// The combiner has ended, and this thread is the next one.
    Combine(Combiner),
}

/// A change that is over, and that a majority agrees on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    /// The ballot of the draft that counts.
    pub(crate) ballot: Ballot,
    /// How often the nodes were asked.
    pub(crate) rounds: u32,
}

impl CombinedRegister {
    /// Takes part in the next change.
    pub(crate) fn join(self: &Arc<Self>) -> CombiningRole {
        let mut state = lock(&self.0);
        let Some(waiting) = &mut state.waiting else {
            state.waiting = Some(VecDeque::new());
            return CombiningRole::Combine(Combiner {
                register: Arc::clone(self),
            });
        };
        // It gets one message after another.
        let (to, messages) = bounded(1);
        waiting.push_back(Contribution(to));
        CombiningRole::Contribute(messages)
    }
}

/// The right to change a register. When it is dropped, the first thread that waits has it.
#[derive(Debug)]
pub(crate) struct Combiner {
    register: Arc<CombinedRegister>,
}

impl Combiner {
    /// What is remembered of the last change, if it is.
    pub(crate) fn take_proposer(&self) -> Option<Proposer> {
        lock(&self.register.0).proposer.take()
    }

    pub(crate) fn keep(&self, proposer: Proposer) {
        lock(&self.register.0).proposer = Some(proposer);
    }

    /// Up to this number of the changes of threads that wait.
    fn take(&self, most: usize) -> Vec<Contribution> {
        let mut state = lock(&self.register.0);
        let waiting = state.waiting.iter_mut();
        waiting
            .flat_map(|it| it.drain(..it.len().min(most)))
            .collect()
    }

    /// The changes that are made together with that of the combiner.
    pub(crate) fn contributions(&self) -> Vec<Contribution> {
        self.take(COMBINED_MAX - 1)
    }

    /// Ends the changes of all threads that wait. None of them was begun.
    pub(crate) fn dismiss(&self, error: &RegisterError) {
        self.take(usize::MAX)
            .into_iter()
            .for_each(|it| it.end(Err(error.clone())));
    }
}

impl Drop for Combiner {
    fn drop(&mut self) {
        let mut state = lock(&self.register.0);
        let next = state.waiting.as_mut().and_then(VecDeque::pop_front);
        if next.is_none() {
            state.waiting = None;
        }
        drop(state);
        if let Some(Contribution(to)) = next {
            // A thread that is gone does not take the right: it is dropped again, for the next one.
            let _ = to.send(CombinerMessage::Combine(Self {
                register: Arc::clone(&self.register),
            }));
        }
    }
}

/// The change of a thread that waits for the combiner.
#[derive(Debug)]
pub(crate) struct Contribution(Sender<CombinerMessage>);

impl Contribution {
    /// Has the thread make its change of the draft, which it gives back. One that is gone, or
    /// panics, gives none.
    pub(crate) fn begin_change(&self, draft: &mut Draft) -> Receiver<Draft> {
        draft.share();
        let (back, changed) = bounded(1);
        // Of a thread that is gone, the way back is dropped with the message.
        let _ = self.0.send(CombinerMessage::Change(draft.clone(), back));
        changed
    }

    pub(crate) fn end(self, result: Result<Committed, RegisterError>) {
        // It may be gone.
        let _ = self.0.send(CombinerMessage::End(result));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_combines_when_the_combiner_is_gone() {
        let register = Arc::new(CombinedRegister::default());
        let CombiningRole::Combine(combiner) = register.join() else {
            panic!("nobody combines")
        };
        let waiting = [(); 3].map(|()| match register.join() {
            CombiningRole::Contribute(messages) => messages,
            CombiningRole::Combine(_) => panic!("there is a combiner"),
        });
        let [gone, next, last] = waiting;
        drop(gone);
        drop(combiner);
        let Ok(CombinerMessage::Combine(combiner)) = next.recv() else {
            panic!("it is the next")
        };
        let contributions = combiner.contributions();
        assert_eq!(contributions.len(), 1);
        contributions
            .into_iter()
            .for_each(|it| it.end(Err(RegisterError::Unknown)));
        assert!(matches!(
            last.recv(),
            Ok(CombinerMessage::End(Err(RegisterError::Unknown)))
        ));
        drop(combiner);
        assert!(matches!(register.join(), CombiningRole::Combine(_)));
    }

    #[test]
    fn a_right_that_nobody_takes_goes_to_the_next_thread() {
        let register = Arc::new(CombinedRegister::default());
        let CombiningRole::Combine(combiner) = register.join() else {
            panic!("nobody combines")
        };
        let [
            CombiningRole::Contribute(first),
            CombiningRole::Contribute(second),
        ] = [register.join(), register.join()]
        else {
            panic!("there is a combiner");
        };
        drop(combiner);
        // It is told, and gone before it reads that.
        drop(first);
        assert!(matches!(second.recv(), Ok(CombinerMessage::Combine(_))));
    }

    #[test]
    fn a_register_in_use_is_never_forgotten() {
        let memory = RegisterMemory::default();
        let key = |number: usize| Arc::from(number.to_string().as_bytes());
        let used = memory.register(&key(0));
        for number in 1..REMEMBERED_MAX * 3 {
            memory.register(&key(number));
        }
        assert!(Arc::ptr_eq(&used, &memory.register(&key(0))));
        assert!(memory.registers.lock().unwrap().len() <= REMEMBERED_MAX);
    }
}
