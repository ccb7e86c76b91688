//! Locks on ZooKeeper, the parts that need no server, in two models. One seed is one history.
//!
//! `ensemble` is a leader and a follower. Every history ends with a fault after which the session
//! ends although servers still answer, and the rule of validity must not promise more than the
//! ensemble keeps. `crowd` is the directories of two locks, for which several clients contend while
//! replies, connections and sessions get lost. So that a model can find a mistake at all, each
//! known wrong rule and each known wrong server or client must break it.

mod crowd;
mod ensemble;
mod garbage;
mod random;
mod rules;

use crowd::{Counts, Crowd, Mistake};
use ensemble::History;
use redlatch_protocol::time::Time;
use redlatch_zookeeper::validity::{SessionTimeout, Validity};
use rules::{Observation, Promise, Rule};
use std::collections::VecDeque;

/// Histories for each test.
const HISTORIES: u64 = 2_000;

/// The promises of the library's own rule.
fn promises(history: &History) -> Vec<Promise> {
    track(history, true)
}

/// The same, `forgets`: whether a new connection is told of.
fn track(history: &History, forgets: bool) -> Vec<Promise> {
    let terms = SessionTimeout::new(std::time::Duration::from_millis(ensemble::TIMEOUT), 0);
    let mut validity = Validity::new(terms);
    let mut in_flight = VecDeque::new();
    let mut promises: Vec<Promise> = Vec::new();
    for (index, observation) in history.observations.iter().enumerate() {
        let known_at = match *observation {
            Observation::Connected { sent_at, at } => {
                if forgets || index == 0 {
                    in_flight.clear();
                    validity.connected(Time::from_millis(sent_at), Time::from_millis(at), terms);
                }
                at
            }
            Observation::Sent { at, reach } => {
                in_flight.push_back(validity.sent(Time::from_millis(at), reach));
                at
            }
            Observation::Answered { at } => {
                let oldest = in_flight.pop_front().expect("an answer has a request");
                validity.answered(Time::from_millis(at), oldest);
                at
            }
        };
        let valid_until = validity.valid_until().as_nanos() / 1_000_000;
        if promises
            .last()
            .is_none_or(|last| last.valid_until < valid_until)
        {
            promises.push(Promise {
                known_at,
                valid_until,
            });
        }
    }
    promises
}

/// By how much, at most, the client believed in its session after others could have its locks.
fn overlap(history: &History, promises: &[Promise]) -> u64 {
    let kept = promises
        .iter()
        .filter(|promise| promise.known_at < promise.valid_until);
    kept.map(|promise| promise.valid_until.saturating_sub(history.gone_at))
        .max()
        .unwrap_or(0)
}

#[test]
fn no_client_believes_in_a_session_that_has_ended() {
    let mut proven = 0;
    for seed in 0..10 * HISTORIES {
        let history = ensemble::history(seed);
        let promises = promises(&history);
        assert_eq!(
            overlap(&history, &promises),
            0,
            "seed {seed}: {promises:?} {history:#?}"
        );
        proven += promises
            .iter()
            .filter(|promise| promise.valid_until > 0)
            .count();
    }
    assert!(
        proven as u64 > 10 * HISTORIES,
        "the rule promises something: {proven}"
    );
}

#[test]
fn the_library_promises_what_the_rule_says_and_little_less() {
    for seed in 0..HISTORIES {
        let history = ensemble::history(seed);
        let expected = Rule::RIGHT.promises(&history.observations);
        let promises = promises(&history);
        let latest = |promises: &[Promise], at: u64| {
            let known = promises.iter().filter(|promise| promise.known_at <= at);
            known.map(|promise| promise.valid_until).max().unwrap_or(0)
        };
        for Promise { known_at, .. } in &expected {
            let valid_until = latest(&expected, *known_at);
            // It keeps not more than 32 answered requests for each quarter of the timeout.
            let least = valid_until - (ensemble::TIMEOUT / 4 / 32 + 1);
            let promised = latest(&promises, *known_at);
            assert!(
                (least..=valid_until).contains(&promised),
                "seed {seed} at {known_at}"
            );
        }
    }
}

#[test]
fn each_wrong_rule_is_found() {
    for (name, rule) in Rule::WRONG {
        let found = (0..100 * HISTORIES).find_map(|seed| {
            let history = ensemble::history(seed);
            let overlap = overlap(&history, &rule.promises(&history.observations));
            (overlap > 0).then_some((seed, overlap))
        });
        let (seed, overlap) = found.unwrap_or_else(|| panic!("{name}: not found"));
        println!("{name}: with seed {seed}, for {overlap} ms");
    }
}

#[test]
fn replies_of_one_connection_to_requests_of_another_are_found() {
    let broken = |seed: &u64| {
        let history = ensemble::history(*seed);
        overlap(&history, &track(&history, false)) > 0
    };
    let found = (0..HISTORIES).find(broken);
    assert!(
        found.is_some(),
        "a tracker that forgets nothing was not found"
    );
}

#[test]
fn a_crowd_shares_locks_whatever_gets_lost() {
    let mut total = Counts::default();
    for seed in 0..HISTORIES {
        match Crowd::run(seed, Mistake::None) {
            Ok(counts) => {
                total.grants += counts.grants;
                total.together += counts.together;
            }
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
    println!("{HISTORIES} histories: {total:?}");
    assert!(total.grants as u64 > 10 * HISTORIES, "{total:?}");
    assert!(
        total.together as u64 > HISTORIES,
        "shares are held together: {total:?}"
    );
}

#[test]
fn a_crowd_notices_what_it_relies_on() {
    for mistake in [
        Mistake::SyncDoesNothing,
        Mistake::NoWatches,
        Mistake::NoWatchesOfShares,
        Mistake::DeletesAreForgotten,
        Mistake::ConnectionsAreNotTold,
        Mistake::SharesInTwoSteps,
        Mistake::WritersIgnoreShares,
        Mistake::SharesAreReadFirst,
        Mistake::PermitsHaveNoId,
        Mistake::SetsOneByOne,
    ] {
        let found = (0..HISTORIES).find_map(|seed| Some((seed, Crowd::run(seed, mistake).err()?)));
        let (seed, what) = found.unwrap_or_else(|| panic!("{mistake:?}: not found"));
        println!(
            "{mistake:?}: with seed {seed}, {}",
            what.lines().next().unwrap_or_default()
        );
    }
}
