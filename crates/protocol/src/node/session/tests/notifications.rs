//! What a node tells about waiters, and nodes that have no queue.

mod quarantine;
mod refusals;
mod watching;

use crate::engine::{QueueWait, Token, Verb, Vote};
use crate::node::fixture::{ScriptedSession, greeting, info, queue_wait, request, ticket};
use crate::node::session::Hint;
use crate::node::{QueueSupport, SessionOptions};
use std::time::Duration;

/// The answer to `SUBSCRIBE`.
const SUBSCRIBED: &str = ">3\r\n$9\r\nsubscribe\r\n$25\r\nredlatch:0000000000000007\r\n:1\r\n";

/// The answer to a waiter: the number of the command, and whether the lock is reserved.
fn queued(number: u64, is_reserved: bool) -> String {
    format!("*7\r\n:{number}\r\n:7\r\n:0\r\n:{}\r\n:900\r\n:1\r\n$0\r\n\r\n", u8::from(is_reserved))
}

/// The answers to the first waiter on a connection, which is notified.
fn first_queued() -> String {
    format!("{SUBSCRIBED}{}", queued(2, false))
}

/// A session with waiters 1 to `waiters`, each of which is notified.
fn notified(waiters: u64) -> ScriptedSession {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Queue);
    talk.hear(first_queued());
    for waiter in 2..=waiters {
        talk.send(waiter, Verb::Queue);
        talk.hear(queued(waiter + 1, false));
    }
    let votes: Vec<_> = (1..=waiters).map(|waiter| (waiter, Vote::Granted)).collect();
    assert_eq!(talk.votes(), votes);
    talk.commands();
    talk
}

/// A session on a connection that speaks RESP2.
fn old() -> ScriptedSession {
    let mut talk = ScriptedSession::new(SessionOptions::new("redis://node", 7));
    talk.connect();
    talk.hear(format!("*2\r\n+proto\r\n:2\r\n{}", info("a", 1_000)));
    assert!(talk.session.is_ready());
    talk
}

/// A message on the channel of the connection: the waiter, and these words.
fn message(waiter: u8, words: &str) -> Vec<u8> {
    let text = [&[waiter; Token::LEN][..], words.as_bytes()].concat();
    let head = ">3\r\n$7\r\nmessage\r\n$25\r\nredlatch:0000000000000007\r\n";
    [format!("{head}${}\r\n", text.len()).as_bytes(), &text, b"\r\n"].concat()
}

/// The push about a change of the lock's key.
const CHANGED: &str = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nkey\r\n";

/// What the node has told, by waiter.
fn hints(talk: &mut ScriptedSession) -> Vec<(u8, Hint)> {
    let hints = std::iter::from_fn(|| talk.session.poll_hint());
    hints.map(|(waiter, hint)| (waiter.as_bytes()[0], hint)).collect()
}

/// Does the answer to the next request of this waiter say that it will be notified?
fn is_heard(talk: &mut ScriptedSession) -> bool {
    let answers = talk.answers();
    let views: Vec<_> = answers.iter().filter_map(|answer| answer.reply.view.clone()).collect();
    assert_eq!(views.len(), 1, "{answers:?}");
    views[0].is_heard
}

/// Has the node tell when the key changes that this waiter waits for.
fn watch(talk: &mut ScriptedSession, waiter: u8, watches: bool) {
    let wait = QueueWait { watches, ..queue_wait(waiter, talk.now) };
    talk.session.watch_key(talk.now, &wait);
}

#[test]
fn a_connection_subscribes_once_before_its_first_waiter_enters_the_queue() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Queue);
    let written = talk.written();
    let before =
        "*2\r\n$9\r\nSUBSCRIBE\r\n$25\r\nredlatch:0000000000000007\r\n*10\r\n$4\r\nEVAL\r\n";
    assert!(written.starts_with(before), "{written}");
    assert!(written.contains("$37\r\n7 150 1000 redlatch:0000000000000007 \r\n"), "{written}");
    talk.hear(first_queued());
    assert!(is_heard(&mut talk));

    // The same waiter again, and then another.
    talk.send(1, Verb::Queue);
    talk.send(2, Verb::Queue);
    assert_eq!(talk.commands(), ["EVALSHA 1", "EVALSHA 2"]);
}

#[test]
fn every_connection_subscribes() {
    let mut talk = notified(1);
    talk.lose();
    assert_eq!(hints(&mut talk), [(1, Hint::Lost)]);
    talk.pass(500);
    talk.connect();
    talk.hear(greeting("a", 1_000));
    talk.send(1, Verb::Queue);
    assert_eq!(talk.commands(), ["SUBSCRIBE", "EVAL 1"]);
}

#[test]
fn no_other_request_subscribes() {
    for verb in [Verb::Turn, Verb::Undo, Verb::Acquire] {
        let mut talk = ScriptedSession::ready();
        talk.send(1, verb);
        assert_eq!(talk.commands().len(), 1, "{verb:?}");
    }
}

#[test]
fn without_resp3_a_waiter_names_no_channel_and_has_longer_to_claim() {
    let mut talk = old();
    talk.send(1, Verb::Queue);
    let written = talk.written();
    assert!(written.contains("$12\r\n7 350 1000  \r\n"), "{written}");
    talk.hear(queued(1, false));
    assert!(!is_heard(&mut talk));
    assert_eq!(talk.session.queue_support(), Some(QueueSupport::WithoutPushes));
}

#[test]
fn a_message_says_that_the_lock_is_reserved_or_when_to_ask() {
    let mut talk = notified(2);
    talk.hear(message(2, "r"));
    talk.hear([message(1, "w0"), message(1, "w100"), message(2, "r")].concat());
    let expected = [
        (2, Hint::Reserved),
        (1, Hint::AskIn(Duration::ZERO)),
        (1, Hint::AskIn(Duration::from_millis(100))),
        (2, Hint::Reserved),
    ];
    assert_eq!(hints(&mut talk), expected);
}

#[test]
fn a_message_may_come_before_the_answer_to_the_waiter() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Queue);
    talk.hear(SUBSCRIBED);
    talk.hear(message(1, "r"));
    assert_eq!(hints(&mut talk), [(1, Hint::Reserved)]);
    talk.hear(queued(2, true));
    assert_eq!(hints(&mut talk), [(1, Hint::Reserved)], "the answer says it as well");
    assert!(is_heard(&mut talk));
}

#[test]
fn an_answer_that_the_lock_is_reserved_is_a_hint() {
    for (is_reserved, expected) in [(false, &[][..]), (true, &[(1, Hint::Reserved)])] {
        let mut talk = old();
        talk.send(1, Verb::Queue);
        talk.hear(queued(1, is_reserved));
        assert_eq!(hints(&mut talk), expected);
        let answers = talk.answers();
        assert_eq!(answers[0].reply.counter, Some(7), "its number in the queue");
        assert_eq!(answers[0].reply.view.as_ref().map(|view| view.is_reserved), Some(is_reserved));
    }
}

#[test]
fn messages_and_pushes_of_other_forms_are_ignored() {
    let mut table: Vec<Vec<u8>> =
        ["", "x", "rr", "w", "wx", "w-1", "w 1", "w99999999999999999999999", "W1"]
            .iter()
            .map(|words| message(1, words))
            .collect();
    let name = "\u{1}".repeat(20);
    let others = [
        format!(">3\r\n+message\r\n$1\r\na\r\n$21\r\n{name}r\r\n"),
        format!(">2\r\n$7\r\nmessage\r\n$21\r\n{name}r\r\n"),
        ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nr\r\n".to_owned(),
        format!(">4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\na\r\n$21\r\n{name}r\r\n"),
        ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n".to_owned(),
        ">2\r\n+invalidate\r\n*1\r\n$3\r\nkey\r\n".to_owned(),
        ">2\r\n$10\r\ninvalidate\r\n$3\r\nkey\r\n".to_owned(),
        ">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nkex\r\n".to_owned(),
        ">2\r\n$10\r\ninvalidate\r\n*1\r\n*1\r\n$3\r\nkey\r\n".to_owned(),
        ">1\r\n$10\r\ninvalidate\r\n".to_owned(),
        ">2\r\n$10\r\ninvalidate\r\n*0\r\n".to_owned(),
    ];
    table.extend(others.map(String::into_bytes));
    let mut talk = notified(1);
    watch(&mut talk, 1, true);
    talk.hear("+OK\r\n+OK\r\n:5\r\n");
    for bytes in table {
        talk.hear(&bytes);
        assert_eq!(hints(&mut talk), [], "{}", bytes.escape_ascii());
        assert!(!talk.session.is_down(), "{}", bytes.escape_ascii());
    }
    talk.hear(CHANGED);
    assert_eq!(hints(&mut talk), [(1, Hint::Changed)]);
}

#[test]
fn a_client_that_may_not_subscribe_waits_without_being_notified() {
    for refusal in ["-NOPERM no permissions to access a channel", "-ERR unknown command"] {
        let mut talk = ScriptedSession::ready();
        talk.send(1, Verb::Queue);
        talk.hear(format!("{refusal}\r\n{}", queued(2, false)));
        // Its entry names a channel that nobody hears: it renews it.
        assert_eq!(hints(&mut talk), [(1, Hint::Lost)], "{refusal}");
        assert!(!is_heard(&mut talk), "{refusal}");
        let support = talk.session.queue_support();
        assert_eq!(support, Some(QueueSupport::WithoutPushes), "{refusal}");
        talk.commands();
        // It is not asked again on this connection.
        talk.send(1, Verb::Queue);
        let written = talk.written();
        assert!(written.contains("7 350 1000  \r\n"), "{refusal}: {written}");
        assert!(!written.contains("SUBSCRIBE") && !talk.session.is_down(), "{refusal}");
    }
}

#[test]
fn a_reply_that_answers_neither_subscribing_nor_watching_closes_the_connection() {
    for reply in [":1\r\n", "+OK\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"] {
        let mut talk = ScriptedSession::ready();
        talk.send(1, Verb::Queue);
        talk.hear(reply);
        assert_eq!(talk.votes(), [(1, Vote::Failed)], "{reply}");
        assert!(talk.session.is_down(), "{reply}");
    }
    for replies in [":1\r\n", "+OK\r\n:2\r\n", "+OK\r\n+OK\r\n+OK\r\n", "+OK\r\n+OK\r\n:4\r\n"] {
        let mut talk = notified(1);
        watch(&mut talk, 1, true);
        talk.hear(replies);
        assert!(talk.session.is_down(), "{replies}");
    }
}

#[test]
fn what_a_queue_lacks_is_reported_once() {
    let mut talk = notified(1);
    assert_eq!(talk.session.take_queue_change(), None, "a queue that lacks nothing");
    let mut talk = old();
    assert_eq!(talk.session.take_queue_change(), None, "it is not known yet");
    for number in 1..=2 {
        talk.send(number, Verb::Queue);
        talk.hear(queued(number, false));
        let expected = (number == 1).then_some(QueueSupport::WithoutPushes);
        assert_eq!(talk.session.take_queue_change(), expected);
    }
    talk.lose();
    talk.pass(500);
    talk.connect();
    talk.hear(format!("*2\r\n+proto\r\n:2\r\n{}", info("a", 1_000)));
    let again = request(Verb::Queue, 3, talk.now);
    talk.session.send(talk.now, Some(ticket(3)), &again);
    talk.answers();
    talk.hear(queued(3, false));
    assert_eq!(talk.votes(), [(3, Vote::Granted)]);
    assert_eq!(talk.session.take_queue_change(), None, "the same on every connection");
}
