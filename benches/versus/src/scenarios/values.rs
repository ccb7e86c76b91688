//! The plans of values: registers and transactions.

use super::columns::{
    CPU, FAIRNESS, LONGEST, P50, P50_RATIO, P99, RATE, RATIO, RECEIVED, REPLIED, SCRIPT_TIME,
    SCRIPTS, SERVERS_CPU, UNKNOWN, WORST_FAIRNESS,
};
use super::plans::{PLAN, WITH_HEALTHY, ms, on, row};
use super::{On, Plan, Row};
use crate::peers::{client, registers};
use crate::work::Kind;
use std::time::Duration;

pub const REGISTERS: &[Plan] = &[ALONE, TOGETHER, ONE_FROZEN];
pub const TRANSACTIONS: &[Plan] = &[ONE_PAIR, EIGHT_PAIRS];

const LOCK: Row = row("a lock", "redlatch", "");
const READ: Row = row("register, read", "register-read", "");
const CHANGE: Row = row("register, change by the same client", "register-change", "");
const ALTERNATE: Row = row("register, change by two in turns", "register-alternate", "");
const ETCD: Row = on(On::Etcd, row("compare and put", "etcd-change", ""));
const ZOOKEEPER: Row = on(
    On::ZooKeeper,
    row("setData with a version", "zookeeper-set", ""),
);

const ALONE: Plan = Plan {
    title: "registers, alone",
    about: "One client at a time. A lock is acquired (which is timed) and released; a value of 100 \
            bytes is read or changed. `first change by a client`: it has no memory of the \
            register. `two in turns`: two clients change one register alternately, so that what \
            each remembers is out of date. Clients of etcd and ZooKeeper talk to the leader; those \
            of etcd by the JSON gateway, whose price is about that of the read of one member. \
            Scripts and bytes are those of one node (a lock's with its release).",
    rows: &[
        LOCK,
        READ,
        CHANGE,
        row("register, first change by a client", "register-first", ""),
        ALTERNATE,
        on(On::Etcd, row("read of one member", "etcd-local-read", "")),
        on(On::Etcd, row("read", "etcd-read", "")),
        ETCD,
        ZOOKEEPER,
    ],
    columns: &[
        P50,
        P99,
        P50_RATIO,
        RATE,
        CPU,
        SERVERS_CPU,
        SCRIPTS,
        SCRIPT_TIME,
        RECEIVED,
        REPLIED,
    ],
    ..PLAN
};

/// Slices are longer than those of one client, so that each client has its turn often: how many
/// changes it makes in one is left to chance, which differs by less the more turns there are.
const TOGETHER: Plan = Plan {
    title: "registers, 8 processes on one value",
    about: "Each process, with a client of its own, changes the same value again and again, \
            without a pause. etcd and ZooKeeper compare and set until that succeeds. `unknown` are \
            calls that ended with an error which leaves open whether the change was made; another \
            change follows. At the end the register's own count must be that of the changes that \
            were made, and of none or some of the unknown ones.",
    rows: &[CHANGE, ETCD, ZOOKEEPER],
    processes: 8,
    kind: Kind::Together,
    turns: 7,
    slice: Duration::from_secs(10),
    columns: &[
        RATE,
        RATIO,
        P50,
        P99,
        LONGEST,
        FAIRNESS,
        WORST_FAIRNESS,
        UNKNOWN,
    ],
    check: |context, lanes| {
        let register =
            client(&context.servers.urls()).register(format!("{}:same", lanes[0].prefix));
        let value = register.expect("the name can be used").read();
        let value = value.expect("a majority of the servers answers");
        let made = lanes[0].done..=lanes[0].done + lanes[0].unknown;
        assert!(
            value.is_some_and(|value| made.contains(&registers::changes(&value))),
            "{made:?}"
        );
    },
    ..PLAN
};

const ONE_FROZEN: Plan = Plan {
    title: "registers, one frozen",
    about: "One server is frozen (SIGSTOP) after all clients have connected to it. `healthy` is \
            the same with all servers running, just before. The longest is over all parts: a \
            frozen server should cause no pause, at the first operation neither. The clients' \
            `node_timeout` is 1 s.",
    rows: &[LOCK, READ, CHANGE, ALTERNATE],
    frozen: 1,
    turns: 4,
    // Long enough that a client which waits for the frozen server once has many operations left.
    slice: Duration::from_secs(3),
    columns: WITH_HEALTHY,
    ..PLAN
};

const ONE_PAIR: Plan = Plan {
    title: "transactions, one at a time",
    about: "Two participants, both in memory, each a thread with a client of its own. From the \
            begin until both have committed and forgotten. In two-phase commit, the coordinator \
            is one of the two threads and keeps its log on one of the servers: its rounds \
            are the writes of the log. `scripts` are those that a node ran for each commit, \
            which are the rounds of redlatch. In `one process`, a thread has both sides, and \
            all threads share a client.",
    rows: &[
        row("redlatch", "transactions", ""),
        row("redlatch, one process", "transactions-whole", ""),
        row("2PC, each step in the log, 4 rounds", "two-phase", ""),
        row("2PC, presumed abort, 2 rounds", "presumed-abort", ""),
    ],
    slice: ms(800),
    columns: &[RATE, RATIO, P50, P50_RATIO, P99, SCRIPTS],
    check: |context, _| {
        let left = client(&context.servers.urls()).transactions().list();
        let left = left.expect("a majority of the servers answers");
        assert!(left.is_empty(), "transactions are left: {left:?}");
    },
    ..PLAN
};

const EIGHT_PAIRS: Plan = Plan {
    title: "transactions, eight at a time",
    threads: 8,
    ..ONE_PAIR
};
