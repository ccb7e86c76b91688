//! How a session ends, and what a server may refuse.

use super::*;
use crate::message::{AUTH_XID, EnsembleError};

/// One with a znode, a request and two deletes in flight.
fn busy() -> Talk {
    let mut talk = Talk::ready();
    talk.session.keep("/a".into());
    talk.session.delete(talk.now, Some(7), "/b".into());
    talk.session.delete(talk.now, None, "/c".into());
    talk.get(8);
    talk
}

#[test]
fn a_session_that_the_ensemble_does_not_know_is_lost() {
    for (session, timeout) in [(0, 0), (0, -1), (SESSION, 0), (SESSION + 1, TIMEOUT)] {
        let mut talk = busy();
        talk.lose();
        talk.told();
        talk.pass(20);
        talk.connect();
        talk.grant_timeout(session, timeout);
        assert_eq!(
            talk.told(),
            ["lost", "7 SessionLost"],
            "{session} {timeout}"
        );
        assert_eq!(
            (talk.session.id(), talk.session.valid_until()),
            (None, Time::ZERO)
        );
        assert!(talk.session.is_down() && !talk.session.wants_connection(talk.now));
        talk.get(9);
        let request = talk.connect();
        let mut reader = Reader::new(&request[4 + 4 + 8..]);
        assert_eq!(
            (reader.int(), reader.long()),
            (Ok(10_000), Ok(0)),
            "a new one, at once"
        );
    }
}

#[test]
fn a_session_that_expires_while_it_is_connected_is_lost() {
    let mut talk = busy();
    talk.reply(2, 9, -112);
    assert_eq!(talk.told(), ["lost", "8 SessionLost", "7 SessionLost"]);
    // Not in the header, but in the results of a transaction.
    let mut talk = Talk::ready();
    talk.session.keep("/a".into());
    talk.pass(0);
    talk.results(2, &[-112]);
    assert_eq!(talk.told(), ["lost"]);
    assert_eq!(talk.session.valid_until(), Time::ZERO);
}

#[test]
fn a_session_that_has_moved_or_a_server_without_a_majority_is_a_lost_connection() {
    for error in [-118, -119, -120] {
        let mut talk = busy();
        talk.reply(2, 9, error);
        assert_eq!(talk.told(), ["8 Unanswered"], "{error}");
        assert!(talk.session.is_down());
        assert_eq!(talk.session.id(), Some(SESSION));
        talk.pass(20);
        talk.connect();
        talk.grant(SESSION);
        assert_eq!(talk.written(), ["2 xid 5", "2 xid 6"]);
    }
    let mut talk = busy();
    talk.reply(2, 9, 0);
    talk.reply(3, 9, 0);
    talk.reply(4, 9, -101);
    talk.pass(0);
    talk.told();
    talk.results(5, &[-118]);
    assert!(talk.session.is_down());
    assert_eq!(
        talk.session.valid_until(),
        Time::from_millis(8_000),
        "of the deletes"
    );
}

#[test]
fn a_server_that_begins_no_session_is_not_asked_again_and_again() {
    let mut talk = Talk::new(None);
    let mut attempts = 0;
    for _ in 0..1_000 {
        talk.get(1);
        if talk.session.wants_connection(talk.now) {
            talk.connect();
            talk.grant_timeout(0, 0);
            attempts += 1;
        }
        assert!(!talk.told().contains(&"lost".to_owned()), "there was none");
        talk.pass(1);
    }
    assert!(attempts < 30, "{attempts}");
}

#[test]
fn wrong_credentials_are_told_to_those_who_wait() {
    let mut talk = Talk::new(Some(b"user:wrong"));
    talk.create(1);
    talk.connect();
    talk.grant(SESSION);
    talk.reply(AUTH_XID, 0, -115);
    assert_eq!(talk.told(), ["connected", "1 AuthFailed (-115)"]);
    assert!(talk.session.is_down());
    let refused = Problem::Refused(EnsembleError::AuthFailed);
    assert_eq!(talk.session.problem(), Some(&refused));
}

#[test]
fn the_end_of_a_session_follows_its_deletes() {
    let mut talk = busy();
    talk.written();
    talk.session.end(talk.now);
    talk.session.delete(talk.now, Some(9), "/d".into());
    assert_eq!(talk.written(), ["-11 xid 5"], "it deletes that one as well");
    for xid in [2, 3, 4] {
        talk.reply(xid, 9, -101);
    }
    talk.reply(5, 10, 0);
    assert_eq!(
        talk.told(),
        [
            "7 NoNode (-101)",
            "8 NoNode (-101)",
            "9 SessionLost",
            "ended"
        ]
    );
    assert_eq!((talk.session.id(), talk.session.is_down()), (None, true));
    assert!(!talk.session.wants_connection(talk.now));
}

#[test]
fn the_end_of_a_session_does_not_wait_for_a_connection() {
    let mut talk = Talk::ready();
    talk.session.keep("/a".into());
    talk.lose();
    talk.session.end(talk.now);
    assert_eq!(talk.session.output(), []);
    // A server that says nothing to it is left.
    let mut talk = Talk::ready();
    talk.session.end(talk.now);
    talk.pass(1_000);
    assert!(talk.session.is_down());
    assert_eq!(talk.session.id(), Some(SESSION), "it may not have ended");
}

#[test]
fn sessions_that_end_as_soon_as_they_have_begun_are_begun_with_pauses() {
    let mut talk = Talk::ready();
    let mut xid = 1;
    let mut pauses = 0;
    for number in 0..20 {
        talk.get(2);
        if talk.session.is_down() {
            let at = talk.session.next_deadline().unwrap();
            pauses += usize::from(at > talk.now);
            talk.now = at.max(talk.now);
            talk.connect();
            talk.grant(SESSION + number);
        }
        xid += 1;
        talk.reply(xid, 9, -112);
        assert!(talk.session.is_down());
    }
    assert!(pauses >= 8, "{pauses}");
}

#[test]
fn a_request_at_which_servers_close_one_connection_after_another_is_not_sent_again() {
    let path: Arc<str> = format!("/{}", "a".repeat(5_000)).into();
    let long = |talk: &mut Talk| {
        let request = EnsembleRequest::GetData {
            path: Arc::clone(&path),
            watch: false,
        };
        talk.session.send(talk.now, 5, request);
    };
    let mut talk = Talk::ready();
    for _ in 0..3 {
        long(&mut talk);
        if talk.session.is_down() {
            talk.now = talk.session.next_deadline().unwrap().max(talk.now);
            talk.connect();
            talk.grant(SESSION);
            talk.told();
        }
        talk.lose();
        assert_eq!(talk.told(), ["5 Unanswered"]);
    }
    talk.get(6);
    talk.now = talk.session.next_deadline().unwrap().max(talk.now);
    talk.connect();
    talk.grant(SESSION);
    talk.told();
    long(&mut talk);
    assert!(
        talk.told()[0].starts_with("5 TooLong"),
        "and the connection stays"
    );
    assert!(talk.session.is_ready());
}
