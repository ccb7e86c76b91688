//! Tests of what Sentinels say, with literal answers.

use super::*;
use crate::resp::decode;
use std::sync::Arc;

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn read(pairs: &[&str]) -> Option<SentinelAnswer> {
    let list: String = pairs.iter().map(|text| bulk(text)).collect();
    let bytes = format!("*{}\r\n{list}", pairs.len());
    SentinelAnswer::read(&decode(bytes.as_bytes()).unwrap().unwrap().0)
}

fn answer(sentinels: u32, quorum: u32, replicas: u32) -> SentinelAnswer {
    let down_after = Duration::from_secs(30);
    SentinelAnswer {
        sentinels,
        quorum,
        replicas,
        down_after,
    }
}

#[test]
fn an_answer_is_read_and_what_is_none_is_not() {
    let whole = [
        ["name", "locks"],
        ["ip", "10.0.0.1"],
        ["port", "6379"],
        ["down-after-milliseconds", "30000"],
        ["num-slaves", "2"],
        ["num-other-sentinels", "4"],
        ["quorum", "3"],
    ];
    assert_eq!(read(&whole.concat()), Some(answer(5, 3, 2)));
    assert_eq!(read(&whole[..5].concat()), None);
    assert_eq!(read(&["num-other-sentinels", "x"]), None);
    let error = decode(b"-ERR No such master with that name\r\n")
        .unwrap()
        .unwrap();
    assert_eq!(SentinelAnswer::read(&error.0), None);
}

/// The warnings about a group with a bound of 15 s and a longest ttl of 120 s.
fn warned(named: usize, answers: Vec<SentinelAnswer>, replicas: Option<u32>) -> Vec<NodeWarning> {
    let bound = Duration::from_secs(15);
    let max_ttl = Duration::from_secs(120);
    let options = GroupOptions {
        tag: Arc::default(),
        bound,
        named_within: bound,
        max_ttl,
        replicas,
        skew: Duration::ZERO,
    };
    let mut status = NodeStatus::unknown(&"redis+sentinel://s1/m".into());
    status.role = Some(Role::Master { replicas: 2 });
    status.group_options = Some(Arc::new(options));
    status.set_sentinels(SentinelAnswers { named, answers });
    warnings(&status, true)
}

#[test]
fn too_few_an_even_number_and_a_low_quorum_are_warnings() {
    let of = |known, quorum| warned(1, vec![answer(known, quorum, 2)], None);
    for (known, quorum) in [(3, 2), (5, 3), (5, 5)] {
        assert_eq!(of(known, quorum), []);
    }
    for (known, quorum) in [(1, 1), (2, 2), (4, 3), (3, 1), (5, 2)] {
        assert_eq!(
            of(known, quorum),
            [NodeWarning::Sentinels { known, quorum }]
        );
    }
    let text = |known, quorum| NodeWarning::Sentinels { known, quorum }.to_string();
    assert!(text(2, 2).contains("use three") && text(4, 3).contains("odd number"));
    assert!(text(5, 2).contains("set the quorum to 3"), "{}", text(5, 2));
    let differ = vec![answer(3, 2, 2), answer(3, 1, 2)];
    assert_eq!(
        warned(2, differ, None),
        [NodeWarning::Sentinels {
            known: 3,
            quorum: 1
        }]
    );
}

#[test]
fn silence_is_a_warning_and_nothing_else_is_concluded_from_it() {
    let silent = |silent, named| vec![NodeWarning::SentinelsSilent { silent, named }];
    assert_eq!(warned(3, Vec::new(), Some(5)), silent(3, 3));
    assert_eq!(warned(3, vec![answer(3, 2, 2)], Some(2)), silent(2, 3));
}

#[test]
fn replicas_that_are_not_counted_are_a_warning() {
    let listed = |named, listed| warned(1, vec![answer(3, 2, listed)], named);
    assert_eq!(
        listed(Some(2), 3),
        [NodeWarning::ReplicasListed {
            named: 2,
            listed: 3
        }]
    );
    // As many are connected: that is another warning.
    assert_eq!(listed(Some(3), 2), []);
    assert_eq!((listed(Some(3), 3), listed(None, 3)), (vec![], vec![]));
}

#[test]
fn a_failover_that_takes_longer_than_two_thirds_of_the_longest_ttl_is_a_warning_for_one_node() {
    let slow = |seconds| {
        let down_after = Duration::from_secs(seconds);
        SentinelAnswer {
            down_after,
            ..answer(3, 2, 2)
        }
    };
    assert_eq!(warned(1, vec![slow(64)], None), []);
    let found = warned(1, vec![slow(65)], None);
    assert!(
        matches!(found[..], [NodeWarning::KeptLocksEnd { .. }]),
        "{found:?}"
    );
    assert!(
        found[0]
            .to_string()
            .contains("65s (down-after-milliseconds)"),
        "{}",
        found[0]
    );
}
