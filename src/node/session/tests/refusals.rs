//! Removals that a node refuses to take, and scripts that it has forgotten.

use crate::engine::{Verb, Vote};
use crate::node::fixture::{Talk, greeting, request, ticket};
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
fn an_extension_is_sent_again_whatever_was_sent_behind_it() {
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
    talk.hear("-NOSCRIPT No matching script. Please use EVAL.\r\n".repeat(2));
    assert_eq!(talk.commands(), ["EVAL 1", "EVAL 1"], "it only ever lengthens");
    talk.hear(":4\r\n:5\r\n");
    assert_eq!(talk.votes(), [(2, Vote::Granted), (3, Vote::Granted)]);
}

#[test]
fn a_removal_that_is_answered_by_nonsense_is_owed_like_one_that_is_not_answered() {
    let nonsense =
        ["+OK\r\n", ":2\r\n", "$-1\r\n", "*1\r\n:1\r\n", "-NOSCRIPT No matching script.\r\n"];
    for reply in nonsense {
        let mut talk = Talk::ready();
        talk.send(1, Verb::Release);
        assert_eq!(talk.commands(), ["EVAL 1"]);
        talk.hear(reply);
        assert_eq!((talk.votes(), talk.session.load().1), (vec![(1, Vote::Failed)], 1), "{reply}");
        // Not at once: a node that answers like this might do so for ever.
        talk.pass(20);
        if talk.session.is_down() {
            assert!(talk.session.wants_connection(talk.now));
            talk.connect();
            talk.hear(greeting("a", 1_000));
        }
        assert_eq!(talk.commands(), [""; 0], "{reply}");
        talk.pass(500);
        talk.send(2, Verb::Plant);
        talk.hear("+OK\r\n");
        assert_eq!(talk.commands(), ["SET 2", "EVAL 1"], "{reply}");
    }
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
