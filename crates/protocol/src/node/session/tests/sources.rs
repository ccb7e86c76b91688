//! Removals that are written together: the first carries the source of the script.

use crate::engine::{Verb, Vote};
use crate::node::fixture::{ScriptedSession, greeting};

/// The server has run the script that removes a lock.
fn practised() -> ScriptedSession {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Release);
    talk.hear(":1\r\n");
    assert_eq!(talk.commands(), ["EVAL 1"]);
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    talk
}

#[test]
fn of_removals_in_one_write_the_first_carries_the_source_of_the_script() {
    let mut talk = practised();
    talk.send(2, Verb::Release);
    talk.post(3, Verb::Undo);
    talk.send(4, Verb::Release);
    assert_eq!(talk.commands(), ["EVAL 2", "EVALSHA 3", "EVALSHA 4"]);
    talk.send(5, Verb::Release);
    assert_eq!(talk.commands(), ["EVAL 5"], "the server may have forgotten it since");
    talk.send(6, Verb::Release);
    talk.lose();
    talk.votes();
    talk.pass(20);
    talk.connect();
    talk.hear(greeting("a", 1_000));
    let first = talk.commands().into_iter().next();
    assert!(first.is_some_and(|it| it.starts_with("EVAL ")), "nothing of the write was sent");
}

#[test]
fn a_server_that_may_refuse_the_first_of_them_unread_gets_the_source_with_each() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Release);
    talk.post(2, Verb::Undo);
    assert_eq!(talk.commands(), ["EVAL 1", "EVAL 2"], "nobody may read that it is unknown");
}

#[test]
fn a_server_that_does_not_know_a_script_after_its_source_always_gets_the_source() {
    let mut talk = practised();
    talk.send(2, Verb::Release);
    talk.send(3, Verb::Release);
    assert_eq!(talk.commands(), ["EVAL 2", "EVALSHA 3"]);
    talk.hear(":2\r\n-NOSCRIPT No matching script.\r\n");
    assert_eq!(talk.commands(), ["EVAL 3"]);
    talk.hear(":4\r\n");
    assert_eq!(talk.votes(), [(2, Vote::Granted), (3, Vote::Granted)]);
    talk.send(4, Verb::Release);
    talk.send(5, Verb::Release);
    assert_eq!(talk.commands(), ["EVAL 4", "EVAL 5"]);
}
