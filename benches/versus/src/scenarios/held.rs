//! A client that holds many locks on ZooKeeper and makes no call: what it sends to keep them.

use super::Context;
use crate::ensemble::{self, Ensemble};
use crate::report::{Figure, Findings, Table, Wanted, time};
use redlatch::LockClient;
use std::thread;
use std::time::{Duration, Instant};

const LOCKS: usize = 1_000;
const TTL: Duration = Duration::from_secs(600);
const SESSION: Duration = Duration::from_secs(10);

/// How often a client writes while it holds a lock: this often in each session timeout.
const BEATS: f64 = 7.0;

const QUIET: Duration = Duration::from_secs(20);
const QUIET_QUICK: Duration = Duration::from_secs(5);

pub fn run(context: &Context) -> Vec<Findings> {
    let ensembles = ensemble::start_all(context.servers.directory());
    ensembles.iter().map(|ensemble| measure(context, ensemble)).collect()
}

fn measure(context: &Context, ensemble: &Ensemble) -> Findings {
    let client = LockClient::builder().nodes([ensemble.url()]).session_timeout(SESSION);
    let client = client.max_ttl(TTL).build();
    let client = client.expect("the URL can be used");
    let began = Instant::now();
    let lock = |index| client.lock(format!("versus:held:{index}"), TTL).expect("it is free");
    let held: Vec<_> = (0..LOCKS).map(lock).collect();
    let taken = began.elapsed();
    let (before, began) = (ensemble.counts(), Instant::now());
    thread::sleep(if context.is_quick { QUIET_QUICK } else { QUIET });
    let (counts, quiet) = (ensemble.counts_since(&before), began.elapsed());
    held.iter().for_each(|guard| assert!(guard.ensure_held().is_ok(), "the beats keep it"));
    let began = Instant::now();
    held.into_iter().for_each(|guard| assert_eq!(guard.release(), Ok(())));
    let beats = quiet.as_secs_f64() * BEATS / SESSION.as_secs_f64();
    let mut table =
        Table::new(&["locks", "all taken in", "released in", "requests", "writes", "in", "T/7"]);
    table.row([
        LOCKS.to_string(),
        time(taken),
        time(began.elapsed()),
        format!("{:.0}", counts.received),
        format!("{:.0}", counts.transactions),
        time(quiet),
        format!("{beats:.1}"),
    ]);
    Findings {
        title: format!("held, {}", ensemble.name()),
        about: "A client holds many locks and makes no call. `requests` that all servers received \
                in this time, and `writes`, by the number of the last transaction. `T/7`: how many \
                sevenths of the session timeout the time has."
            .to_owned(),
        table,
        figures: vec![Figure {
            what: format!("held, {}: writes in T/7", ensemble.name()),
            measured: counts.transactions / beats,
            wanted: Wanted::AtMost(1.1),
        }],
        groups: Vec::new(),
    }
}
