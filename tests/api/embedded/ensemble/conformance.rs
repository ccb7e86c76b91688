//! The same requests to a real ZooKeeper 3.8 and to an ensemble inside the process: each reply,
//! each number in it and each event must be the same.

use super::client_scripts::*;
use super::random;
use super::real::RealServer;
use super::script::transcript;
use super::znode_scripts::*;
use redlatch::embedded::Ensemble;
use std::time::Duration;

const TICK: Duration = Duration::from_secs(2);
const NEVER: Duration = Duration::from_secs(1_000_000);

/// Random sequences, and steps in each.
const HISTORIES: u64 = 40;
const STEPS: usize = 60;

#[test]
fn a_zookeeper_replies_the_same() {
    let Some(real) = RealServer::start(TICK, NEVER) else {
        return;
    };
    let embedded = Ensemble::builder()
        .tick(TICK)
        .session_timeouts(2 * TICK..=Duration::from_secs(600))
        .container_interval(NEVER)
        .start()
        .unwrap();
    let scripts = [
        ("reads", reads()),
        ("creates", creates()),
        ("deletes", deletes()),
        ("data", data()),
        ("paths", paths()),
        ("transactions", transactions()),
        ("watches", watches()),
        ("credentials", credentials()),
        ("sessions", sessions()),
        ("bad requests", bad_requests()),
    ];
    let random = (0..HISTORIES).map(|seed| ("random", random::script(seed, STEPS)));
    let mut differences = Vec::new();
    for (index, (name, script)) in scripts.into_iter().chain(random).enumerate() {
        let expected = transcript(real.port(), &script);
        let found = transcript(embedded.port(), &script);
        for (expected, found) in expected.into_iter().zip(found) {
            if expected != found {
                differences.push(format!("{index} {name}\n  real {expected}\n  ours {found}"));
            }
        }
    }
    let first = &differences[..differences.len().min(20)];
    assert!(
        first.is_empty(),
        "{} differences\n{}",
        differences.len(),
        first.join("\n")
    );
}
