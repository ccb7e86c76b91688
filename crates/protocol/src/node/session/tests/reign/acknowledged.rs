//! Votes of a group whose replicas acknowledge each of them.

use super::*;
use crate::node::ServerErrorKind;
use crate::node::history::History;
use crate::time::Time;

/// A marker of this mode.
fn text(since: &str, former: &str) -> String {
    format!("redlatch2 a {ID} 0 {since} n 2 {former}")
}

/// The answer to a step: how far the server had written, and how far each replica that it lists.
pub(in crate::node::session::tests) fn standing(
    number: &str,
    marker: &str,
    offset: u64,
    replicas: &[u64],
) -> String {
    let listed = replicas.len();
    let replicas = replicas.iter().map(|offset| format!(":{offset}\r\n"));
    format!(
        "*8\r\n:{number}\r\n${}\r\n{marker}\r\n${}\r\n{ID}\r\n:1000000\r\n:{offset}\r\n\
         :{listed}\r\n*{listed}\r\n{}$1\r\n0\r\n",
        marker.len(),
        ID.len(),
        replicas.collect::<String>()
    )
}

pub(in crate::node::session::tests) fn numbers(sent: &str) -> Vec<&str> {
    sent.split("\r\n*").map(number).collect()
}

/// The session with a group whose marker is this one. What is asked behind the greeting is answered
/// too: it is acknowledged, unless that is to be seen.
pub(in crate::node::session::tests) fn greeted_with(marker: &str) -> ScriptedSession {
    let mut talk = connected(Some(2));
    let passed = if marker.contains(" - ") { 69 } else { 70 };
    answer_greeting(&mut talk, marker, &[passed, 60]);
    talk
}

/// Answers the greeting, and what is asked behind it with these replicas.
fn answer_greeting(talk: &mut ScriptedSession, marker: &str, replicas: &[u64]) {
    let sent = talk.written();
    let numbers = numbers(&sent);
    assert!(sent.contains("greet") && numbers.len() == 4, "{sent}");
    talk.hear(standing(numbers[0], marker, 60, &[]));
    talk.hear(standing(numbers[1], marker, 70, &[]));
    talk.hear(":0\r\n");
    talk.hear(standing(numbers[3], marker, 90, replicas));
    assert!(!talk.session.is_down());
}

/// Asks for a lock, which the server grants, and answers the questions behind it with these
/// markers, offset and replicas.
fn vote(
    talk: &mut ScriptedSession,
    [first, second]: [&str; 2],
    offset: u64,
    replicas: &[u64],
) -> Result<(), NodeError> {
    talk.send(1, Verb::Acquire);
    let sent = talk.written();
    let numbers = numbers(&sent);
    assert!(
        sent.contains("touch") && sent.contains("WAIT\r\n$1\r\n1\r\n") && sent.contains("check"),
        "{sent}"
    );
    talk.hear("+OK\r\n");
    talk.hear(standing(numbers[1], first, offset, &[]));
    talk.hear(":2\r\n");
    assert_eq!(talk.votes(), [], "it waits for the answer behind it");
    talk.hear(standing(numbers[3], second, offset + 20, replicas));
    outcome(talk)
}

#[test]
fn each_vote_counts_only_if_a_majority_has_acknowledged_it() {
    let marker = text("900000", "0 0");
    let both = [&*marker, &*marker];
    let mut talk = greeted_with(&marker);
    assert_eq!(vote(&mut talk, both, 100, &[99, 100]), Ok(()));
    let acknowledged = |talk: &ScriptedSession| status(talk).group.unwrap().acknowledged;
    assert_eq!(acknowledged(&talk), Some(1));
    let few = NodeError::NotAcknowledged {
        wanted: 1,
        acknowledged: 0,
    };
    // What was acknowledged a moment ago says nothing about the next one.
    assert_eq!(vote(&mut talk, both, 120, &[119, 100]), Err(few));
    assert!(!talk.session.is_down(), "the connection stays in use");
    assert_eq!(acknowledged(&talk), Some(0));
    assert_eq!(vote(&mut talk, both, 140, &[140, 140]), Ok(()));
}

#[test]
fn an_acknowledged_vote_counts_if_both_answers_are_of_the_reign_that_was_greeted() {
    let marker = text("900000", "0 0");
    for other in [
        marker.replace(ID, "4567"),
        marker.replace(" n ", " m "),
        marker.replace("redlatch2 a", "redlatch2 b"),
        "renewed".to_owned(),
    ] {
        for markers in [[&*other, &*marker], [&*marker, &*other]] {
            let mut talk = greeted_with(&marker);
            let counted = vote(&mut talk, markers, 100, &[100, 100]);
            assert_eq!(counted, Err(NodeError::ReignChanged), "{markers:?}");
            assert!(talk.session.is_down(), "it is greeted again");
        }
    }
    let mut talk = greeted_with(&marker);
    talk.send(1, Verb::Acquire);
    let sent = talk.written();
    let numbers = numbers(&sent);
    talk.hear(format!(
        "+OK\r\n{}:0\r\n:-{}\r\n",
        standing(numbers[1], &marker, 100, &[]),
        numbers[3]
    ));
    assert!(matches!(outcome(&mut talk), Err(NodeError::NoMaster(_))));
}

#[test]
fn a_group_with_more_replicas_than_are_named_has_no_vote() {
    let marker = text("900000", "0 0");
    let both = [&*marker, &*marker];
    let mut talk = greeted_with(&marker);
    let crowded = |is_permanent| {
        Err(NodeError::TooManyReplicas {
            named: 2,
            listed: 3,
            is_permanent,
        })
    };
    let problem = vote(&mut talk, both, 100, &[100, 100, 100]).unwrap_err();
    assert!(problem.to_string().contains("replicas=3"), "{problem}");
    assert!(problem.to_string().contains("repl-timeout"), "{problem}");
    // One that has died, or that has come back from another address, is listed for a while.
    let mut vote_later = |millis, listed: &[u64]| {
        talk.lose();
        talk.pass(millis);
        talk.connect();
        talk.hear(greeting("a", 1_000));
        answer_greeting(&mut talk, &marker, listed);
        vote(&mut talk, both, 100, listed)
    };
    let many = &[100, 100, 100];
    assert_eq!(vote_later(89_999, many), crowded(false));
    assert_eq!(vote_later(1, many), crowded(true));
    assert_eq!(vote_later(1_000, &[100, 100]), Ok(()));
    assert_eq!(vote_later(1_000, many), crowded(false));
    assert_eq!(vote_later(89_999, many), crowded(false));
    let problem = vote_later(1, many).unwrap_err();
    assert_eq!(Err(problem.clone()), crowded(true));
    assert!(problem.is_permanent() && !problem.to_string().contains("repl-timeout"));
}

/// The server may have begun another reign since, in which the session was never greeted.
#[test]
fn an_old_session_whose_votes_are_acknowledged_greets_again() {
    let marker = text("900000", "0 0");
    let both = [&*marker, &*marker];
    let mut talk = greeted_with(&marker);
    talk.pass(59_999);
    assert_eq!(vote(&mut talk, both, 100, &[100, 100]), Ok(()));
    talk.pass(60_000);
    talk.send(1, Verb::Acquire);
    assert!(talk.session.wants_connection(talk.now), "without a pause");
}

/// Others may have said so meanwhile: their greeting is not needed for it.
#[test]
fn a_quarantine_lasts_for_the_longest_ttl_and_the_clocks_and_ends_when_anybody_says_so() {
    let since = |since: &str| text(since, "4e0b b");
    let quarantined = |seconds| {
        Err(NodeError::Quarantined {
            left: Duration::from_secs(seconds),
        })
    };
    let young = since("990000");
    let mut talk = greeted_with(&young);
    assert_eq!(
        vote(&mut talk, [&young, &young], 100, &[100]),
        quarantined(51)
    );
    let proven = since("0");
    assert_eq!(
        vote(&mut talk, [&young, &proven], 120, &[120]),
        quarantined(51),
        "when it was given, it did not count"
    );
    assert_eq!(vote(&mut talk, [&proven, &proven], 140, &[140]), Ok(()));
    let group = status(&talk).group.unwrap();
    assert!(
        group.is_proven && !group.is_adopted && group.age.is_none(),
        "{group:?}"
    );
    for (age, left) in [(60, Some(1)), (61, None)] {
        let marker = since(&(1_000_000 - age * 1_000).to_string());
        let counted = vote(&mut greeted_with(&marker), [&marker, &marker], 100, &[100]);
        assert_eq!(counted, left.map_or(Ok(()), quarantined), "{age}");
    }
}

#[test]
fn an_extension_counts_in_any_reign_as_soon_as_it_is_acknowledged() {
    for (since, reclaims) in [("999000", true), ("0", false)] {
        let marker = text(since, "0 0");
        let mut talk = greeted_with(&marker);
        talk.send(1, Verb::Extend);
        let sent = talk.written();
        let numbers = numbers(&sent);
        assert_eq!(sent.contains("restore\r\n$"), reclaims, "{since}: {sent}");
        talk.hear(format!(":{}\r\n", numbers[0]));
        talk.hear(standing(numbers[1], &marker, 100, &[]));
        talk.hear(":0\r\n");
        talk.hear(standing(numbers[3], &marker, 120, &[100]));
        assert_eq!(outcome(&mut talk), Ok(()), "{since}");
    }
    // Nor does it without that.
    let marker = text("999000", "0 0");
    let mut talk = greeted_with(&marker);
    talk.send(1, Verb::Extend);
    let sent = talk.written();
    let numbers = numbers(&sent);
    talk.hear(format!(":{}\r\n", numbers[0]));
    talk.hear(standing(numbers[1], &marker, 100, &[]));
    talk.hear(":0\r\n");
    talk.hear(standing(numbers[3], &marker, 120, &[99]));
    assert!(matches!(
        outcome(&mut talk),
        Err(NodeError::NotAcknowledged { .. })
    ));
}

/// Otherwise nobody would wait for the clock of the reign to be set, from which it counts.
#[test]
fn the_first_vote_that_is_acknowledged_waits_until_the_reign_counts() {
    let open = text("-", "0 0");
    let mut talk = greeted_with(&open);
    assert!(talk.written().is_empty(), "not for ever");
    let quarantine = |talk: &ScriptedSession| status(talk).quarantine;
    talk.pass(50_000);
    assert_eq!(quarantine(&talk), Some(Duration::from_secs(61)));
    assert_eq!(status(&talk).group.unwrap().age, None);
    talk.send(1, Verb::Extend);
    let sent = talk.written();
    let asked = numbers(&sent);
    talk.hear(format!(
        ":{}\r\n{}:1\r\n{}",
        asked[0],
        standing(asked[1], &open, 100, &[]),
        standing(asked[3], &open, 120, &[100])
    ));
    let confirm = talk.written();
    assert!(confirm.contains("confirm\r\n"), "{confirm}");
    assert_eq!(talk.votes(), [], "the clock is not set yet");
    let timed = text("1000000", "0 0");
    talk.hear(standing(number(&confirm), &timed, 130, &[100]));
    assert_eq!(outcome(&mut talk), Ok(()));
    talk.pass(1_000);
    assert_eq!(quarantine(&talk), Some(Duration::from_secs(60)));
}

/// Otherwise a reign that another client has greeted would count from the next vote only, and in a
/// quarantine that has not begun nobody votes who waits.
#[test]
fn a_reign_without_a_vote_is_acknowledged_behind_whatever_is_asked() {
    let open = text("-", "0 0");
    let mut talk = greeted_with(&open);
    talk.send(1, Verb::Ping);
    let sent = talk.written();
    let numbers = numbers(&sent);
    talk.hear(format!(
        "+PONG\r\n{}:1\r\n{}",
        standing(numbers[1], &open, 100, &[]),
        standing(numbers[3], &open, 120, &[100])
    ));
    assert!(talk.written().contains("confirm"));
}

/// The session with a group whose marker is of another mode, as this answer says.
fn greeted_in_other_mode(answer: &str) -> (ScriptedSession, String) {
    let mut talk = connected(Some(2));
    let sent = talk.written();
    let other = |number: &str| format!("*2\r\n:{number}\r\n${}\r\n{answer}\r\n", answer.len());
    let asked = numbers(&sent);
    talk.hear(other(asked[0]) + &other(asked[1]) + ":0\r\n" + &other(asked[3]));
    talk.send(1, Verb::Acquire);
    let sent = talk.written();
    let asked = numbers(&sent);
    talk.hear(format!("+OK\r\n{}:0\r\n", other(asked[1])));
    let check = asked[3].to_owned();
    (talk, check)
}

/// The connection stays in use for the operator, who may renew the marker.
#[test]
fn other_clients_that_count_otherwise_are_told_of() {
    let three = text("0", "0 0").replace(" n 2 ", " n 3 ");
    for (answer, found) in [("string", None), (&*three, Some(3))] {
        let (mut talk, check) = greeted_in_other_mode(answer);
        talk.hear(format!(
            "*2\r\n:{check}\r\n${}\r\n{answer}\r\n",
            answer.len()
        ));
        let problem = outcome(&mut talk).unwrap_err();
        let named = Some(2);
        let expected = NodeError::ModeDiffers { named, found };
        assert!(problem.is_permanent() && problem == expected, "{problem:?}");
        assert!(problem.to_string().contains("replicas=2"), "{problem}");
        assert_eq!(last_error(&talk), problem);
        assert!(!talk.session.is_down());
    }
    // It is renewed.
    let (mut talk, check) = greeted_in_other_mode("string");
    talk.hear(standing(&check, &text("0", "0 0"), 100, &[100]));
    assert_eq!(outcome(&mut talk), Err(NodeError::ReignChanged));
    assert!(talk.session.is_down(), "it is greeted");

    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    let mut talk = connected(None);
    talk.written();
    talk.hear(wrong_type);
    talk.send(1, Verb::Acquire);
    let sent = talk.written();
    // Behind an error, a script proves the order of replies.
    talk.hear(format!(":{}\r\n+OK\r\n{wrong_type}", numbers(&sent)[0]));
    let unknown = NodeError::ModeDiffers {
        named: None,
        found: None,
    };
    assert_eq!(outcome(&mut talk), Err(unknown));
    assert!(!talk.session.is_down());
}

/// As on a server that was started a moment ago, or promoted: the whole question is asked again.
#[test]
fn questions_whose_script_the_server_does_not_know_are_asked_again_in_their_order() {
    let marker = text("900000", "0 0");
    let mut talk = greeted_with(&marker);
    talk.send(1, Verb::Acquire);
    talk.written();
    let unknown = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    talk.hear(format!("+OK\r\n{unknown}:0\r\n{unknown}"));
    assert_eq!(talk.votes(), []);
    let sent = talk.written();
    let numbers = numbers(&sent);
    assert!(sent.contains("touch") && sent.contains("WAIT"), "{sent}");
    talk.hear(format!(
        "{}:1\r\n{}",
        standing(numbers[0], &marker, 100, &[]),
        standing(numbers[2], &marker, 120, &[100])
    ));
    assert_eq!(outcome(&mut talk), Ok(()));
}

#[test]
fn votes_fail_for_the_reason_for_which_nothing_can_be_acknowledged() {
    let marker = text("900000", "0 0");
    for (touched, waited, is_it) in [
        (
            None,
            "-NOPERM this user has no permissions to run the 'wait' command\r\n",
            true,
        ),
        (
            Some("-NOREPLICAS Not enough good replicas to write.\r\n"),
            ":0\r\n",
            true,
        ),
        (
            None,
            "-UNBLOCKED force unblock from blocking operation\r\n",
            false,
        ),
    ] {
        let mut talk = greeted_with(&marker);
        talk.send(1, Verb::Acquire);
        let sent = talk.written();
        let numbers = numbers(&sent);
        let touch = standing(numbers[1], &marker, 100, &[]);
        talk.hear(format!(
            "+OK\r\n{}{waited}{}",
            touched.unwrap_or(&touch),
            standing(numbers[3], &marker, 120, &[100, 100])
        ));
        let result = outcome(&mut talk);
        assert!(!talk.session.is_down());
        match result {
            Err(NodeError::Server(error)) => {
                let is_right = error.kind == ServerErrorKind::NoPermission;
                assert!(is_it && (is_right || touched.is_some()), "{error}");
            }
            other => assert!(!is_it && other == Ok(()), "{other:?}"),
        }
        let is_sought = talk.session.looks_at().is_some();
        assert_eq!(is_sought, touched.is_some());
    }
}

/// What a server says that was up for long, was a part of the reign before, and is now one of this.
fn continued(run_id: &str, is_master: bool) -> History {
    History {
        run_id: run_id.to_owned(),
        uptime: Duration::from_secs(900),
        is_master,
        id: ID.to_owned(),
        former: Some(("4e0b".to_owned(), 50)),
    }
}

#[test]
fn new_locks_count_as_soon_as_the_servers_have_proven_the_reign() {
    let young = text("1000000", "4e0b b");
    let mut talk = greeted_with(&young);
    assert_eq!(talk.session.inquires_at(), Some(Time::ZERO), "at once");
    talk.session.inquiring(talk.now);
    let again_at = talk.now.after(Duration::from_millis(200));
    assert_eq!(talk.session.inquires_at(), Some(again_at), "and again");
    assert_eq!(talk.session.next_deadline(), Some(again_at));
    // As a caller sees it who waits.
    let minute = Duration::from_secs(60);
    assert!(talk.session.may_count_in(minute) < Duration::from_secs(1));

    let master = continued("a", true);
    talk.session.heard(talk.now, &master, &master);
    let fresh = History {
        uptime: Duration::from_secs(61),
        ..continued("c", false)
    };
    talk.session.heard(talk.now, &fresh, &master);
    assert_eq!(talk.written(), "", "the promoted one alone proves nothing");
    let witness = continued("c", false);
    talk.session.heard(talk.now, &witness, &master);
    let prove = talk.written();
    assert!(
        prove.contains("prove\r\n") && prove.contains("\r\nn\r\n"),
        "{prove}"
    );
    talk.session.heard(talk.now, &witness, &master);
    assert_eq!(
        (talk.session.inquires_at(), talk.written()),
        (None, String::new()),
        "once"
    );
    let proven = text("0", "4e0b b");
    talk.hear(standing(number(&prove), &proven, 130, &[100]));
    assert_eq!(vote(&mut talk, [&proven, &proven], 140, &[140]), Ok(()));
    assert!(status(&talk).quarantine.is_none());
}

#[test]
fn nobody_is_asked_about_a_reign_that_cannot_be_proven_or_is_old() {
    for (since, former, is_asked) in [
        ("1000000", "0 0", false),
        ("-", "0 0", false),
        ("-", "4e0b b", true),
        ("0", "4e0b b", false),
        ("940000", "4e0b b", true),
        ("939000", "4e0b b", false),
    ] {
        let mut talk = greeted_with(&text(since, former));
        // The first question is due since ever.
        talk.session.inquiring(talk.now);
        assert_eq!(
            talk.session.inquires_at().is_some(),
            is_asked,
            "{since} {former}"
        );
        talk.lose();
        assert_eq!(talk.session.inquires_at(), None);
    }
    assert_eq!(greeted(10).session.inquires_at(), None);
}

#[test]
fn a_reign_that_is_not_proven_soon_is_asked_about_seldom() {
    let mut talk = greeted_with(&text("1000000", "4e0b b"));
    let minute = Duration::from_secs(60);
    for _ in 0..50 {
        talk.session.inquiring(talk.now);
    }
    assert_eq!(
        talk.session.inquires_at(),
        Some(talk.now.after(Duration::from_secs(2)))
    );
    assert_eq!(talk.session.may_count_in(minute), minute);
}
