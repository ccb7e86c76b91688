//! Votes of a group that vouches for its master.

use super::*;

/// The answer to a greeting or a touch.
fn greeted(number: &str, marker: &str) -> String {
    format!("*4\r\n:{number}\r\n{marker}$4\r\n{ID}\r\n:1000000\r\n")
}

/// Asks for a lock, which the server grants. Was `WAIT` asked, which answers `acknowledged`, and
/// does the vote count by what the check says: how far the server has written, and each replica?
fn vote(
    talk: &mut ScriptedSession,
    marker: &str,
    acknowledged: u64,
    (offset, replicas): (u64, &[u64]),
) -> (bool, Result<(), NodeError>) {
    talk.send(1, Verb::Acquire);
    let sent = talk.written();
    talk.hear("+OK\r\n");
    if sent.contains("WAIT") {
        let touch = sent.split("\r\n*").map(number).nth(1).unwrap();
        talk.hear(format!("{}:{acknowledged}\r\n", greeted(touch, marker)));
    }
    talk.hear(check(number(&sent), marker, ID, offset, replicas));
    (sent.contains("WAIT"), outcome(talk))
}

#[test]
fn a_group_that_vouches_counts_from_its_first_answer_and_as_long_as_a_majority_acknowledges() {
    let mut talk = connected(Some(2));
    let sent = talk.written();
    assert!(
        sent.contains("await") && sent.contains("WAIT\r\n$1\r\n1\r\n"),
        "{sent}"
    );
    let numbers: Vec<&str> = sent.split("\r\n*").map(number).collect();
    let ours = sent
        .split("\r\n")
        .find(|word| word.starts_with("0000000000000007"))
        .unwrap();
    let marker = |since: &str| {
        let text = format!("redlatch1 a {ID} 0 {since} {ours}");
        format!("${}\r\n{text}\r\n", text.len())
    };
    talk.hear(greeted(numbers[0], &marker("-")));
    assert_eq!(
        status(&talk).group.map(|group| group.age),
        Some(None),
        "it waits"
    );
    talk.hear(format!(
        ":1\r\n{}",
        check(numbers[2], &marker("-"), ID, 70, &[70, 10])
    ));
    let confirm = talk.written();
    assert!(
        confirm.contains("confirm") && confirm.contains(ours),
        "{confirm}"
    );
    let marker = marker("900000");
    talk.hear(greeted(number(&confirm), &marker));
    // A write at 2 s that one replica has acknowledged, and then none for longer than the bound.
    talk.pass(2_000);
    let lock = |talk: &mut ScriptedSession, acknowledged, offset, replicas: &[u64]| {
        vote(talk, &marker, acknowledged, (offset, replicas))
    };
    assert_eq!(lock(&mut talk, 0, 100, &[99, 100]), (false, Ok(())));
    talk.pass(10_000);
    assert_eq!(
        lock(&mut talk, 0, 200, &[100, 120]),
        (true, Ok(())),
        "within the bound"
    );
    talk.pass(6_000);
    let refused = NodeError::NotVouched {
        wanted: 1,
        vouched_by: 0,
    };
    assert_eq!(lock(&mut talk, 0, 300, &[100, 120]), (true, Err(refused)));
    assert_eq!(lock(&mut talk, 0, 400, &[400]), (true, Ok(())), "and again");
    talk.pass(300);
    let group = status(&talk).group.expect("it was greeted");
    let vouched_ago = Some(Duration::from_millis(300));
    assert_eq!(
        (group.acknowledged, group.vouched_ago),
        (Some(1), vouched_ago)
    );
    // `WAIT` has the server write more than the replicas have acknowledged.
    talk.pass(30_000);
    assert_eq!(lock(&mut talk, 1, 500, &[463]), (true, Ok(())));
}

/// It is granted also where the key lives longer than it asks for. Then it writes nothing, and what
/// replicas have acknowledged is older than it.
#[test]
fn an_extension_is_vouched_for_by_a_write_of_its_own() {
    let mut talk = connected(Some(2));
    let sent = talk.written();
    let numbers: Vec<&str> = sent.split("\r\n*").map(number).collect();
    let greeted = |number: &str| reign(number, "900000");
    // The greeting writes the marker once more: the first extension is vouched for by that.
    talk.hear(greeted(numbers[0]));
    talk.hear(format!(
        ":0\r\n{}",
        check(numbers[2], &marker("900000"), ID, 70, &[70, 70])
    ));
    talk.send(1, Verb::Extend);
    let sent = talk.written();
    assert!(!sent.contains("WAIT"), "{sent}");
    talk.hear(format!(
        ":{}\r\n",
        sent.split("\r\n*").map(number).next().unwrap()
    ));
    talk.hear(check(number(&sent), &marker("900000"), ID, 70, &[70, 70]));
    assert_eq!(outcome(&mut talk), Ok(()));
    talk.pass(16_000);
    for (touches, offset, is_vouched) in [(false, 70, false), (true, 90, false), (true, 70, true)] {
        talk.pass(1_000);
        talk.send(1, Verb::Extend);
        let sent = talk.written();
        let numbers: Vec<&str> = sent.split("\r\n*").map(number).collect();
        assert!(sent.contains("touch"), "{sent}");
        let touched = match touches {
            true => greeted(numbers[1]),
            false => greeted(numbers[1]).replace(" n\r\n", " m\r\n"),
        };
        talk.hear(format!(":{}\r\n{touched}:0\r\n", numbers[0]));
        talk.hear(check(numbers[3], &marker("900000"), ID, offset, &[70, 70]));
        assert_eq!(outcome(&mut talk).is_ok(), is_vouched, "{touches} {offset}");
    }
}

/// Otherwise a reign that another client has greeted would be vouched for with the next vote only,
/// and in a quarantine that has not begun nobody votes who waits.
#[test]
fn a_reign_that_nobody_has_vouched_for_is_vouched_for_without_a_vote() {
    let mut talk = connected(Some(2));
    let sent = talk.written();
    let numbers: Vec<&str> = sent.split("\r\n*").map(number).collect();
    talk.hear(reign(numbers[0], "-"));
    talk.hear(format!(
        ":0\r\n{}",
        check(numbers[2], &marker("-"), ID, 90, &[70, 70])
    ));
    assert!(talk.written().is_empty(), "not for ever");
    // Again behind whatever is asked next, as a place in the queue.
    talk.send(1, Verb::Ping);
    let asked = talk.written();
    let numbers: Vec<&str> = asked.split("\r\n*").map(number).collect();
    talk.hear(format!("+PONG\r\n{}:1\r\n", reign(numbers[1], "-")));
    talk.hear(check(numbers[3], &marker("-"), ID, 90, &[70, 90]));
    assert!(talk.written().contains("confirm"));
}

/// Otherwise nobody would wait for the clock of the reign to be set: a lock that one program keeps
/// alive would be extended later by the pause between two attempts.
#[test]
fn the_first_vote_that_is_vouched_for_waits_until_the_reign_counts() {
    let mut talk = connected(Some(2));
    let sent = talk.written();
    let numbers: Vec<&str> = sent.split("\r\n*").map(number).collect();
    talk.hear(reign(numbers[0], "-"));
    talk.hear(format!(
        ":0\r\n{}",
        check(numbers[2], &marker("-"), ID, 90, &[70, 70])
    ));
    talk.send(1, Verb::Extend);
    let asked = talk.written();
    let numbers: Vec<&str> = asked.split("\r\n*").map(number).collect();
    talk.hear(format!(
        ":{}\r\n{}:1\r\n",
        numbers[0],
        reign(numbers[1], "-")
    ));
    talk.hear(check(numbers[3], &marker("-"), ID, 90, &[70, 90]));
    let confirm = talk.written();
    assert!(confirm.contains("confirm"), "{confirm}");
    assert_eq!(talk.votes(), [], "the clock is not set yet");
    talk.hear(reign(number(&confirm), "1000000"));
    let left = Duration::from_secs(15);
    assert_eq!(outcome(&mut talk), Err(NodeError::Quarantined { left }));
}
