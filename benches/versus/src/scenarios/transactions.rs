//! Transactions beside two-phase commit, whose coordinator keeps its log on one of the same
//! servers.

use super::Context;
use crate::histogram::Histogram;
use crate::lane::median;
use crate::peers::registers;
use crate::report::{Findings, Table, rate, time};
use crate::servers::Servers;
use crate::traffic::Usage;
use redlatch::LockClient;
use redlatch::transaction::{Decision, Participant, TransactionId};
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

const NODES: usize = 3;

/// How many pairs of participants there are at a time.
const PAIRS: [usize; 2] = [1, 8];

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

const WAYS: [(Way, &str); 3] = [
    (Way::Redlatch, "redlatch"),
    (Way::TwoPhase, "2PC, each step in the log"),
    (Way::PresumedAbort, "2PC, presumed abort"),
];

/// A participant in memory.
#[derive(Default)]
struct Shelf {
    prepared: Vec<TransactionId>,
    committed: Vec<TransactionId>,
    applied: u64,
}

/// One side of a pair, which is a thread.
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

/// The coordinator's log: a connection to a server.
struct Log {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
    writes: u64,
}

struct Pair {
    way: Way,
    sides: [Side; 2],
    log: Log,
}

struct Lane {
    name: &'static str,
    pairs: Vec<Pair>,
    rates: Vec<f64>,
    times: Histogram,
    commits: u64,
    scripts: f64,
}

pub fn run(context: &Context) -> Vec<Findings> {
    let servers = Servers::start_durable(NODES).expect("servers can be started");
    let client = registers::client(&servers.urls());
    client.registers().form(false).expect("the servers become a group");
    let findings = PAIRS.map(|pairs| measure(context, &servers, pairs));
    let left = client.transactions().list().expect("a majority of the servers answers");
    assert!(left.is_empty(), "transactions are left: {left:?}");
    findings.into()
}

fn measure(context: &Context, servers: &Servers, pairs: usize) -> Findings {
    let mut lanes = WAYS.map(|(way, name)| Lane {
        name,
        pairs: (0..pairs).map(|_| Pair::new(way, servers)).collect(),
        rates: Vec::new(),
        times: Histogram::new(),
        commits: 0,
        scripts: 0.0,
    });
    for turn in 0..2 * context.turns {
        for index in 0..lanes.len() {
            // Not always in the same order.
            let index = (turn + index) % lanes.len();
            lanes[index].run(2 * context.slice, servers);
        }
    }
    Findings {
        title: format!("transactions, {pairs} at a time, {NODES} nodes, each change on disk"),
        about: "Two participants, both in memory, each a thread with a client of its own. From \
                the begin until both have committed and forgotten. Beside it two-phase commit, \
                whose coordinator is one of the two threads and keeps its log on one of the \
                servers. `rounds` are the scripts that a node ran, or the writes of the log, for \
                each commit."
            .to_owned(),
        table: table(&lanes),
        figures: Vec::new(),
        groups: Vec::new(),
    }
}

fn table(lanes: &[Lane]) -> Table {
    let head = ["", "commits/s", "of redlatch's", "p50", "p99", "rounds"];
    let mut table = Table::new(&head);
    for lane in lanes {
        let both = lane.rates.iter().zip(&lanes[0].rates);
        let ratio = median(both.map(|(one, first)| one / first).collect());
        let writes: u64 = lane.pairs.iter().map(|pair| pair.log.writes).sum();
        let rounds = (lane.scripts / NODES as f64 + writes as f64) / lane.commits as f64;
        table.row([
            lane.name.to_owned(),
            rate(median(lane.rates.clone())),
            format!("{ratio:.2}"),
            time(lane.times.quantile(0.5)),
            time(lane.times.quantile(0.99)),
            format!("{rounds:.1}"),
        ]);
    }
    table
}

impl Lane {
    fn run(&mut self, duration: Duration, servers: &Servers) {
        let (before, started) = (Usage::of(servers), Instant::now());
        let until = started + duration;
        let commits = self.commits;
        thread::scope(|scope| {
            let run = |pair| scope.spawn(move || Pair::run(pair, until));
            let running: Vec<_> = self.pairs.iter_mut().map(run).collect();
            for pair in running {
                let times = pair.join().expect("a pair does not panic");
                self.commits += times.count();
                self.times.add(&times);
            }
        });
        self.rates.push((self.commits - commits) as f64 / started.elapsed().as_secs_f64());
        self.scripts += Usage::since(servers, &before).scripts().count;
        let applied = [0, 1].map(|side: usize| -> u64 {
            self.pairs.iter().map(|pair| pair.sides[side].shelf.applied).sum()
        });
        assert_eq!(applied, [self.commits; 2], "both sides apply each transaction once");
    }
}

impl Pair {
    fn new(way: Way, servers: &Servers) -> Self {
        let side = |name| {
            let client = registers::client(&servers.urls());
            Side { name, client, shelf: Shelf::default() }
        };
        let sides = ["first", "second"].map(side);
        Self { way, sides, log: Log::new(servers.addresses()[0]) }
    }

    fn run(&mut self, until: Instant) -> Histogram {
        let mut times = Histogram::new();
        let Self { way, sides: [first, second], log } = self;
        thread::scope(|scope| {
            let (orders, inbox) = channel();
            let (outbox, done) = channel();
            scope.spawn(move || {
                for order in inbox {
                    second.obey(order);
                    outbox.send(()).expect("the other thread waits for it");
                }
            });
            while Instant::now() < until {
                let started = Instant::now();
                transfer(*way, first, log, (&orders, &done));
                times.record(started.elapsed());
            }
            drop(orders);
        });
        times
    }
}

/// One transaction, from this side, which begins it.
fn transfer(way: Way, side: &mut Side, log: &mut Log, other: (&Sender<Order>, &Receiver<()>)) {
    let (orders, done) = other;
    let both = |side: &mut Side, order| {
        orders.send(order).expect("the other thread waits for it");
        side.obey(order);
        done.recv().expect("the other side does not panic");
    };
    if way == Way::Redlatch {
        let begun = side.client.transactions().begin(&["first", "second"]);
        let id = begun.expect("a majority answers");
        return both(side, Order::Join(id));
    }
    // A number of its own, in the log of this connection.
    let id = TransactionId::new(0, log.writes.into());
    let key = format!("log:{:?}:{}", log.stream.local_addr(), log.writes);
    let logs_all = way == Way::TwoPhase;
    if logs_all {
        log.write(&["SET", &key, "begin first second"]);
    }
    both(side, Order::Prepare(id));
    if logs_all {
        log.write(&["SET", &key, "prepared first second"]);
    }
    log.write(&["SET", &key, "committed first second"]);
    both(side, Order::Commit(id));
    log.write(&["DEL", &key]);
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
    fn new(server: SocketAddr) -> Self {
        let stream = TcpStream::connect(server).expect("the server accepts");
        stream.set_nodelay(true).expect("an option of every connection");
        let answers = BufReader::new(stream.try_clone().expect("it is open"));
        Self { stream, answers, writes: 0 }
    }

    /// A change of the log. It is on the disk when this returns.
    fn write(&mut self, words: &[&str]) {
        let mut command = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| command += &format!("${}\r\n{word}\r\n", word.len()));
        self.stream.write_all(command.as_bytes()).expect("the server takes it");
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
