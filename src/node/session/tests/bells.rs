//! What a node tells about reservations, and nodes that have no queue.

mod quarantine;
mod refusals;

use crate::engine::{Token, Verb, Vote};
use crate::node::fixture::{ScriptedSession, greeting, info, request, ticket};
use crate::node::{QueueSupport, SessionOptions};

/// The answer to a waiter: the number of the command, and whether the lock is reserved.
fn queued(number: u64, is_reserved: bool) -> String {
    format!("*6\r\n:{number}\r\n:7\r\n:0\r\n:{}\r\n:900\r\n:1\r\n", u8::from(is_reserved))
}

/// The answers to the first waiter on a connection, which is told of reservations.
fn first_queued() -> String {
    format!("+OK\r\n+OK\r\n:3\r\n{}", queued(4, false))
}

/// A session with waiters 1 to `waiters`, each of which is told of reservations.
fn listening(waiters: u64) -> ScriptedSession {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Queue);
    talk.hear(first_queued());
    for waiter in 2..=waiters {
        talk.send(waiter, Verb::Queue);
        let number = 3 * waiter;
        talk.hear(format!("+OK\r\n:{number}\r\n{}", queued(number + 1, false)));
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

fn bell(waiter: u8) -> Vec<u8> {
    [&b"key:redlatch:bell:"[..], &[waiter; Token::LEN]].concat()
}

/// The push about a change of these keys.
fn push(keys: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!(">2\r\n$10\r\ninvalidate\r\n*{}\r\n", keys.len()).into_bytes();
    for key in keys {
        bytes.extend_from_slice(format!("${}\r\n", key.len()).as_bytes());
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The waiters whose bell has rung.
fn rings(talk: &mut ScriptedSession) -> Vec<u8> {
    let rings = std::iter::from_fn(|| talk.session.poll_ring());
    rings.map(|waiter| waiter.as_bytes()[0]).collect()
}

/// Does the answer to the next request of this waiter say that it will be told?
fn is_heard(talk: &mut ScriptedSession) -> bool {
    let answers = talk.answers();
    let views: Vec<_> = answers.iter().filter_map(|answer| answer.view).collect();
    assert_eq!(views.len(), 1, "{answers:?}");
    views[0].is_heard
}

#[test]
fn a_waiter_is_announced_once_before_it_enters_the_queue() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Queue);
    let written = talk.written();
    let before = "*4\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n$5\r\nOPTIN\r\n\
                  *3\r\n$6\r\nCLIENT\r\n$7\r\nCACHING\r\n$3\r\nYES\r\n*5\r\n$4\r\nEVAL\r\n";
    assert!(written.starts_with(before), "{written}");
    let bell = String::from_utf8(bell(1)).expect("text");
    assert!(
        written.contains(&format!("$1\r\n1\r\n$38\r\n{bell}\r\n$1\r\n3\r\n*11\r\n")),
        "{written}"
    );
    talk.hear(first_queued());
    assert!(is_heard(&mut talk));

    // The same waiter again, and then another.
    talk.send(1, Verb::Queue);
    assert_eq!(talk.commands(), ["EVALSHA 1"]);
    talk.send(2, Verb::Queue);
    assert_eq!(talk.commands(), ["CLIENT", "EVAL", "EVALSHA 2"], "the script is not forgotten");
}

#[test]
fn every_connection_is_told_about_its_waiters() {
    let mut talk = listening(1);
    talk.lose();
    talk.pass(500);
    talk.connect();
    talk.hear(greeting("a", 1_000));
    talk.send(1, Verb::Queue);
    assert_eq!(talk.commands(), ["CLIENT", "CLIENT", "EVAL", "EVAL 1"]);
}

#[test]
fn no_other_request_about_a_waiter_is_announced() {
    for verb in [Verb::Turn, Verb::Undo, Verb::Acquire] {
        let mut talk = ScriptedSession::ready();
        talk.send(1, verb);
        assert_eq!(talk.commands().len(), 1, "{verb:?}");
    }
}

#[test]
fn without_resp3_a_waiter_is_not_told() {
    let mut talk = old();
    talk.send(1, Verb::Queue);
    assert_eq!(talk.commands(), ["EVAL 1"]);
    talk.hear(queued(1, false));
    assert!(!is_heard(&mut talk));
    assert_eq!(talk.session.queue_support(), Some(QueueSupport::WithoutPushes));
}

#[test]
fn a_push_for_a_bell_rings_once_and_only_for_a_known_waiter() {
    let mut talk = listening(2);
    talk.hear(push(&[bell(2)]));
    assert_eq!(rings(&mut talk), [2]);
    talk.hear(push(&[bell(2)]));
    talk.hear(push(&[bell(9)]));
    assert_eq!(rings(&mut talk), []);
    talk.hear(push(&[bell(9), bell(1), bell(1)]));
    assert_eq!(rings(&mut talk), [1]);
    // The server has forgotten it, so it is read again before the waiter's next request.
    talk.send(2, Verb::Queue);
    assert_eq!(talk.commands(), ["CLIENT", "EVAL", "EVALSHA 2"]);
    talk.hear(format!("+OK\r\n:9\r\n{}", queued(10, false)));
    talk.hear(push(&[bell(2)]));
    assert_eq!(rings(&mut talk), [2]);
}

#[test]
fn a_bell_rings_before_its_waiter_is_answered_too() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Queue);
    talk.hear("+OK\r\n+OK\r\n:3\r\n");
    talk.hear(push(&[bell(1)]));
    assert_eq!(rings(&mut talk), [1]);
    talk.hear(queued(4, true));
    assert_eq!(rings(&mut talk), [1], "the answer says it as well");
    assert!(!is_heard(&mut talk), "the push has used up what the server remembered");
}

#[test]
fn an_answer_that_the_lock_is_reserved_rings() {
    for (is_reserved, expected) in [(false, &[][..]), (true, &[1])] {
        let mut talk = old();
        talk.send(1, Verb::Queue);
        talk.hear(queued(1, is_reserved));
        assert_eq!(rings(&mut talk), expected);
        let answers = talk.answers();
        assert_eq!(answers[0].counter, Some(7), "its number in the queue");
        assert_eq!(answers[0].view.map(|view| view.is_reserved), Some(is_reserved));
    }
}

#[test]
fn pushes_of_other_keys_and_forms_are_ignored() {
    let name = |infix: &str, length| [infix.as_bytes(), &vec![1; length]].concat();
    let mut table: Vec<Vec<u8>> = [
        name("key:redlatch:bell:", 19),
        name("key:redlatch:bell:", 21),
        name("key:redlatch:lease:", 20),
        name("key", 0),
        name("", 0),
        name("", 20),
    ]
    .iter()
    .map(|key| push(std::slice::from_ref(key)))
    .collect();
    let bell = String::from_utf8(bell(1)).expect("text");
    let others = [
        format!(">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$38\r\n{bell}\r\n"),
        format!(">2\r\n+invalidate\r\n*1\r\n$38\r\n{bell}\r\n"),
        format!(">2\r\n$10\r\ninvalidate\r\n$38\r\n{bell}\r\n"),
        format!(">2\r\n$10\r\ninvalidate\r\n*1\r\n+{}\r\n", "x".repeat(38)),
        format!(">2\r\n$10\r\ninvalidate\r\n*1\r\n*1\r\n$38\r\n{bell}\r\n"),
        ">1\r\n$10\r\ninvalidate\r\n".to_owned(),
        ">2\r\n$10\r\ninvalidate\r\n*0\r\n".to_owned(),
    ];
    table.extend(others.map(String::into_bytes));
    let mut talk = listening(1);
    for bytes in table {
        talk.hear(&bytes);
        assert_eq!(rings(&mut talk), [], "{}", bytes.escape_ascii());
        assert!(!talk.session.is_down(), "{}", bytes.escape_ascii());
    }
    talk.hear(push(&[bell.into_bytes()]));
    assert_eq!(rings(&mut talk), [1], "it is still listened for");
}

#[test]
fn bells_of_an_emptied_database_are_forgotten_and_read_again() {
    let mut talk = listening(2);
    talk.hear(">2\r\n$10\r\ninvalidate\r\n_\r\n");
    talk.hear(push(&[bell(1)]));
    assert_eq!(rings(&mut talk), []);
    talk.send(1, Verb::Queue);
    assert_eq!(talk.commands(), ["CLIENT", "EVAL", "EVALSHA 1"]);
}

#[test]
fn a_client_that_may_not_listen_waits_without_being_told() {
    // What the server answers to each of the three commands.
    let table = [
        "-NOPERM this user has no permissions\r\n+OK\r\n:3\r\n",
        "-ERR unknown subcommand\r\n-ERR CLIENT CACHING is only valid so\r\n:3\r\n",
        "+OK\r\n-NOPERM no permissions\r\n:3\r\n",
        "+OK\r\n+OK\r\n-NOPERM no permissions\r\n",
        "+OK\r\n+OK\r\n-NOSCRIPT No matching script.\r\n",
    ];
    for replies in table {
        let mut talk = ScriptedSession::ready();
        talk.send(1, Verb::Queue);
        talk.hear(format!("{replies}{}", queued(4, false)));
        assert!(!is_heard(&mut talk), "{replies}");
        talk.commands();
        let support = talk.session.queue_support();
        assert_eq!(support, Some(QueueSupport::WithoutPushes), "{replies}");
        // It is not asked again on this connection.
        talk.send(2, Verb::Queue);
        assert_eq!(talk.commands(), ["EVALSHA 2"], "{replies}");
        talk.hear(push(&[bell(1)]));
        assert_eq!(rings(&mut talk), [], "{replies}");
        assert!(!talk.session.is_down());
    }
}

#[test]
fn a_reply_that_fits_no_step_of_listening_closes_the_connection() {
    for replies in [":1\r\n", "+OK\r\n:2\r\n", "+OK\r\n+OK\r\n+OK\r\n", "+OK\r\n+OK\r\n:4\r\n"] {
        let mut talk = ScriptedSession::ready();
        talk.send(1, Verb::Queue);
        talk.hear(replies);
        assert_eq!(talk.votes(), [(1, Vote::Failed)], "{replies}");
        assert!(talk.session.is_down(), "{replies}");
    }
}

#[test]
fn what_a_queue_lacks_is_reported_once() {
    let mut talk = listening(1);
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
