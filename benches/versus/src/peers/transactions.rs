//! Two participants, both in memory and each a thread, that commit: by this library, each with a
//! client of its own, or by two-phase commit, whose coordinator is one of the two threads and keeps
//! its log on one of the servers.

use super::{Peer, Run, address, blocking, other, redlatch::client};
use crate::work::Blocking;
use ::redlatch::LockClient;
use ::redlatch::transaction::{Decision, Participant, TransactionId};
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// Nobody waits for so long.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Redlatch,
    /// The coordinator logs the begin, that all are prepared, the decision, and the end.
    TwoPhase,
    /// It logs the decision and the end: without a decision, it is aborted.
    PresumedAbort,
}

pub static ALL: [Peer; 3] = [
    other("transactions", |urls, pairs| start(Way::Redlatch, urls, pairs)),
    other("two-phase", |urls, pairs| start(Way::TwoPhase, urls, pairs)),
    other("presumed-abort", |urls, pairs| start(Way::PresumedAbort, urls, pairs)),
];

fn start(way: Way, urls: &[String], pairs: usize) -> Run {
    let free = (0..pairs).map(|_| Pair::new(urls)).collect();
    blocking(Pairs { way, free: Mutex::new(free) }, pairs)
}

/// A pair of participants for each client.
struct Pairs {
    way: Way,
    free: Mutex<Vec<Pair>>,
}

/// A participant in memory.
#[derive(Default)]
struct Shelf {
    prepared: Vec<TransactionId>,
    committed: Vec<TransactionId>,
    applied: u64,
}

/// One side of a pair.
struct Side {
    name: &'static str,
    client: LockClient,
    shelf: Shelf,
}

/// What both sides of a pair do at the same time.
#[derive(Clone, Copy)]
enum Order {
    Join(TransactionId),
    Prepare(TransactionId),
    Commit(TransactionId),
}

/// The side that begins, and the other one in a thread, which answers each order with the number of
/// transactions that it has applied.
struct Pair {
    side: Side,
    orders: Sender<Order>,
    done: Receiver<u64>,
    log: Log,
}

/// The coordinator's log: a connection to a server.
struct Log {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
    writes: u64,
}

impl Blocking for Pairs {
    type Held<'a> = ();

    /// One transaction, from the begin until both sides have committed and forgotten.
    fn acquire(&self, _: &str, _: bool) {
        let take = || self.free.lock().expect("nothing panics with it held");
        let mut pair = take().pop().expect("there is a pair for each client");
        pair.transfer(self.way);
        take().push(pair);
    }

    fn release(&self, (): ()) {}
}

impl Pair {
    fn new(urls: &[String]) -> Self {
        let side = |name| Side { name, client: client(urls), shelf: Shelf::default() };
        let (orders, inbox) = channel();
        let (outbox, done) = channel();
        let mut second = side("second");
        thread::spawn(move || {
            for order in inbox {
                second.obey(order);
                outbox.send(second.shelf.applied).expect("the other thread waits for it");
            }
        });
        Self { side: side("first"), orders, done, log: Log::new(address(&urls[0])) }
    }

    fn transfer(&mut self, way: Way) {
        if way == Way::Redlatch {
            let begun = self.side.client.transactions().begin(&["first", "second"]);
            return self.both(Order::Join(begun.expect("a majority answers")));
        }
        // A number of its own, in the log of this connection.
        let id = TransactionId::new(0, self.log.writes.into());
        let key = format!("log:{:?}:{}", self.log.stream.local_addr(), self.log.writes);
        let logs_all = way == Way::TwoPhase;
        if logs_all {
            self.log.write(&["SET", &key, "begin first second"]);
        }
        self.both(Order::Prepare(id));
        if logs_all {
            self.log.write(&["SET", &key, "prepared first second"]);
        }
        self.log.write(&["SET", &key, "committed first second"]);
        self.both(Order::Commit(id));
        self.log.write(&["DEL", &key]);
    }

    fn both(&mut self, order: Order) {
        self.orders.send(order).expect("the other thread waits for it");
        self.side.obey(order);
        let applied = self.done.recv().expect("the other side does not panic");
        assert_eq!(applied, self.side.shelf.applied, "both sides apply each transaction once");
    }
}

impl Side {
    fn obey(&mut self, order: Order) {
        let Ok(()) = match order {
            Order::Join(id) => {
                let transactions = self.client.transactions();
                let decision = transactions.join(&id, self.name, &mut self.shelf, PATIENCE);
                let decision = decision.unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(decision, Decision::Committed, "nothing makes it abort");
                Ok(())
            }
            Order::Prepare(id) => self.shelf.prepare(&id),
            Order::Commit(id) => self.shelf.commit(&id).and_then(|()| self.shelf.forget(&id)),
        };
    }
}

impl Log {
    fn new(server: &str) -> Self {
        let stream = TcpStream::connect(server).expect("the server accepts");
        stream.set_nodelay(true).expect("an option of every connection");
        let answers = BufReader::new(stream.try_clone().expect("it is open"));
        Self { stream, answers, writes: 0 }
    }

    /// A change of the log. It is on the disk when this returns.
    fn write(&mut self, words: &[&str]) {
        let command = super::floor::command(words);
        self.stream.write_all(&command).expect("the server takes it");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the server answers");
        assert!(matches!(answer.trim_end(), "+OK" | ":1"), "{answer}");
        self.writes += 1;
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
