//! What the threads of one client share: time, random numbers, and what
//! `src/backend/quorum/memory.rs` remembers.

use super::ledger::Ledger;
use crate::mistake::Mistake;
use crate::random::Random;
use redlatch_protocol::engine::{Entropy, Rules};
use redlatch_protocol::time::Time;
use redlatch_registers::{Ballot, Draft, Epoch, Proposer};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    NoQuorum {
        may_have_happened: bool,
    },
    /// It has an effect, or none.
    Unknown,
    /// It has none.
    Other,
}

/// One client.
pub(crate) struct Shared {
    pub(super) rules: Arc<Rules>,
    pub(super) mistake: Option<Mistake>,
    /// Which side of transactions it is, and the disks of all.
    pub(super) side: usize,
    pub(super) ledger: Rc<RefCell<Ledger>>,
    pub(super) now: Cell<Time>,
    /// Microseconds since 1970, by its clock.
    pub(super) wall: Cell<u64>,
    random: RefCell<Random>,
    /// The latest epoch of the group, and when it was looked at.
    pub(super) known: RefCell<Option<(Epoch, Time)>>,
    slots: RefCell<BTreeMap<u64, Rc<Slot>>>,
    /// The threads that were left something.
    woken: RefCell<Vec<usize>>,
}

/// A change that a thread makes of a draft.
type Body = dyn FnMut(&mut Draft);

/// A thread that takes part in a change.
pub(super) struct Part {
    pub(super) worker: usize,
    change: RefCell<Box<Body>>,
    /// What the leader leaves to it.
    message: RefCell<Option<Message>>,
}

#[derive(Clone, Copy)]
pub(super) enum Message {
    /// The change is over: the draft with this ballot is the one that counts.
    End(Result<Ballot, Failure>),
    /// Lead yourself.
    Lead,
}

/// One register.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) proposer: RefCell<Option<Proposer>>,
    is_led: Cell<bool>,
    waiting: RefCell<VecDeque<Rc<Part>>>,
}

impl Part {
    pub(super) fn new(worker: usize, change: impl FnMut(&mut Draft) + 'static) -> Rc<Self> {
        let change: Box<Body> = Box::new(change);
        Rc::new(Self {
            worker,
            change: change.into(),
            message: RefCell::default(),
        })
    }

    pub(super) fn change(&self, draft: &mut Draft) {
        (*self.change.borrow_mut())(draft);
    }

    pub(super) fn take_message(&self) -> Option<Message> {
        self.message.borrow_mut().take()
    }
}

impl Slot {
    /// Takes part in the next change. Returns whether this thread leads it.
    pub(super) fn join(&self, part: &Rc<Part>) -> bool {
        if !self.is_led.replace(true) {
            return true;
        }
        self.waiting.borrow_mut().push_back(Rc::clone(part));
        false
    }

    /// The threads whose changes are made together with the leader's.
    pub(super) fn followers(&self) -> Vec<Rc<Part>> {
        self.waiting.borrow_mut().drain(..).collect()
    }

    /// The leader is done: the first thread that waits leads.
    pub(super) fn leave(&self, shared: &Shared) {
        match self.waiting.borrow_mut().pop_front() {
            Some(next) => shared.send(&next, Message::Lead),
            None => self.is_led.set(false),
        }
    }
}

impl Shared {
    pub(crate) fn new(
        rules: Arc<Rules>,
        mistake: Option<Mistake>,
        random: Random,
        (side, ledger): (usize, &Rc<RefCell<Ledger>>),
    ) -> Rc<Self> {
        Rc::new(Self {
            rules,
            mistake,
            side,
            ledger: Rc::clone(ledger),
            now: Cell::new(Time::ZERO),
            wall: Cell::new(0),
            random: RefCell::new(random),
            known: RefCell::default(),
            slots: RefCell::default(),
            woken: RefCell::default(),
        })
    }

    /// It is this late, by the client's clocks.
    pub(crate) fn set_time(&self, now: Time, wall: u64) {
        self.now.set(now);
        self.wall.set(wall);
    }

    /// The threads that go on now.
    pub(crate) fn woken(&self) -> Vec<usize> {
        self.woken.take()
    }

    pub(super) fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    pub(super) fn send(&self, part: &Part, message: Message) {
        *part.message.borrow_mut() = Some(message);
        self.woken.borrow_mut().push(part.worker);
    }

    pub(super) fn slot(&self, register: u64) -> Rc<Slot> {
        Rc::clone(self.slots.borrow_mut().entry(register).or_default())
    }

    pub(super) fn draw(&self) -> Entropy {
        let mut bytes = [0; Entropy::LEN];
        for chunk in bytes.chunks_mut(8) {
            let number = self.random.borrow_mut().number().to_le_bytes();
            chunk.copy_from_slice(&number[..chunk.len()]);
        }
        Entropy::from_bytes(bytes)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}
