//! Removals that are written together: the first carries the source of the script.

use crate::engine::{Verb, Vote};
use crate::node::fixture::{ScriptedSession, greeting};

#[test]
fn of_removals_in_one_write_the_first_carries_the_source_of_the_script() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Release);
    talk.post(2, Verb::Undo);
    talk.send(3, Verb::Release);
    assert_eq!(talk.commands(), ["EVAL 1", "EVALSHA 2", "EVALSHA 3"]);
    talk.send(4, Verb::Release);
    assert_eq!(talk.commands(), ["EVAL 4"], "the server may have forgotten it since");
    talk.send(5, Verb::Release);
    talk.lose();
    talk.votes();
    talk.pass(20);
    talk.connect();
    talk.hear(greeting("a", 1_000));
    let first = talk.commands().into_iter().next();
    assert!(first.is_some_and(|it| it.starts_with("EVAL ")), "nothing of the write was sent");
}

#[test]
fn a_server_that_does_not_know_a_script_after_its_source_always_gets_the_source() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Release);
    talk.send(2, Verb::Release);
    assert_eq!(talk.commands(), ["EVAL 1", "EVALSHA 2"]);
    talk.hear(":1\r\n-NOSCRIPT No matching script.\r\n");
    assert_eq!(talk.commands(), ["EVAL 2"]);
    talk.hear(":3\r\n");
    assert_eq!(talk.votes(), [(1, Vote::Granted), (2, Vote::Granted)]);
    talk.send(3, Verb::Release);
    talk.send(4, Verb::Release);
    assert_eq!(talk.commands(), ["EVAL 3", "EVAL 4"]);
}
