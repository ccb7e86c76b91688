//! Nodes that were started too recently for their grants to count.

use crate::engine::{Verb, Vote};
use crate::node::fixture::{Talk, greeting};
use crate::node::{Problem, SessionOptions};
use std::time::Duration;

/// The vote of a plant `later` after a node greeted that had been up for `uptime` seconds.
fn quarantined(uptime: &str, later: u64) -> Option<Duration> {
    let mut options = SessionOptions::new("redis://node", 7);
    options.quarantine = Some(Duration::from_secs(60));
    let mut talk = Talk::new(options);
    talk.connect();
    talk.hear(greeting("a", 7).replace("uptime_in_seconds:7", uptime));
    talk.pass(later);
    talk.send(1, Verb::Plant);
    talk.hear("+OK\r\n");
    let answer = talk.answers().remove(0);
    match answer.problem {
        None => {
            assert_eq!(answer.vote, Vote::Granted);
            None
        }
        Some(Problem::Quarantined { left }) => {
            assert_eq!(answer.vote, Vote::Failed);
            Some(left)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_grant_counts_when_the_node_has_certainly_been_up_for_long_enough() {
    // A node's uptime is the difference of two times that were each cut off to whole seconds: it
    // may have been up for almost a second less than it says.
    let uptime = "uptime_in_seconds:7";
    assert_eq!(quarantined(uptime, 0), Some(Duration::from_secs(54)));
    assert_eq!(quarantined(uptime, 53_999), Some(Duration::from_millis(1)));
    assert_eq!(quarantined(uptime, 54_000), None);
    // The answer is as long as the question, so that its length stays right.
    assert_eq!(quarantined("uptime_in_second_:7", 59_999), Some(Duration::from_millis(1)));
    assert_eq!(quarantined("uptime_in_second_:7", 60_000), None);
    assert_eq!(quarantined("uptime_in_seconds:0", 0), Some(Duration::from_secs(60)));
}

#[test]
fn a_quarantined_node_still_extends_and_releases() {
    let mut options = SessionOptions::new("redis://node", 7);
    options.quarantine = Some(Duration::from_secs(60));
    let mut talk = Talk::new(options);
    talk.connect();
    talk.hear(greeting("a", 0));
    talk.send(1, Verb::Extend);
    talk.send(2, Verb::Release);
    talk.hear(":1\r\n:1\r\n");
    assert_eq!(talk.votes(), [(1, Vote::Granted), (2, Vote::Granted)]);
}
