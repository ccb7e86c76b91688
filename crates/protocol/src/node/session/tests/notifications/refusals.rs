//! Errors to a waiter: which of them mean that the node has no queue.

use super::*;
use crate::node::{NodeError, ServerErrorKind};

const LASTING: [&str; 4] = [
    "-NOPERM this user has no permissions to run the 'zadd' command\r\n",
    "-ERR unknown command 'ZADD'\r\n",
    "-ERR Unknown Redis command called from script\r\n",
    "-ERR user_script:8: attempt to index a nil value\r\n",
];

/// A session whose node has refused waiter 1 like this.
fn refused(error: &str) -> ScriptedSession {
    let mut talk = old();
    talk.send(1, Verb::Queue);
    talk.commands();
    talk.hear(error);
    talk
}

/// A removal of the lock of `owner` with its waiter.
fn leave(talk: &mut ScriptedSession, owner: u8) {
    let mut undo = request(Verb::Undo, owner, talk.now);
    undo.removal_mut().waiter = Some(Token::new([owner; Token::LEN]));
    talk.session.send(talk.now, None, &undo);
}

#[test]
fn lasting_errors_mean_that_the_node_has_no_queue() {
    for error in LASTING {
        let mut talk = refused(error);
        let problem = talk.problem();
        assert!(matches!(problem, NodeError::NoQueue(_)), "{error}: {problem:?}");
        assert!(!problem.is_permanent(), "its locks are as good as any: {error}");
        assert_eq!(talk.session.queue_support(), Some(QueueSupport::Unsupported), "{error}");
        assert_eq!(talk.session.take_queue_change(), Some(QueueSupport::Unsupported), "{error}");
        assert!(!talk.session.is_down(), "{error}");
    }
}

#[test]
fn a_refused_waiter_is_withdrawn_all_the_same() {
    for error in LASTING {
        let mut talk = refused(error);
        let written = talk.written();
        let names = written.matches(&"\u{1}".repeat(Token::LEN)).count();
        assert_eq!(names, 2, "it may have entered before it was refused: {written}");
        talk.hear(":2\r\n");
        assert_eq!(talk.session.load(), (0, 0), "{error}");
    }
}

#[test]
fn later_waiters_fail_at_once_and_are_withdrawn() {
    let mut talk = refused(LASTING[0]);
    talk.answers();
    talk.commands();
    talk.hear(":2\r\n");
    talk.send(2, Verb::Queue);
    let problem = talk.problem();
    let NodeError::NoQueue(error) = &problem else { panic!("{problem:?}") };
    assert_eq!(error.kind, ServerErrorKind::NoPermission);
    let written = talk.written();
    assert!(written.contains(&"\u{2}".repeat(Token::LEN)), "{written}");
    assert!(!written.contains("'ZADD'"), "only the attempt is withdrawn: {written}");
    talk.hear(":3\r\n");
    assert_eq!((talk.votes(), talk.session.load()), (vec![], (0, 0)));
}

#[test]
fn a_turn_on_a_node_without_a_queue_is_a_plain_attempt() {
    let mut talk = refused(LASTING[1]);
    talk.answers();
    talk.commands();
    talk.hear(":2\r\n");
    talk.send(2, Verb::Turn);
    // An error came before, but the removal's reply has proven the order of replies since.
    assert_eq!(talk.commands(), ["SET 2"]);
    talk.hear("+OK\r\n");
    assert_eq!(talk.votes(), [(2, Vote::Granted)]);
    talk.send(3, Verb::Turn);
    talk.hear("$-1\r\n");
    assert_eq!(talk.votes(), [(3, Vote::Refused)]);
}

#[test]
fn removals_on_a_node_without_a_queue_name_the_waiter_who_may_have_entered_half_way() {
    // The waiter has the name of the lock's token.
    let names = |written: &str| written.matches(&"\u{5}".repeat(Token::LEN)).count();
    let mut talk = refused(LASTING[2]);
    talk.answers();
    talk.commands();
    talk.hear(":2\r\n");
    leave(&mut talk, 5);
    let written = talk.written();
    assert_eq!(names(&written), 2, "{written}");
    assert!(written.contains("reserve()"), "it still reserves the lock: {written}");
}

#[test]
fn transient_errors_do_not_mean_that_there_is_no_queue() {
    let errors = [
        "-BUSY Redis is busy running a script\r\n",
        "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-MISCONF Errors writing to the AOF file\r\n",
        "-NOREPLICAS Not enough good replicas to write.\r\n",
    ];
    for error in errors {
        let mut talk = refused(error);
        assert!(matches!(talk.problem(), NodeError::Server(_)), "{error}");
        assert_eq!(talk.session.queue_support(), None, "{error}");
        assert_eq!(talk.session.load(), (0, 1), "the attempt is withdrawn later: {error}");
        talk.send(2, Verb::Queue);
        assert_eq!(talk.commands(), ["EVAL 2"], "{error}");
    }
}

#[test]
fn a_key_of_another_type_refuses_a_waiter_and_no_more() {
    let mut talk = refused("-WRONGTYPE Operation against a key\r\n");
    assert_eq!(talk.votes(), [(1, Vote::Refused)]);
    assert_eq!(talk.session.queue_support(), None);
}

#[test]
fn another_connection_is_asked_again() {
    let mut talk = refused(LASTING[0]);
    talk.answers();
    talk.lose();
    talk.pass(500);
    talk.connect();
    talk.hear(greeting("b", 0));
    talk.send(2, Verb::Queue);
    let commands = talk.commands();
    assert_eq!(commands.last().map(String::as_str), Some("EVAL 2"), "{commands:?}");
    assert_eq!(talk.votes(), []);
}

#[test]
fn a_node_that_refused_a_waiter_is_asked_again_after_a_while() {
    for (later, is_asked) in [(29_999, false), (30_000, true)] {
        let mut talk = refused(LASTING[0]);
        talk.answers();
        talk.commands();
        talk.hear(":2\r\n");
        talk.pass(later);
        talk.send(2, Verb::Queue);
        let written = talk.written();
        assert_eq!(written.contains("'ZADD'"), is_asked, "{later}");
    }
}

#[test]
fn an_unsent_waiter_that_is_cancelled_still_withdraws_its_attempt() {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    talk.send(1, Verb::Queue);
    talk.connect();
    assert!(talk.session.cancel(ticket(1)));
    talk.hear(greeting("a", 1_000));
    assert_eq!(talk.commands(), ["EVAL 1"], "no waiter enters a queue");
    talk.hear(":1\r\n");
    assert_eq!((talk.votes(), talk.session.load()), (vec![], (0, 0)));
}

#[test]
fn a_waiter_that_cannot_be_sent_leaves_the_withdrawal_of_its_attempt_pending() {
    // Without a connection, and with one that is lost before the answer.
    let mut down = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    down.session.connecting(down.now, crate::node::Phase::Connecting);
    down.lose();
    let mut lost = ScriptedSession::ready();
    lost.send(1, Verb::Queue);
    lost.lose();
    down.send(1, Verb::Queue);
    for mut talk in [down, lost] {
        assert_eq!((talk.votes(), talk.session.load()), (vec![(1, Vote::Failed)], (0, 1)));
        talk.pass(500);
        assert!(talk.session.wants_connection(talk.now));
        talk.connect();
        talk.hear(greeting("a", 1_000));
        assert_eq!(talk.commands(), ["EVAL 1"]);
    }
}

#[test]
fn a_waiter_whose_script_is_unknown_is_not_sent_again_behind_its_removal() {
    let mut talk = notified(1);
    talk.send(1, Verb::Queue);
    leave(&mut talk, 1);
    assert_eq!(talk.commands(), ["EVALSHA 1", "EVAL 1"]);
    talk.hear("-NOSCRIPT No matching script.\r\n");
    assert_eq!(talk.commands(), [""; 0], "it would stand in the queue until its lease ends");
    assert_eq!(talk.votes(), [(1, Vote::Failed)]);
}

#[test]
fn a_waiter_whose_script_is_unknown_is_not_sent_again_behind_its_release() {
    let mut talk = notified(1);
    talk.send(2, Verb::Queue);
    talk.commands();
    // It has taken its turn with another token, and released the lock.
    let mut undo = request(Verb::Undo, 9, talk.now);
    undo.removal_mut().waiter = Some(Token::new([2; Token::LEN]));
    talk.session.send(talk.now, None, &undo);
    assert_eq!(talk.commands(), ["EVAL 9"]);
    talk.hear("-NOSCRIPT No matching script\r\n");
    // Only the failed attempt is withdrawn.
    assert_eq!(talk.commands(), ["EVAL 2"]);
}
