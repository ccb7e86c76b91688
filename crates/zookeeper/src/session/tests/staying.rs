//! How a session stays alive, and until when it may be relied on.

use super::*;

#[test]
fn a_session_with_znodes_writes_in_each_seventh_of_its_timeout() {
    let mut talk = Talk::ready();
    talk.session.keep("/a".into());
    talk.session.keep("/b".into());
    talk.pass(0);
    assert_eq!(
        talk.written(),
        ["14 xid 2"],
        "no write on this connection yet"
    );
    talk.results(2, &[0, 0]);
    talk.pass(999);
    assert_eq!(talk.written(), [""; 0]);
    talk.pass(1);
    assert_eq!(talk.written(), ["14 xid 3"]);
    talk.results(3, &[0, 0]);
    talk.pass(500);
    talk.create(7);
    assert_eq!(talk.written(), ["15 xid 4"]);
    talk.reply(4, 8, -110);
    talk.pass(500);
    assert_eq!(
        talk.written(),
        ["14 xid 5"],
        "the create was a write, and has checked nothing"
    );
    assert_eq!(talk.told(), ["7 NodeExists (-110)"]);
}

#[test]
fn a_beat_finds_what_was_removed() {
    let mut talk = Talk::ready();
    for path in ["/a", "/b", "/c"] {
        talk.session.keep(path.into());
    }
    talk.pass(0);
    talk.results(2, &[0, -101, -2]);
    assert_eq!(talk.told(), ["removed /b"]);
    assert!(
        talk.session.valid_until() > Time::ZERO,
        "it was logged anyway"
    );
    talk.pass(0);
    talk.results(3, &[0, 0]);
    assert_eq!(talk.told(), [""; 0]);
}

#[test]
fn what_was_removed_at_once_is_found_without_waiting_for_the_next_beats() {
    let mut talk = Talk::ready();
    for path in ["/a", "/b", "/c", "/d"] {
        talk.session.keep(path.into());
    }
    talk.pass(0);
    assert_eq!(talk.written(), ["14 xid 2"]);
    talk.results(2, &[0, -101, -2, -2]);
    talk.pass(0);
    assert_eq!(talk.written(), ["14 xid 3"]);
    talk.pass(0);
    assert_eq!(talk.written(), [""; 0], "not twice while it is under way");
    talk.results(3, &[-101, -2, -2]);
    assert_eq!(talk.told(), ["removed /b", "removed /c"]);
    talk.pass(0);
    talk.results(4, &[0, 0]);
    talk.pass(999);
    assert_eq!(talk.told(), [""; 0]);
    assert_eq!(talk.written(), ["14 xid 4"]);
}

#[test]
fn a_session_without_znodes_asks_for_nothing_and_ends_after_a_minute() {
    let mut talk = Talk::ready();
    for xid in 2..61 {
        talk.pass(1_000);
        assert_eq!(talk.written(), [format!("9 xid {xid}")]);
        talk.hear(|frame| {
            frame.int(xid).long(1).int(0).text("/");
        });
    }
    assert_eq!(
        talk.session.valid_until(),
        Time::ZERO,
        "a sync proves nothing"
    );
    talk.pass(1_000);
    assert_eq!(talk.written(), ["-11 xid 61"]);
    talk.get(7);
    assert_eq!(talk.written(), [""; 0], "nothing follows the end");
    talk.reply(61, 9, 0);
    assert_eq!(talk.told(), ["7 SessionLost", "ended"]);
    assert_eq!((talk.session.id(), talk.session.is_down()), (None, true));
    assert!(!talk.session.wants_connection(talk.now));
}

#[test]
fn a_silent_server_is_left_after_a_seventh_of_the_timeout() {
    let mut talk = Talk::ready();
    talk.pass(400);
    talk.get(7);
    talk.pass(500);
    talk.hear(|frame| {
        frame.int(-1).long(-1).int(0).int(2).int(3).text("/b");
    });
    talk.pass(999);
    assert!(!talk.session.is_down());
    talk.pass(1);
    assert!(talk.session.is_down());
    assert_eq!(talk.told(), ["changed /b", "7 Unanswered"]);
    assert_eq!(talk.session.problem(), Some(&Problem::TimedOut));
    assert!(!talk.session.wants_connection(talk.now), "nobody needs it");
    talk.get(8);
    assert!(
        talk.session.wants_connection(talk.now),
        "another server, at once"
    );
}

#[test]
fn only_logged_writes_prove_that_the_session_lives() {
    let mut talk = Talk::ready();
    let connected_at = talk.now;
    talk.pass(100);
    for (xid, error) in [(2, -127), (3, -6), (4, -122), (5, -1234)] {
        talk.create(7);
        talk.reply(xid, 8, error);
        assert_eq!(talk.session.valid_until(), Time::ZERO, "{error}");
    }
    talk.create(7);
    talk.reply(6, 8, -110);
    assert_eq!(
        talk.session.valid_until(),
        connected_at.after(Duration::from_secs(7))
    );
    talk.lose();
    assert_eq!(
        talk.session.valid_until(),
        connected_at.after(Duration::from_secs(7))
    );
}

#[test]
fn credentials_say_nothing_of_the_session() {
    let mut talk = Talk::new(Some(b"user:password"));
    talk.create(1);
    talk.connect();
    talk.grant(SESSION);
    assert_eq!(talk.written(), ["100 xid -4", "15 xid 1"]);
    talk.reply(-4, 0, 0);
    assert_eq!(talk.session.valid_until(), Time::ZERO);
    talk.reply(1, 8, -110);
    assert_eq!(
        talk.session.valid_until(),
        talk.now.after(Duration::from_secs(7))
    );
    assert_eq!(talk.told(), ["connected", "1 NodeExists (-110)"]);
}

#[test]
fn a_znode_that_a_transaction_has_deleted_is_not_missed() {
    let mut talk = Talk::ready();
    talk.session.keep("/a".into());
    talk.session.keep("/b".into());
    talk.pass(0);
    assert_eq!(talk.written(), ["14 xid 2"]);
    talk.session.forget("/a");
    talk.results(2, &[-101, -2]);
    assert_eq!(talk.told(), [""; 0], "the beat was sent before");
    talk.pass(1_000);
    assert_eq!(talk.written(), ["14 xid 3"]);
    talk.results(3, &[-101]);
    assert_eq!(talk.told(), ["removed /b"]);
}

#[test]
fn a_delete_is_repeated_until_it_is_answered() {
    let mut talk = Talk::ready();
    talk.session.keep("/a".into());
    talk.session.delete(talk.now, Some(7), "/a".into());
    talk.session.delete(talk.now, None, "/b".into());
    talk.get(8);
    assert_eq!(talk.written(), ["2 xid 2", "2 xid 3", "4 xid 4"]);
    talk.lose();
    assert_eq!(talk.told(), ["8 Unanswered"]);
    talk.session.delete(talk.now, None, "/c".into());
    talk.pass(20);
    talk.connect();
    talk.get(9);
    talk.grant(SESSION);
    assert_eq!(talk.written(), ["2 xid 5", "2 xid 6", "2 xid 7", "4 xid 8"]);
    talk.reply(5, 8, -101);
    assert_eq!(
        talk.told(),
        ["connected", "7 ok"],
        "the first one may have done it"
    );
    talk.reply(6, 8, -127);
    talk.reply(7, 9, 0);
    talk.reply(8, 9, -101);
    talk.pass(1_000);
    assert_eq!(
        talk.written(),
        ["2 xid 9", "9 xid 10"],
        "the throttled one again"
    );
}
