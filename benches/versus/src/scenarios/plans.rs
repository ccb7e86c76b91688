//! The plans of locks: who does what, for how long, and which columns show it.

use super::columns::{
    BY_DIGEST, BY_SOURCE, CPU, Column, FAIRNESS, FREE_P50, FREE_P99, HEALTHY_P50, HEALTHY_RATIO,
    INSTRUCTIONS, JOINS, LONGEST, MOVED, OVERTAKEN, P50, P99, RATE, RATIO, ROUNDS, SENT,
    SERVERS_CPU,
};
use super::{On, Plan, Row};
use crate::figures::Unit;
use crate::lane::Lane;
use crate::slice::Slice;
use crate::work::Kind;
use std::time::Duration;

pub const fn row(name: &'static str, peer: &'static str, bar: &'static str) -> Row {
    Row {
        name,
        peer,
        on: On::Redis,
        bar,
        kind: None,
    }
}

pub const fn on(on: On, row: Row) -> Row {
    Row { on, ..row }
}

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const REDLATCH: Row = row("redlatch, release()", "redlatch", "redlatch");
const DROPPED: Row = row("redlatch, drop", "redlatch-drop", "redlatch, drop");
const THREADS: Row = row(
    "rslock 0.10, threads in block_on",
    "rslock-threads",
    "rslock 0.10",
);
const TASKS: Row = row(
    "rslock 0.10, tokio multi-thread",
    "rslock-tasks",
    "rslock 0.10",
);
const SINGLE: Row = row(
    "rslock 0.10, tokio current-thread",
    "rslock-single",
    "rslock 0.10",
);
const REDLOCK: Row = row("redlock 2.0", "redlock", "redlock 2.0");
const BARE: Row = row("bare sockets", "bare", "bare sockets");
const PROBE: Row = row("the probe, release", "probe", "");
const PROBE_DROPPED: Row = row("the probe, drop", "probe-drop", "");

pub const GROUP: Plan = Plan {
    title: "one server, and a replicated group",
    about: "On a group, the client asks behind the votes of each write in whose reign they were \
            given. The server is the same and has no replica; none acknowledges.",
    rows: &[REDLATCH, row("redlatch, on a group", "redlatch-group", "")],
    is_watched: true,
    ..PLAN
};

/// Free locks, one thread.
pub const PLAN: Plan = Plan {
    title: "",
    about: "",
    rows: &[],
    threads: 1,
    processes: 1,
    kind: Kind::Free,
    hold: Duration::ZERO,
    turns: 14,
    slice: ms(400),
    warm_up: Duration::ZERO,
    is_crowd: false,
    frozen: 0,
    settling: Duration::ZERO,
    is_watched: false,
    columns: &[RATE, RATIO, P50, P99, CPU, INSTRUCTIONS, SERVERS_CPU],
    bars: &[],
    check: |_, _| {},
};

pub const SOLO: Plan = Plan {
    title: "solo",
    about: "One thread acquires a free lock and releases it, again and again. Bare sockets wait \
            for all servers' answers; the others, too, except redlatch and the probe, which go on \
            when a majority has answered. The probe is the least that a client with redlatch's \
            design spends.",
    rows: &[
        REDLATCH,
        Row { bar: "", ..DROPPED },
        PROBE,
        PROBE_DROPPED,
        THREADS,
        TASKS,
        SINGLE,
        REDLOCK,
        BARE,
    ],
    bars: &[
        ("one thread, a free lock", Unit::Pairs, pairs),
        (
            "one thread, a free lock: median time to acquire it",
            Unit::Time,
            time_to_acquire,
        ),
    ],
    ..PLAN
};

fn pairs(lane: &Lane) -> f64 {
    lane.median(Slice::rate)
}

fn time_to_acquire(lane: &Lane) -> f64 {
    lane.wait(0.5).as_secs_f64()
}

fn fairness(lane: &Lane) -> f64 {
    lane.median(|slice| slice.fairness)
}

pub const FENCED: Plan = Plan {
    title: "fenced",
    about: "One thread acquires a free lock and releases it with release(): a plain one, one with \
            a fencing token, and two resources at once, which count as one pair.",
    rows: &[
        REDLATCH,
        row("redlatch, fenced", "redlatch-fenced", ""),
        row("redlatch, two resources", "redlatch-two", ""),
    ],
    ..PLAN
};

pub const SHARED: Plan = Plan {
    title: "shared, 32 threads",
    about: "Threads share one client; each acquires and releases a free lock of its own. rslock \
            is shown with as many tasks, which is how an async program uses it, and with as many \
            threads in `block_on`, which is how a program of blocking threads can use it.",
    rows: &[
        Row {
            bar: "redlatch, release()",
            ..REDLATCH
        },
        DROPPED,
        PROBE,
        PROBE_DROPPED,
        Row {
            bar: "rslock 0.10, tasks",
            ..TASKS
        },
        Row {
            bar: "rslock 0.10, tasks",
            ..SINGLE
        },
        Row {
            bar: "rslock 0.10, threads",
            ..THREADS
        },
    ],
    threads: 32,
    turns: 7,
    bars: &[("32 threads, a free lock each", Unit::Pairs, pairs)],
    ..PLAN
};

/// Slices are long enough to show fairness: at a millisecond each, every client acquires the lock
/// some hundred times.
const CONTENDED: Plan = Plan {
    about: "Eight threads of one client (tasks, for rslock), or processes, want the same lock and \
            hold it for 1 ms each. No overlap was seen, or this would have ended here.",
    kind: Kind::Contended,
    hold: ms(1),
    turns: 4,
    slice: ms(1500),
    columns: &[RATE, RATIO, P50, P99, FAIRNESS, CPU, INSTRUCTIONS],
    ..PLAN
};

pub const BY_THREADS: Plan = Plan {
    title: "contended, 8 threads",
    rows: &[
        REDLATCH,
        THREADS,
        TASKS,
        row("a mutex in the process", "mutex", "a local mutex"),
    ],
    threads: 8,
    bars: &[
        ("8 threads, one lock held for 1 ms", Unit::Pairs, pairs),
        (
            "8 threads, one lock held for 1 ms: slowest thread's share of the fastest's",
            Unit::Share,
            fairness,
        ),
    ],
    ..CONTENDED
};

pub const BY_PROCESSES: Plan = Plan {
    title: "contended, 8 processes",
    rows: &[REDLATCH, SINGLE],
    processes: 8,
    bars: &[("8 processes, one lock held for 1 ms", Unit::Pairs, pairs)],
    ..CONTENDED
};

/// Only a bare majority of the servers is running: a client that some of them granted the lock can
/// wait for the frozen servers, and so block the other clients, or try again. Each client first has
/// to find out that they are frozen, which takes one round.
pub const BESIDE_FROZEN: Plan = Plan {
    title: "contended, 8 processes, two servers frozen",
    frozen: 2,
    settling: ms(1500),
    bars: &[(
        "2 of 5 servers frozen (SIGSTOP): 8 processes, one lock held for 1 ms",
        Unit::Pairs,
        pairs,
    )],
    ..BY_PROCESSES
};

const HANDOFF: Plan = Plan {
    title: "handoff",
    about: "Processes, each a client of its own, always want one lock. `lock is free`: from just \
            before the call that releases it to the return of the next holder's call that waits \
            for it. `to another`: the share of grants that did not go to the client that had just \
            released it. `overtaken`: how many other clients waited, per grant, that had asked \
            more than 5 ms before the one that got the lock. `p99 in rounds`: by clients x (time \
            held + median time that the lock is free). `commands`: that clients sent, per grant \
            and node, counted with MONITOR on one node after the times were measured.",
    rows: &[
        row("redlatch", "redlatch", "redlatch"),
        SINGLE,
        on(On::ZooKeeper, row("redlatch", "redlatch", "")),
        on(On::ZooKeeper, row("kazoo", "kazoo", "")),
        on(On::Etcd, row("lock", "etcd", "")),
    ],
    kind: Kind::Contended,
    turns: 1,
    is_crowd: true,
    is_watched: true,
    columns: &[
        RATE, FREE_P50, FREE_P99, MOVED, OVERTAKEN, FAIRNESS, P50, P99, ROUNDS, SENT,
    ],
    ..PLAN
};

/// This many processes, holds of this many milliseconds, and seconds to measure.
pub const fn crowd(processes: usize, hold: u64, seconds: u64) -> Plan {
    let slice = Duration::from_secs(seconds);
    // All contend by then.
    let warm_up = ms(seconds * 100);
    Plan {
        processes,
        hold: ms(hold),
        slice,
        warm_up,
        ..HANDOFF
    }
}

/// The chart has this one: with many clients, waits and order differ the most.
pub const MANY_CLIENTS: Plan = Plan {
    bars: &[
        ("64 processes, one lock held for 20 ms", Unit::Pairs, pairs),
        (
            "64 processes, one lock held for 20 ms: slowest client's share of the fastest's",
            Unit::Share,
            fairness,
        ),
        (
            "64 processes, one lock held for 20 ms: median time that it lies free",
            Unit::Time,
            |lane| lane.free(0.5).as_secs_f64(),
        ),
    ],
    ..crowd(64, 20, 30)
};

pub const READING: Plan = Plan {
    about: "Each acquires and releases as fast as it can, as readers of one lock or with a plain \
            lock each. No reader waited, or this would have ended here. Scripts and entries of the \
            queue are per pair and node, counted with MONITOR on one node.",
    rows: &[
        Row {
            kind: Some(Kind::Together),
            ..row("readers of one lock", "redlatch-reader", "")
        },
        row("a plain lock each", "redlatch", ""),
    ],
    turns: 7,
    is_watched: true,
    columns: &[
        RATE,
        RATIO,
        P50,
        P99,
        CPU,
        INSTRUCTIONS,
        SERVERS_CPU,
        BY_DIGEST,
        BY_SOURCE,
        JOINS,
    ],
    check: |_, lanes| {
        let joins = |lane: &Lane| lane.watched.map_or(0, |(commands, _)| commands.joins);
        let joins: u64 = lanes.iter().map(joins).sum();
        assert_eq!(joins, 0, "clients enter the queue while none waits");
    },
    ..PLAN
};

pub const PERMITS: Plan = Plan {
    title: "permits",
    about: "Processes, each a client of its own, always want one of 8 permits. No permit had two \
            holders at once, and none a number above 7, or this would have ended here. `lock is \
            free`: from just before the call that releases a permit to the return of the call that \
            waits for it, of the next holder of the same permit.",
    rows: &[row("redlatch", "redlatch-permit", "")],
    turns: 3,
    columns: &[RATE, FAIRNESS, OVERTAKEN, FREE_P50, FREE_P99, P50, P99],
    is_watched: false,
    ..crowd(16, 20, 15)
};

pub const FROZEN: Plan = Plan {
    title: "frozen",
    about: "One server is frozen (SIGSTOP) after all clients have connected to it: its connections \
            stay open, and it answers nothing. One thread acquires free locks. `healthy` is the \
            same with all servers running, just before; a frozen server takes no processor time, \
            which on a small machine makes the others faster. redlock is not in the table: it \
            reads without a time-out and does not come back.",
    rows: &[REDLATCH, TASKS, SINGLE],
    frozen: 1,
    turns: 4,
    // Long enough for a library that waits half a second for each lock.
    slice: ms(1500),
    columns: WITH_HEALTHY,
    bars: &[(
        "1 of 5 servers frozen (SIGSTOP): median time to acquire a lock",
        Unit::Time,
        time_to_acquire,
    )],
    ..PLAN
};

pub const WITH_HEALTHY: &[Column] = &[P50, HEALTHY_P50, HEALTHY_RATIO, P99, LONGEST];

pub const AWAY: Plan = Plan {
    title: "rtt",
    about: "Proxies add 0.5 ms in each direction; one thread acquires free locks.",
    rows: &[
        on(On::RedisAway, REDLATCH),
        on(On::RedisAway, TASKS),
        on(On::RedisAway, SINGLE),
        on(On::RedisAway, REDLOCK),
        on(On::RedisAway, BARE),
    ],
    turns: 7,
    bars: &[(
        "servers 1 ms away: median time to acquire a lock",
        Unit::Time,
        time_to_acquire,
    )],
    ..PLAN
};

pub const TLS: Plan = Plan {
    title: "tls, one thread",
    about: "Locks that are free, over TLS 1.3 and over plain connections of the same servers. All \
            of the libraries use rustls with ring.",
    rows: &[
        REDLATCH,
        DROPPED,
        on(On::RedisTls, REDLATCH),
        on(On::RedisTls, DROPPED),
        on(On::RedisTls, THREADS),
        on(On::RedisTls, TASKS),
        on(On::RedisTls, SINGLE),
    ],
    ..PLAN
};

pub const TLS_SHARED: Plan = Plan {
    title: "tls, 32 threads",
    threads: 32,
    ..TLS
};
