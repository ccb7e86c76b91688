//! For how long the votes of a new reign do not count.

use super::*;

/// What becomes of a lock that the node refuses: it is held, or reserved for others.
fn refusal(talk: &mut ScriptedSession, since: &str) -> Result<(), NodeError> {
    talk.send(1, Verb::Acquire);
    let sent = talk.written();
    talk.hear("$-1\r\n");
    talk.hear(check(number(&sent), &marker(since), ID));
    outcome(talk)
}

#[test]
fn a_grant_waits_for_the_longest_ttl_and_the_bound() {
    for (age, left) in [(0, 75), (14, 61), (74, 1)] {
        let quarantined = Err(NodeError::Quarantined {
            left: Duration::from_secs(left),
        });
        let since = (1_000_000 - age * 1_000).to_string();
        assert_eq!(
            vote(&mut greeted(age), &marker(&since), ID),
            quarantined,
            "{age}"
        );
        if age < 15 {
            assert_eq!(refusal(&mut greeted(age), &since), quarantined, "{age}");
        }
    }
}

/// Whoever resumes it does not know whether another client has had it in the reign before.
#[test]
fn a_lock_that_is_resumed_is_not_set_again() {
    let mut talk = greeted(20);
    let mut resumed = request(Verb::Extend, 1, talk.now);
    if let Command::Keep(keep) = &mut resumed.command {
        keep.is_resumed = true;
    }
    talk.session.send(talk.now, Some(ticket(1)), resumed);
    let sent = talk.written();
    assert!(!sent.contains("restore\r\n$"), "{sent}");
}

#[test]
fn a_reign_is_no_older_than_when_its_answer_came() {
    let mut talk = connected(None);
    let sent = talk.written();
    talk.pass(400);
    talk.hear(reign(number(&sent), "990000"));
    assert_eq!(
        status(&talk).quarantine,
        Some(Duration::from_secs(65)),
        "the answer may have been made at once, and have taken all this time"
    );
}

/// The server has been up for long, and is asked for its reign once more, behind the vote.
#[test]
fn a_grant_before_the_reign_is_known_does_not_count() {
    let mut talk = connected(None);
    talk.send(1, Verb::Acquire);
    let sent = talk.written();
    assert!(
        sent.contains("greet") && sent.contains("NX"),
        "at once: {sent}"
    );
    let refusal = "-NOPERM this user has no permissions to run the 'eval' command\r\n";
    talk.hear(format!("{refusal}+OK\r\n{refusal}"));
    let again = talk.written();
    let numbers: Vec<&str> = again.split("\r\n*").map(number).collect();
    talk.hear(reign(numbers[0], "990000"));
    talk.hear(check(numbers[1], &marker("990000"), ID));
    let left = Duration::from_secs(75);
    assert_eq!(outcome(&mut talk), Err(NodeError::Quarantined { left }));
}
