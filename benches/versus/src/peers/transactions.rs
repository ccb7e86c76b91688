//! Two participants, both in memory and each a thread, that commit: by this library, each with a
//! client of its own, or by two-phase commit, whose coordinator is one of the two threads and keeps
//! its log on one of the servers. Or one thread has both, of a program with one client.

use super::{address, redlatch::client};
use crate::resp::Connection;
use crate::work::{Cycle, Note};
use ::redlatch::LockClient;
use ::redlatch::transaction::{Decision, Participant, TransactionId};
use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// Nobody waits for so long.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Redlatch,
    /// The coordinator logs the begin, that all are prepared, the decision, and the end.
    TwoPhase,
    /// It logs the decision and the end: without a decision, it is aborted.
    PresumedAbort,
}

/// A transaction in place of a lock, from the begin until both sides have committed and forgotten.
pub fn start(urls: &[String], protocol: Protocol) -> Cycle {
    let urls = urls.to_vec();
    let free = Mutex::new(Vec::new());
    Box::new(move |_, _, while_held| {
        let free = || free.lock().expect("nothing panics with it held");
        // Each client makes a pair when it warms up, and then takes any that is free.
        let pair = free().pop();
        let mut pair = pair.unwrap_or_else(|| Pair::new(&urls));
        pair.transfer(protocol);
        free().push(pair);
        while_held(Note::default());
    })
}

/// The same, where the thread that begins has both sides. The threads share a client.
pub fn start_whole(urls: &[String]) -> Cycle {
    let client = client(urls);
    let free = Mutex::new(Vec::<[Shelf; 2]>::new());
    Box::new(move |_, _, while_held| {
        let free = || free.lock().expect("nothing panics with it held");
        let taken = free().pop();
        let [mut first, mut second] = taken.unwrap_or_default();
        let ended = client
            .transactions()
            .run(&mut [("first", &mut first), ("second", &mut second)]);
        let decision = ended.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(decision, Decision::Committed, "nothing makes it abort");
        assert_eq!(
            first.applied, second.applied,
            "both sides apply each transaction once"
        );
        free().push([first, second]);
        while_held(Note::default());
    })
}

/// A participant in memory.
#[derive(Default)]
struct Shelf {
    prepared: Vec<TransactionId>,
    committed: Vec<TransactionId>,
    applied: u64,
}

struct Side {
    name: &'static str,
    client: LockClient,
    shelf: Shelf,
}

/// What both sides of a pair do at the same time.
type Step = fn(&mut Side, TransactionId);

/// The side that begins, and the other one in a thread, which answers each step with the number of
/// transactions that it has applied.
struct Pair {
    side: Side,
    steps: Sender<(Step, TransactionId)>,
    done: Receiver<u64>,
    /// The coordinator's log, and how often it was changed.
    log: Connection,
    writes: u64,
}

impl Pair {
    fn new(urls: &[String]) -> Self {
        let side = |name| Side {
            name,
            client: client(urls),
            shelf: Shelf::default(),
        };
        let (steps, inbox) = channel::<(Step, TransactionId)>();
        let (outbox, done) = channel();
        let mut second = side("second");
        thread::spawn(move || {
            for (step, id) in inbox {
                step(&mut second, id);
                outbox
                    .send(second.shelf.applied)
                    .expect("the other thread waits for it");
            }
        });
        let log = Connection::new(address(&urls[0])).expect("the server accepts");
        Self {
            side: side("first"),
            steps,
            done,
            log,
            writes: 0,
        }
    }

    fn transfer(&mut self, protocol: Protocol) {
        if protocol == Protocol::Redlatch {
            let begun = self.side.client.transactions().begin(&["first", "second"]);
            return self.both(Side::join, begun.expect("a majority answers"));
        }
        // A number of its own, in the log of this connection.
        let id = TransactionId::new(0, self.writes.into());
        let key = format!(
            "log:{}:{:?}:{}",
            std::process::id(),
            thread::current().id(),
            self.writes
        );
        let logs_all = protocol == Protocol::TwoPhase;
        if logs_all {
            self.write(&["SET", &key, "begin first second"]);
        }
        self.both(Side::prepare, id);
        if logs_all {
            self.write(&["SET", &key, "prepared first second"]);
        }
        self.write(&["SET", &key, "committed first second"]);
        self.both(Side::commit, id);
        self.write(&["DEL", &key]);
    }

    fn both(&mut self, step: Step, id: TransactionId) {
        self.steps
            .send((step, id))
            .expect("the other thread waits for it");
        step(&mut self.side, id);
        let applied = self.done.recv().expect("the other side does not panic");
        assert_eq!(
            applied, self.side.shelf.applied,
            "both sides apply each transaction once"
        );
    }

    /// A change of the log. It is on the disk when this returns.
    fn write(&mut self, words: &[&str]) {
        let answer = self.log.ask(words).expect("the server answers");
        assert!(matches!(&*answer, "+OK" | ":1"), "{answer}");
        self.writes += 1;
    }
}

impl Side {
    fn join(&mut self, id: TransactionId) {
        let joined = self
            .client
            .transactions()
            .join(&id, self.name, &mut self.shelf, PATIENCE);
        let decision = joined.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(decision, Decision::Committed, "nothing makes it abort");
    }

    fn prepare(&mut self, id: TransactionId) {
        let Ok(()) = self.shelf.prepare(&id);
    }

    fn commit(&mut self, id: TransactionId) {
        let Ok(()) = self.shelf.commit(&id).and_then(|()| self.shelf.forget(&id));
    }
}

impl Participant for Shelf {
    type Error = Infallible;

    fn prepare(&mut self, id: &TransactionId) -> Result<(), Infallible> {
        self.prepared.push(*id);
        Ok(())
    }

    fn commit(&mut self, id: &TransactionId) -> Result<(), Infallible> {
        self.roll_back(id)?;
        self.committed.push(*id);
        self.applied += 1;
        Ok(())
    }

    fn roll_back(&mut self, id: &TransactionId) -> Result<(), Infallible> {
        self.prepared.retain(|prepared| prepared != id);
        Ok(())
    }

    fn prepared(&mut self) -> Result<Vec<TransactionId>, Infallible> {
        Ok(self.prepared.clone())
    }

    fn committed(&mut self) -> Result<Vec<TransactionId>, Infallible> {
        Ok(self.committed.clone())
    }

    fn forget(&mut self, id: &TransactionId) -> Result<(), Infallible> {
        self.committed.retain(|committed| committed != id);
        Ok(())
    }
}
