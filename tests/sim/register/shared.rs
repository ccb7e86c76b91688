//! What the threads of one client share.

use super::PREFIX;
use super::ledger::Ledger;
use crate::backend::RegisterMemory;
use crate::core::Core;
use crate::entropy;
use crate::mistake::Mistake;
use crate::random::Random;
use crossbeam_channel::Receiver;
use redlatch_protocol::engine::Rules;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// One client.
pub(crate) struct Shared {
    pub(crate) core: Core,
    pub(crate) memory: RegisterMemory,
    mistake: Option<Mistake>,
    /// Which side of transactions it is, and the disks of all.
    pub(crate) side: usize,
    pub(crate) ledger: Rc<RefCell<Ledger>>,
    /// The transaction of which it runs all sides, if it does.
    pub(crate) whole: Cell<Option<usize>>,
    random: Rc<RefCell<Random>>,
    /// The threads that wait for a message of another one, in the order in which they began to.
    waiting: RefCell<Vec<WaitingForMessage>>,
}

struct WaitingForMessage {
    worker: usize,
    has_come: Box<dyn Fn() -> bool>,
}

impl Shared {
    pub(crate) fn new(
        rules: Arc<Rules>,
        mistake: Option<Mistake>,
        random: Random,
        (side, ledger): (usize, &Rc<RefCell<Ledger>>),
    ) -> Rc<Self> {
        Rc::new(Self {
            core: Core {
                rules,
                key_prefix: PREFIX.to_vec(),
            },
            memory: RegisterMemory::default(),
            mistake,
            side,
            ledger: Rc::clone(ledger),
            whole: Cell::default(),
            random: Rc::new(RefCell::new(random)),
            waiting: RefCell::default(),
        })
    }

    pub(crate) fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// A thread of this client runs: what it draws comes from here.
    pub(crate) fn lend_random(&self) {
        entropy::draw_from(&self.random);
    }

    /// Up to `longest`.
    pub(crate) fn part_of(&self, longest: Duration) -> Duration {
        let longest = longest.as_nanos() as u64;
        Duration::from_nanos(self.random.borrow_mut().below(longest))
    }

    /// A thread waits for a message. It keeps its place while it does so again and again.
    pub(crate) fn await_message<T: 'static>(&self, worker: usize, messages: Receiver<T>) {
        let has_come = Box::new(move || !messages.is_empty());
        let mut waiting = self.waiting.borrow_mut();
        match waiting.iter_mut().find(|it| it.worker == worker) {
            Some(before) => before.has_come = has_come,
            None => waiting.push(WaitingForMessage { worker, has_come }),
        }
    }

    /// The threads that this one has asked for something, for which it waits. They do it at once.
    pub(crate) fn asked_by(&self, worker: usize) -> Vec<usize> {
        let mut waiting = self.waiting.borrow_mut();
        let come = waiting.iter().filter(|it| (it.has_come)());
        let asked: Vec<usize> = come.map(|it| it.worker).collect();
        if !asked.is_empty() {
            waiting.retain(|it| it.worker != worker);
        }
        asked
    }

    /// The threads that have got a message. They go on when the system schedules them.
    pub(crate) fn woken(&self) -> Vec<usize> {
        let mut woken = Vec::new();
        self.waiting.borrow_mut().retain(|it| {
            let has_come = (it.has_come)();
            if has_come {
                woken.push(it.worker);
            }
            !has_come
        });
        woken
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}
