//! All scenarios.

use super::plans::{
    AWAY, BESIDE_FROZEN, BY_PROCESSES, BY_THREADS, FENCED, FROZEN, GROUP, MANY_CLIENTS, PERMITS,
    READING, SHARED, SOLO, TLS, TLS_SHARED, crowd,
};
use super::values::{REGISTERS, TRANSACTIONS};
use super::{Context, Plan, Scenario, Stage, Storage};
use super::{memory, tls, waiting, writer};

/// Name, what it measures, and its stages.
pub const ALL: &[Scenario] = &[
    ("solo", "one thread, a free lock", &[on_five(&[SOLO], &[])]),
    (
        "groups",
        "one server, and the same as the master of a replicated group",
        &[Stage {
            nodes: 1,
            ..on_five(
                &[
                    GROUP,
                    Plan {
                        threads: 32,
                        ..GROUP
                    },
                ],
                &[],
            )
        }],
    ),
    (
        "fenced",
        "fenced, and two resources at once",
        &[on_five(&[FENCED], &[])],
    ),
    (
        "shared",
        "32 threads of one client, free locks",
        &[on_five(&[SHARED], &[])],
    ),
    (
        "contended",
        "8 threads or processes, one lock, frozen servers",
        &[on_five(EIGHT, &[])],
    ),
    (
        "handoff",
        "many clients, always one lock",
        &[Stage {
            others: 1,
            ..on_five(CROWDS, &[])
        }],
    ),
    (
        "readers",
        "readers of one lock, and a writer",
        &[on_five(READERS, &[writer::run])],
    ),
    (
        "permits",
        "many clients, 8 permits",
        &[on_five(&[PERMITS], &[])],
    ),
    (
        "waiting",
        "long waits for one lock",
        &[on_five(&[], &[waiting::run])],
    ),
    (
        "frozen",
        "one server is frozen (SIGSTOP)",
        &[on_five(&[FROZEN], &[])],
    ),
    (
        "rtt",
        "servers a millisecond away",
        &[on_five(&[AWAY], &[])],
    ),
    (
        "tls",
        "over TLS, and reconnects",
        &[on_five(&[TLS, TLS_SHARED], &[tls::run])],
    ),
    (
        "registers",
        "values that a majority agrees on, and locks",
        &[
            Stage {
                others: NODES_OF_GROUP,
                ..on_group(Storage::Disk, REGISTERS)
            },
            Stage {
                also: &[memory::run],
                ..on_group(Storage::Memory, REGISTERS)
            },
        ],
    ),
    (
        "transactions",
        "compared with two-phase commit",
        &[on_group(Storage::Disk, TRANSACTIONS)],
    ),
];

const NODES: usize = 5;
const NODES_OF_GROUP: usize = 3;

const fn on_five(plans: &'static [Plan], also: &'static [fn(&Context)]) -> Stage {
    Stage {
        nodes: NODES,
        group: None,
        others: 0,
        plans,
        also,
    }
}

const fn on_group(storage: Storage, plans: &'static [Plan]) -> Stage {
    Stage {
        nodes: NODES_OF_GROUP,
        group: Some(storage),
        others: 0,
        plans,
        also: &[],
    }
}

const EIGHT: &[Plan] = &[BY_THREADS, BY_PROCESSES, BESIDE_FROZEN];
const CROWDS: &[Plan] = &[crowd(8, 20, 15), MANY_CLIENTS, crowd(8, 1, 10)];
const READERS: &[Plan] = &[
    Plan {
        title: "readers, 32 threads",
        threads: 32,
        ..READING
    },
    Plan {
        title: "readers, 8 processes",
        processes: 8,
        ..READING
    },
];
