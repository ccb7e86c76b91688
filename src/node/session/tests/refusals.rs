//! Removals that a node refuses to take, and scripts that it has forgotten.

use crate::engine::{Verb, Vote};
use crate::node::fixture::{Talk, request, ticket};
use crate::node::{Problem, SessionOptions};
use std::time::Duration;

const LOADING: &str = "-LOADING Redis is loading the dataset in memory\r\n";

#[test]
fn a_removal_that_is_refused_is_owed_for_its_ttl_and_no_longer() {
    let mut talk = Talk::ready();
    talk.post(1, Verb::Undo);
    assert_eq!(talk.commands(), ["EVAL 1"]);
    let ttl = request(Verb::Undo, 1, talk.now).ttl.as_duration();
    let (start, mut times) = (talk.now, 0);
    // The node is asked about something else now and then, and refuses that and the removal.
    while talk.session.load() != (0, 0) {
        talk.hear(LOADING);
        talk.pass(501);
        talk.send(9, Verb::Plant);
        talk.hear(LOADING);
        times += talk.commands().iter().filter(|command| *command == "EVAL 1").count();
        talk.answers();
        assert!(talk.now.since(start) < ttl + Duration::from_secs(2), "it is owed for ever");
    }
    assert!(times >= 1, "it is sent again");
}

#[test]
fn a_shorter_extension_is_not_sent_again_behind_a_longer_one() {
    let mut talk = Talk::ready();
    talk.send(1, Verb::Extend);
    talk.hear(":1\r\n");
    // From now on it is sent by its digest.
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    talk.commands();
    let extension = request(Verb::Extend, 1, talk.now);
    talk.session.send(talk.now, Some(ticket(2)), &extension);
    talk.session.send(talk.now, Some(ticket(3)), &extension);
    assert_eq!(talk.commands(), ["EVALSHA 1", "EVALSHA 1"]);
    talk.hear("-NOSCRIPT No matching script. Please use EVAL.\r\n");
    assert_eq!(talk.commands(), [""; 0], "the later one says all there is to say");
    assert_eq!(talk.votes(), [(2, Vote::Failed)]);
    talk.hear("-NOSCRIPT No matching script. Please use EVAL.\r\n");
    assert_eq!(talk.commands(), ["EVAL 1"]);
}

#[test]
fn a_web_server_is_recognised_however_its_words_are_cut() {
    for length in 1..12 {
        let mut talk = Talk::new(SessionOptions::new("redis://node", 7));
        talk.send(1, Verb::Plant);
        talk.connect();
        for part in b"HTTP/1.1 400".chunks(length) {
            talk.hear(part);
        }
        assert!(matches!(talk.problem(), Problem::NotRedis(_)), "in parts of {length}");
    }
}
