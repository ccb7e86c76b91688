//! Deterministic simulation: the library's own operations, rounds and sessions, in virtual time,
//! over a simulated network and nodes that fail in all ways that the algorithm must survive. One
//! seed is one history.
//!
//! | to | run `cargo test --test sim` |
//! |---|---|
//! | replay a history, with a trace | with `REDLATCH_SEED=<seed>` and `a_seed_can -- --nocapture` |
//! | the same for one that may break an assumption | with `REDLATCH_BROKEN=Jump`, say, as well |
//! | the same for one with registers | with `REDLATCH_BROKEN=NoneWithRegisters` as well |
//! | the same for one with transactions | with `REDLATCH_BROKEN=NoneWithTransactions` as well |
//! | the same for one with replicated groups | with `REDLATCH_BROKEN=NoneWithGroups` as well |
//! | run more histories than usual | with `REDLATCH_SEEDS=<count>` and `--release` |
//! | count all with violations | with `REDLATCH_FAILURES=<most>` as well |
//! | see how a long campaign goes | with `histories_within -- --nocapture` as well |
//!
//! Real: `engine` (acquiring, extending, releasing; changes and refills of registers; the steps and
//! records of transactions), `node` (sessions, rounds, every byte that is written or read, and the
//! order in which the event loop reads, writes and looks at deadlines), the main loop of a call
//! that acquires a lock (`src/redlock/call.rs`), the loops of registers and of transactions
//! (`src/registers`), and the queues in which the threads of a client wait. Simulated: time, the
//! network, the nodes' processes around the model in `embedded`, and the client's guards and its
//! sockets, which follow `src/guard.rs` and `src/net` (see `worker.rs` and `client.rs` for the
//! differences). In a history threads use locks, or registers, and clients may be sides of
//! transactions: see `register.rs`. Nodes may be replicated groups: see `simulation/groups.rs`.
//! `checker.rs` checks the guarantees.

mod agreement;
mod backend;
mod campaign;
mod checker;
mod client;
mod clock;
mod context;
mod core;
mod entropy;
mod error;
mod lineage;
mod mistake;
mod network;
mod node;
mod options;
mod queue;
mod random;
mod redlock;
mod register;
mod registers;
mod simulation;
mod step;
mod stray;
mod tally;
mod task;
mod worker;

#[path = "../../src/cancel_token.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "a simulated client wakes its threads itself"
)]
mod cancel_token;
#[path = "../../src/wait_queue/handoff_limit.rs"]
mod handoff_limit;
#[path = "../../src/owner_process.rs"]
mod owner_process;
#[path = "../../src/wait_queue/taker.rs"]
#[allow(dead_code, reason = "simulated threads are not threads")]
mod taker;
#[path = "../../src/wait_queue/queue.rs"]
#[allow(
    dead_code,
    reason = "simulated threads do not sleep, nor wait for themselves"
)]
mod wait_queue;
#[path = "../../src/wait_queue/waiting_thread.rs"]
#[allow(dead_code, reason = "simulated threads do not sleep")]
mod waiting_thread;

use campaign::{Campaign, run};
use checker::Invariant;
use mistake::Mistake;
use options::BrokenAssumption;
use redlatch_protocol::engine;
use simulation::Simulation;
use std::env;
use std::fmt::Write;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use tally::Tally;

/// The number of histories in plain `cargo test`, of which `./check` runs more.
const SEEDS: u64 = 40;
/// So many histories contain everything.
const FULL: u64 = 300;
/// The minimum number of kinds of fault in them.
const KINDS_MIN: usize = 44;
/// The number of histories of replicated groups.
const GROUPS: u64 = 12;
/// The number of histories with fresh seeds.
const FRESH: u64 = 8;
/// The number of histories in which a mistake must show.
const ENOUGH: u64 = 3_000;

/// Histories that once broke a promise, found among many: a stray reply in a greeting kept a
/// connection that was given up from being ended.
const BROKEN_ONCE: [u64; 2] = [90_406, 175_274];

/// The seed of the history to replay, if only one is wanted.
fn replayed() -> Option<u64> {
    env::var("REDLATCH_SEED")
        .ok()
        .map(|seed| seed.parse().expect("REDLATCH_SEED is a number"))
}

/// The assumptions that the history to be replayed may break.
fn replayed_assumption() -> BrokenAssumption {
    let named = |name: &String| {
        BrokenAssumption::ALL
            .into_iter()
            .find(|it| format!("{it:?}") == *name)
    };
    let name = env::var("REDLATCH_BROKEN").unwrap_or("None".to_owned());
    named(&name).expect("REDLATCH_BROKEN names what the history may break")
}

fn count(plain: u64) -> u64 {
    models::budget("REDLATCH_SEEDS", plain)
}

/// The command that shows a history.
fn how_to(seed: u64) -> String {
    format!("REDLATCH_SEED={seed} cargo test --test sim a_seed_can -- --nocapture")
}

/// Runs the histories of these seeds, which must keep all guarantees.
fn expect_none_broken(seeds: Range<u64>, focus: BrokenAssumption) -> Tally {
    let Campaign { tally, failures } = Campaign::run(seeds.clone(), focus);
    eprintln!("{seeds:?}: {tally}");
    let mut text = String::new();
    for (seed, violations) in &failures {
        let how_to = how_to(*seed);
        write!(
            text,
            "seed {seed}: {violations:?}\nREDLATCH_BROKEN={focus:?} {how_to}\n"
        )
        .expect("a String takes all");
    }
    assert!(failures.is_empty(), "{text}");
    assert_eq!(tally.histories, seeds.end - seeds.start);
    tally
}

/// Runs the histories of these seeds, which must keep all guarantees, and be full of events.
fn expect_promises_kept(seeds: Range<u64>) {
    let tally = expect_none_broken(seeds.clone(), BrokenAssumption::None);
    let histories = seeds.end - seeds.start;
    assert!(
        tally.grants > 0,
        "histories without any grant prove nothing"
    );
    if histories >= FULL {
        // Fewer histories need not contain everything.
        expect_full(&tally, histories);
    }
}

/// Histories with little of something prove little about it.
fn expect_full(tally: &Tally, histories: u64) {
    let (held, bare) = tally.held;
    let seen = [
        ("grants", tally.grants, histories),
        ("extensions", tally.extensions, histories / 10),
        ("handoffs", tally.handoffs, histories / 10),
        ("fencing tokens", tally.fenced, histories / 10),
        ("locks of several", tally.of_several, histories / 15),
        ("turns of waiters", tally.from_queue, histories),
        ("messages to waiters", tally.pushes, histories),
        ("checks of the order", tally.in_order, histories),
        ("waiters woken", tally.awaited_releases, histories),
        ("readers", tally.readers, histories),
        ("permits", tally.permits, histories / 2),
        ("turns for shares", tally.shares_from_queue, histories / 5),
        ("shares in order", tally.shares_in_order, histories / 5),
        ("extended shares", tally.extended_shares, histories / 10),
        ("split permits", tally.split_permits, histories / 50),
        ("restored permits", tally.restored_permits, histories / 40),
        ("locks held for long", held, histories / 10),
        ("examinations", tally.examined, histories / 2),
    ];
    for (what, count, least) in seen {
        assert!(count > least, "{what}: {count}, no more than {least}");
    }
    assert!(
        bare * 50 < held,
        "locks are not on all nodes: {bare} of {held}"
    );
    assert!(tally.kinds() >= KINDS_MIN, "few kinds of faults: {tally}");
}

/// Runs histories full of something rare, which must keep all guarantees.
fn expect_kept_with(focus: BrokenAssumption, seeds: Range<u64>) {
    for seed in seeds {
        let seen = broken(seed..seed + 1, focus, None);
        let how_to = how_to(seed);
        assert!(
            seen.is_empty(),
            "{seen:?}\nREDLATCH_BROKEN={focus:?} {how_to}"
        );
    }
}

/// The first of these histories that breaks this guarantee.
fn first_broken(
    mut seeds: Range<u64>,
    focus: BrokenAssumption,
    mistake: Option<Mistake>,
    promise: Invariant,
) -> Option<u64> {
    seeds.find(|seed| broken(*seed..*seed + 1, focus, mistake).contains(&promise))
}

/// With this mistake, one of the histories breaks this guarantee.
#[track_caller]
fn expect_caught(mistake: Mistake, focus: BrokenAssumption, promise: Invariant) {
    let first = mistake.first_shown();
    let seen = first_broken(first..first + ENOUGH, focus, Some(mistake), promise);
    eprintln!("{mistake:?} breaks {promise:?} by seed {seen:?}");
    assert!(seen.is_some(), "{mistake:?} is not caught");
}

/// The guarantees that these histories break.
fn broken(
    seeds: Range<u64>,
    broken_assumption: BrokenAssumption,
    mistake: Option<Mistake>,
) -> Vec<Invariant> {
    let violations = seeds.flat_map(|seed| run(seed, broken_assumption, mistake).1);
    violations.map(|(which, _)| which).collect()
}

#[test]
fn a_seed_can_be_replayed() {
    let Some(seed) = replayed() else { return };
    let result = Simulation::new(seed, replayed_assumption(), None, true).run();
    let violations = result.checker.violations;
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn histories_within_the_assumptions_keep_all_guarantees() {
    if replayed().is_none() {
        expect_promises_kept(0..count(SEEDS));
    }
}

#[test]
fn histories_that_broke_a_promise_once_keep_every_promise() {
    for seed in BROKEN_ONCE {
        let seen = broken(seed..seed + 1, BrokenAssumption::None, None);
        assert!(seen.is_empty(), "{seen:?}\n{}", how_to(seed));
    }
}

#[test]
fn histories_of_fresh_seeds_keep_all_guarantees() {
    if replayed().is_none() {
        let start = RandomState::new().build_hasher().finish() >> 1;
        eprintln!("fresh seeds from {start}");
        expect_promises_kept(start..start + count(FRESH));
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in 0..5 {
        let digest = |seed| {
            Simulation::new(seed, BrokenAssumption::None, None, false)
                .run()
                .digest
        };
        assert_eq!(digest(seed), digest(seed));
        assert_ne!(digest(seed), digest(seed + 1));
    }
}

#[test]
fn one_server_behind_two_nodes_is_never_counted_twice() {
    if replayed().is_none() {
        expect_kept_with(BrokenAssumption::NoneWithTwins, 0..count(20));
    }
}

#[test]
fn locks_extended_at_the_last_moment_have_one_holder_at_a_time() {
    if replayed().is_none() {
        // One of them shows that a confirmation can come too late.
        expect_kept_with(BrokenAssumption::NoneWithStalls, 0..count(20));
    }
}

#[test]
fn no_failover_of_a_group_gives_a_lock_away() {
    if replayed().is_none() {
        let histories = count(GROUPS);
        let tally = expect_none_broken(0..histories, BrokenAssumption::NoneWithGroups);
        assert!(
            tally.elections > histories,
            "histories with few failovers prove nothing"
        );
        assert!(
            tally.grants_after > histories,
            "nor those with few grants after one"
        );
        assert!(
            tally.extensions_after > histories,
            "nor those with few extensions"
        );
        assert!(
            tally.reclaimed > histories / 10,
            "nor those where few locks are reclaimed"
        );
        assert!(
            tally.proofs > histories / 10,
            "nor those with few reigns that are proven"
        );
        assert!(
            tally.moves > histories / 10,
            "nor those where few servers are left"
        );
    }
}

#[test]
fn waiting_threads_get_the_lock_in_time_with_a_silent_node() {
    if replayed().is_none() {
        // Three threads wait, two of three nodes are up, and rounds last half a ttl: no split
        // attempt may wait for the third node.
        expect_kept_with(BrokenAssumption::NoneWithSilence, 300..300 + count(40));
    }
}

#[test]
fn without_faults_waiters_are_served_in_order_and_soon() {
    if replayed().is_none() {
        expect_kept_with(BrokenAssumption::NoneQuiet, 0..count(12));
    }
}

#[test]
fn waiters_that_never_claim_the_lock_keep_nobody_out() {
    if replayed().is_none() {
        expect_kept_with(BrokenAssumption::NoneWithIdleClients, 0..count(12));
    }
}

#[test]
fn over_links_that_differ_a_free_permit_is_found_while_its_holders_make_no_call() {
    if replayed().is_none() {
        expect_kept_with(BrokenAssumption::NoneWithLinks, 0..count(4));
    }
}

#[test]
fn ten_thousand_waiters_are_served_in_order() {
    if replayed().is_none() {
        let violations = Simulation::run_abandoned_waiters(1);
        assert!(violations.is_empty(), "{violations:?}");
    }
}

#[test]
fn outside_the_assumptions_two_clients_can_hold_one_lock() {
    for broken_assumption in [
        BrokenAssumption::LostData,
        BrokenAssumption::LostSecond,
        BrokenAssumption::Drift,
        BrokenAssumption::ClientDrift,
        BrokenAssumption::Jump,
        BrokenAssumption::Eviction,
        BrokenAssumption::Strays,
        BrokenAssumption::Exchanged,
        BrokenAssumption::Restored,
    ] {
        // An unsolicited reply must arrive between a command and its reply, on a majority: the
        // histories before the 340th took long, and none of them has that.
        let seeds = if broken_assumption == BrokenAssumption::Strays {
            340..6_340
        } else {
            0..200
        };
        let seen = first_broken(seeds, broken_assumption, None, Invariant::MutualExclusion);
        eprintln!("{broken_assumption:?} breaks exclusion by seed {seen:?}");
        assert!(
            seen.is_some(),
            "{broken_assumption:?} is harmless, or the simulator blind"
        );
    }
}

#[test]
fn every_mistake_is_caught() {
    for (mistake, promise) in mistake::ALL {
        expect_caught(mistake, BrokenAssumption::None, promise);
    }
}

#[test]
fn every_mistake_about_groups_is_caught() {
    for mistake in mistake::OF_GROUPS {
        expect_caught(
            mistake,
            BrokenAssumption::NoneWithGroups,
            Invariant::MutualExclusion,
        );
    }
}
