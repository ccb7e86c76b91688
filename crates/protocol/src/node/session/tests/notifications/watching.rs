//! What a node tells about changes of the lock's key.

use super::*;

#[test]
fn a_waiter_that_watches_is_told_once_when_the_key_changes() {
    let mut talk = notified(2);
    watch(&mut talk, 1, false);
    assert_eq!(talk.commands(), [""; 0]);
    watch(&mut talk, 1, true);
    let written = talk.written();
    let before = "*4\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n$5\r\nOPTIN\r\n\
                  *3\r\n$6\r\nCLIENT\r\n$7\r\nCACHING\r\n$3\r\nYES\r\n*5\r\n$4\r\nEVAL\r\n";
    assert!(written.starts_with(before), "{written}");
    talk.hear("+OK\r\n+OK\r\n:6\r\n");
    // It is remembered, for this waiter and not for the other.
    watch(&mut talk, 1, true);
    assert_eq!(talk.commands(), [""; 0]);
    watch(&mut talk, 2, true);
    assert_eq!(talk.commands(), ["CLIENT", "EVAL"]);
    talk.hear("+OK\r\n:8\r\n");
    talk.hear(CHANGED);
    assert_eq!(hints(&mut talk), [(1, Hint::Changed), (2, Hint::Changed)]);
    talk.hear(CHANGED);
    assert_eq!(hints(&mut talk), []);
    watch(&mut talk, 1, true);
    assert_eq!(talk.commands(), ["CLIENT", "EVAL"]);
}

#[test]
fn a_waiter_is_not_told_of_what_its_own_request_has_changed() {
    for told in [[CHANGED, &queued(6, false)], [&queued(6, false), CHANGED]] {
        let mut talk = notified(1);
        watch(&mut talk, 1, true);
        talk.hear("+OK\r\n+OK\r\n:5\r\n");
        talk.send(1, Verb::Queue);
        // It waits again as soon as other nodes have answered, and before this one has.
        watch(&mut talk, 1, true);
        assert_eq!(talk.commands(), ["CLIENT", "CLIENT", "EVAL", "EVALSHA 1", "CLIENT", "EVAL"]);
        told.iter().for_each(|told| talk.hear(told));
        assert_eq!(hints(&mut talk), []);
        talk.hear("+OK\r\n:8\r\n");
        talk.hear(CHANGED);
        assert_eq!(hints(&mut talk), [(1, Hint::Changed)]);
    }
}

#[test]
fn a_key_that_was_gone_before_it_was_watched_has_changed() {
    let mut talk = notified(1);
    watch(&mut talk, 1, true);
    talk.hear("+OK\r\n+OK\r\n:-5\r\n");
    assert_eq!(hints(&mut talk), [(1, Hint::Changed)]);
}

#[test]
fn all_keys_of_an_emptied_database_have_changed() {
    let mut talk = notified(2);
    (1..=2).for_each(|waiter| watch(&mut talk, waiter, true));
    talk.hear("+OK\r\n+OK\r\n:6\r\n+OK\r\n:8\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n");
    assert_eq!(hints(&mut talk), [(1, Hint::Changed), (2, Hint::Changed)]);
}

#[test]
fn a_client_that_may_not_track_is_notified_of_reservations_only() {
    // What the server answers to each of the three commands.
    let table = [
        "-NOPERM this user has no permissions\r\n+OK\r\n:5\r\n",
        "-ERR unknown subcommand\r\n-ERR CLIENT CACHING is only valid so\r\n:5\r\n",
        "+OK\r\n-NOPERM no permissions\r\n:5\r\n",
        "+OK\r\n+OK\r\n-NOPERM no permissions\r\n",
        "+OK\r\n+OK\r\n-NOSCRIPT No matching script.\r\n",
    ];
    for replies in table {
        let mut talk = notified(1);
        watch(&mut talk, 1, true);
        talk.hear(replies);
        assert_eq!(hints(&mut talk), [(1, Hint::Changed)], "{replies}");
        watch(&mut talk, 1, true);
        talk.commands();
        talk.send(1, Verb::Queue);
        talk.hear(queued(6, false));
        assert!(!is_heard(&mut talk), "it asks now and then: {replies}");
        let support = talk.session.queue_support();
        assert_eq!(support, Some(QueueSupport::WithoutPushes), "{replies}");
        talk.hear(message(1, "r"));
        assert_eq!(hints(&mut talk), [(1, Hint::Reserved)], "{replies}");
    }
}
