//! One conversation, in literal bytes and times.

mod hand_over;

use crate::engine::{Verb, Vote};
use crate::node::fixture::{Talk, at, greeting, request, ticket, ttl};
use crate::node::{
    DEBTS_MAX, IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX, Phase, Problem, Session, SessionOptions,
};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn no_command_is_written_before_the_greeting_is_answered() {
    let mut talk = Talk::new(SessionOptions::new("redis://node", 7));
    talk.send(1, Verb::Plant);
    assert!(talk.session.wants_connection(talk.now));
    let hello = talk.connect();
    assert!(hello.starts_with("*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"), "{hello}");
    let greeting = greeting("a", 1_000);
    let (most, last) = greeting.split_at(greeting.len() - 1);
    for byte in most.bytes() {
        talk.hear([byte]);
        assert_eq!(talk.written(), "");
    }
    talk.hear(last);
    assert_eq!(talk.commands(), ["SET 1"]);
}

#[test]
fn replies_belong_to_commands_in_their_order() {
    let mut talk = Talk::ready();
    talk.send(1, Verb::Plant);
    talk.send(2, Verb::Plant);
    talk.send(3, Verb::Ping);
    talk.hear("+OK\r\n$-1\r");
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    talk.hear("\n+PONG\r\n");
    assert_eq!(talk.votes(), [(2, Vote::Refused), (3, Vote::Granted)]);
}

#[test]
fn messages_that_nobody_asked_for_take_no_replys_place() {
    let mut talk = Talk::ready();
    talk.send(1, Verb::Plant);
    talk.hear(">2\r\n+invalidate\r\n_\r\n|1\r\n+key\r\n:1\r\n");
    assert_eq!(talk.votes(), []);
    talk.hear("+OK\r\n>1\r\n+message\r\n");
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    assert!(!talk.session.is_down());
}

#[test]
fn what_is_no_answer_ends_the_connection_and_every_vote_on_it() {
    let table = [
        (Verb::Release, ":2\r\n"),
        (Verb::Plant, "$2\r\nOK\r\n"),
        (Verb::Plant, "*-1\r\n"),
        (Verb::Plant, ":1\r\n"),
        (Verb::Extend, "+OK\r\n"),
        (Verb::Extend, "$-1\r\n"),
        (Verb::Ping, "+OK\r\n"),
        (Verb::Plant, "*1\r\n+OK\r\n"),
    ];
    for (verb, reply) in table {
        let mut talk = Talk::ready();
        talk.send(1, verb);
        talk.send(2, Verb::Plant);
        talk.hear(format!("{reply}+OK\r\n"));
        assert_eq!(talk.votes(), [(1, Vote::Failed), (2, Vote::Failed)], "{reply:?}");
        assert!(talk.session.is_down(), "{reply:?}");
    }
}

#[test]
fn bytes_that_nobody_asked_for_end_the_connection() {
    for extra in ["+OK\r\n", "-ERR what\r\n", "@"] {
        let mut talk = Talk::ready();
        talk.send(1, Verb::Plant);
        talk.hear(format!("+OK\r\n{extra}"));
        assert_eq!(talk.votes(), [(1, Vote::Granted)]);
        assert!(talk.session.is_down(), "{extra:?}");
    }
}

#[test]
fn the_servers_own_errors_leave_the_connection_alone() {
    for error in ["LOADING", "MISCONF", "OOM", "BUSY", "NOPERM", "MOVED 1 h:1", "ERR", ""] {
        let mut talk = Talk::ready();
        talk.send(1, Verb::Plant);
        talk.send(2, Verb::Plant);
        talk.hear(format!("-{error}\r\n+OK\r\n"));
        assert_eq!(talk.votes(), [(1, Vote::Failed), (2, Vote::Granted)], "{error}");
    }
    let mut talk = Talk::ready();
    talk.send(1, Verb::Plant);
    talk.hear("-READONLY You can't write against a read only replica.\r\n");
    assert!(matches!(talk.problem(), Problem::Server(_)));
    assert!(talk.session.is_down(), "behind the name there may be another server by now");
}

#[test]
fn a_reply_cut_anywhere_leaves_the_vote_unknown() {
    let reply = b"+OK\r\n";
    for cut in 0..reply.len() {
        let mut talk = Talk::ready();
        talk.send(1, Verb::Plant);
        talk.hear(&reply[..cut]);
        talk.lose();
        assert!(matches!(talk.problem(), Problem::Disconnected(_)), "cut at {cut}");
    }
}

#[test]
fn an_unknown_script_is_sent_by_its_source_once_and_in_the_same_round() {
    let mut talk = Talk::ready();
    talk.send(1, Verb::Release);
    assert_eq!(talk.commands(), ["EVAL 1"], "nothing is known of the node");
    talk.hear(":1\r\n");
    talk.send(2, Verb::Release);
    assert_eq!(talk.commands(), ["EVALSHA 2"]);
    talk.hear("-NOSCRIPT No matching script.\r\n");
    assert_eq!(talk.commands(), ["EVAL 2"]);
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    talk.hear("-NOSCRIPT No matching script.\r\n");
    assert_eq!(talk.commands(), [""; 0]);
    assert_eq!(talk.votes(), [(2, Vote::Failed)]);
}

#[test]
fn an_undo_follows_what_it_undoes_and_needs_nobody() {
    let mut talk = Talk::ready();
    talk.send(1, Verb::Plant);
    talk.post(1, Verb::Undo);
    assert_eq!(talk.commands(), ["SET 1", "EVAL 1"]);
    talk.hear("+OK\r\n:1\r\n");
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    assert_eq!(talk.session.load(), (0, 0));
}

#[test]
fn what_is_owed_outlives_the_connection_and_is_paid_first() {
    let mut talk = Talk::ready();
    talk.send(1, Verb::Plant);
    talk.post(1, Verb::Undo);
    talk.lose();
    talk.post(2, Verb::Undo);
    assert_eq!((talk.votes(), talk.session.load()), (vec![(1, Vote::Failed)], (0, 2)));
    talk.pass(20);
    talk.send(3, Verb::Plant);
    talk.connect();
    talk.hear(greeting("a", 1_000));
    assert_eq!(talk.commands(), ["EVAL 1", "EVAL 2", "SET 3"]);
    talk.lose();
    assert_eq!(talk.session.load(), (0, 2), "paid is what has been answered");
}

#[test]
fn what_is_owed_is_forgotten_when_the_key_has_expired_by_itself() {
    let mut talk = Talk::ready();
    talk.post(1, Verb::Undo);
    talk.lose();
    talk.pass(999);
    assert_eq!(talk.session.load(), (0, 1));
    talk.pass(1);
    assert_eq!(talk.session.load(), (0, 0));
    assert!(!talk.session.wants_connection(at(5_000)));
}

#[test]
fn whoever_waits_for_a_removal_is_told_when_it_is_given_up() {
    let mut talk = Talk::new(SessionOptions::new("redis://node", 7));
    talk.session.connecting(talk.now, Phase::Connecting);
    let mut short = request(Verb::Release, 1, talk.now);
    short.ttl = ttl(5);
    talk.session.send(talk.now, Some(ticket(1)), &short);
    talk.pass(5);
    assert_eq!(talk.session.load(), (0, 0));
    assert_eq!(talk.problem(), Problem::TimedOut(Phase::Connecting));
}

#[test]
fn whoever_waits_for_a_removal_is_told_that_there_is_no_connection() {
    let mut talk = Talk::new(SessionOptions::new("redis://node", 7));
    talk.send(1, Verb::Release);
    talk.session.connecting(talk.now, Phase::Connecting);
    talk.lose();
    assert!(matches!(talk.problem(), Problem::Disconnected(_)));
    assert_eq!(talk.session.load(), (0, 1), "it is owed all the same");
}

#[test]
fn debts_are_bounded_in_number_and_the_oldest_goes() {
    let mut talk = Talk::new(SessionOptions::new("redis://node", 7));
    for _ in 0..DEBTS_MAX + 10 {
        talk.post(1, Verb::Undo);
    }
    assert_eq!(talk.session.load(), (0, DEBTS_MAX));
}

#[test]
fn a_silent_node_is_not_fed_without_end_and_removals_get_the_last_room() {
    let mut talk = Talk::ready();
    for serial in 0..IN_FLIGHT_MAX as u64 {
        talk.send(serial, Verb::Plant);
    }
    assert_eq!(talk.session.load(), (IN_FLIGHT_MAX / 2, 0));
    let refused = talk.answers();
    assert_eq!(refused.len(), IN_FLIGHT_MAX / 2);
    assert!(refused.iter().all(|answer| answer.problem == Some(Problem::Overloaded)));
    assert!(refused.iter().all(|answer| !answer.was_sent), "so there is nothing to undo");

    for _ in 0..IN_FLIGHT_MAX {
        talk.post(1, Verb::Undo);
    }
    assert_eq!(talk.session.load(), (IN_FLIGHT_MAX, IN_FLIGHT_MAX / 2));
    talk.hear("+OK\r\n".repeat(IN_FLIGHT_MAX / 2));
    assert_eq!(talk.session.load(), (IN_FLIGHT_MAX, 0), "room is used for what is owed");
}

#[test]
fn long_keys_fill_the_room_before_their_number_does() {
    let mut talk = Talk::ready();
    let mut long = request(Verb::Plant, 1, talk.now);
    long.key = Arc::from(vec![b'k'; 64 * 1024]);
    for serial in 0..100 {
        talk.session.send(talk.now, Some(ticket(serial)), &long);
    }
    let (sent, _) = talk.session.load();
    assert!((8..10).contains(&sent), "{sent}");
    assert!(talk.session.output().len() < IN_FLIGHT_BYTES_MAX);
}

#[test]
fn what_waits_for_a_connection_is_bounded_as_well() {
    let mut talk = Talk::new(SessionOptions::new("redis://node", 7));
    let mut long = request(Verb::Plant, 1, talk.now);
    long.key = Arc::from(vec![b'k'; 64 * 1024]);
    for serial in 0..100 {
        talk.session.send(talk.now, Some(ticket(serial)), &long);
    }
    let refused = talk.answers().len();
    assert!(refused >= 90, "{refused} of 100 are refused, with 64 KiB each");
    assert!(!talk.session.cancel(ticket(99)), "refused at once");
    assert!(talk.session.cancel(ticket(0)));
    talk.session.send(talk.now, Some(ticket(200)), &long);
    assert!(talk.answers().is_empty(), "there is room again");
}

#[test]
fn a_silent_node_loses_its_connection() {
    let mut talk = Talk::ready();
    talk.pass(60_000);
    assert!(!talk.session.is_down(), "nothing was asked of it");
    talk.send(1, Verb::Plant);
    assert_eq!(talk.session.next_deadline(), Some(at(60_500)));
    talk.pass(499);
    assert!(!talk.session.is_down());
    talk.pass(1);
    assert_eq!(talk.problem(), Problem::TimedOut(Phase::Answering));
    assert!(talk.session.is_down());
}

#[test]
fn connecting_and_greeting_take_no_longer_than_silence_may() {
    let mut talk = Talk::new(SessionOptions::new("redis://node", 7));
    talk.send(1, Verb::Plant);
    talk.session.connecting(talk.now, Phase::Resolving);
    talk.pass(300);
    talk.session.connecting(talk.now, Phase::Connecting);
    talk.pass(200);
    assert_eq!(talk.problem(), Problem::TimedOut(Phase::Connecting));

    talk.pass(500);
    talk.send(2, Verb::Plant);
    talk.connect();
    talk.pass(400);
    talk.hear("%0\r\n");
    talk.pass(100);
    assert_eq!(talk.problem(), Problem::TimedOut(Phase::Greeting));
}

/// How long the session pauses before the next connection.
fn pause(session: &Session, now: crate::clock::Time) -> Duration {
    let mut time = now;
    while !session.wants_connection(time) {
        time = time.after(Duration::from_micros(100));
    }
    time.since(now)
}

#[test]
fn a_server_that_accepts_and_closes_is_left_alone_for_longer_and_longer() {
    let mut talk = Talk::new(SessionOptions::new("redis://node", 7));
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        talk.post(1, Verb::Undo);
        talk.connect();
        talk.hear(greeting("a", 1_000));
        talk.lose();
        longest = longest.max(pause(&talk.session, talk.now));
        talk.pass(500);
    }
    assert!(longest > Duration::from_millis(250), "{longest:?}");
}

#[test]
fn a_connection_that_worked_and_was_closed_idle_is_made_again_at_once() {
    let mut talk = Talk::ready();
    talk.send(1, Verb::Plant);
    talk.hear("+OK\r\n");
    talk.lose();
    assert!(!talk.session.wants_connection(talk.now), "there is no need yet");
    talk.send(2, Verb::Plant);
    assert!(talk.session.wants_connection(talk.now));
}

#[test]
fn what_is_cancelled_before_it_was_sent_is_never_sent_but_a_removal_is() {
    let mut talk = Talk::new(SessionOptions::new("redis://node", 7));
    talk.send(1, Verb::Plant);
    talk.send(2, Verb::Release);
    talk.connect();
    assert!(talk.session.cancel(ticket(1)) && talk.session.cancel(ticket(2)));
    talk.hear(greeting("a", 1_000));
    assert_eq!(talk.commands(), ["EVAL 2"]);
    talk.hear(":1\r\n");
    assert_eq!(talk.votes(), []);
    talk.send(3, Verb::Plant);
    assert!(!talk.session.cancel(ticket(3)), "what was sent may have been done");
}

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
