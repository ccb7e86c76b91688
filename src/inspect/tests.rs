//! What a majority sees, from what each node says.

mod shares;
mod waiters;

use super::*;
use crate::node::NodeKind;
use crate::node::command::RESERVED;
use redlatch_protocol::inspect::SHOWN_MAX;

/// `a10` is a value and ten milliseconds to live, `a-` one without an end, `.` no key, `*` a key of
/// another type, `?` no answer; `!x10` is a reservation for the waiter `x`.
fn inspection(nodes: &str) -> Result<Inspection, Vec<NodeReport>> {
    let snapshots: Vec<_> = nodes.split(' ').map(snapshot).collect();
    let report = |snapshot: &Option<KeySnapshot>| {
        let answer = match snapshot {
            Some(_) => NodeAnswer::Answered,
            None => NodeAnswer::Failed(NodeError::Overloaded),
        };
        NodeReport::new(Arc::from("node"), NodeKind::Server, answer)
    };
    let reports = snapshots.iter().map(report).collect();
    Inspection::of(Arc::from(&b"key"[..]), &snapshots, reports)
}

fn snapshot(text: &str) -> Option<KeySnapshot> {
    let (value, left) = text.split_at(1);
    match value {
        "?" => None,
        "." => Some(KeySnapshot {
            left: -2,
            ..KeySnapshot::default()
        }),
        "*" => Some(KeySnapshot {
            value: Some(Vec::new()),
            left: -1,
            ..KeySnapshot::default()
        }),
        "!" => {
            let value = [RESERVED, &[left.as_bytes()[0]; Token::LEN]].concat();
            let left = left[1..].parse().unwrap_or(-1);
            Some(string(value, left))
        }
        _ => {
            // One of this library: not all of its bytes are printable.
            let token = [value.as_bytes()[0] | 0x80; Token::LEN];
            let value = [token.as_slice(), value.as_bytes()].concat();
            let left = if left == "-" {
                -1
            } else {
                left.parse().unwrap()
            };
            Some(string(value, left))
        }
    }
}

fn string(value: Vec<u8>, left: i64) -> KeySnapshot {
    KeySnapshot {
        value: Some(value),
        is_string: true,
        left,
        ..KeySnapshot::default()
    }
}

fn held(owner: &str, left: Option<u64>) -> LockState {
    let owner = Some(Label(owner.as_bytes().to_vec()));
    LockState::Held(Holder {
        owner,
        remaining: left.map(Duration::from_millis),
        slot: None,
        since: None,
        other_program: None,
    })
}

#[test]
fn a_majority_says_who_holds_a_lock_and_for_how_long() {
    let table = [
        ("a10 a20 a30", held("a", Some(20))),
        ("a10 a20 .", held("a", Some(10))),
        ("a10 a20 b30", held("a", Some(10))),
        ("a- a20 a5", held("a", Some(20))),
        ("a- a- a5", LockState::NotALock(NotALock::NoTtl)),
        ("a- a20 ?", held("a", Some(20))),
        ("a- b- c-", LockState::NotALock(NotALock::NoTtl)),
        ("* * *", LockState::NotALock(NotALock::NotAString)),
        ("* a- ?", LockState::NotALock(NotALock::NotAString)),
        ("* a1 a2", held("a", Some(1))),
        ("* . .", LockState::Free),
        ("* . ?", LockState::Undecided),
        ("* * . .", LockState::NotALock(NotALock::NotAString)),
        ("* !x1 !x1", LockState::Reserved),
        ("* * !x1", LockState::NotALock(NotALock::NotAString)),
        ("a1 . .", LockState::Free),
        (". . ?", LockState::Free),
        ("a1 b1 .", LockState::Undecided),
        ("a1 . ?", LockState::Undecided),
        ("a1 a2 . .", LockState::Undecided),
        ("a1 a2 a3 .", held("a", Some(1))),
        ("!x1 !x1 !x1", LockState::Reserved),
        ("!x1 !y1 !z1", LockState::Reserved),
        ("!x1 !x1 a9", LockState::Reserved),
        ("!x1 . a9", LockState::Reserved),
        ("!x1 . ?", LockState::Reserved),
        ("!x1 . .", LockState::Free),
        ("!x1 a1 a2", held("a", Some(1))),
        ("!x1 a1 b2", LockState::Undecided),
        ("!x1 a1 ?", LockState::Undecided),
    ];
    for (nodes, state) in table {
        assert_eq!(inspection(nodes).unwrap().state, state, "{nodes}");
    }
    for nodes in ["? ? a1", "? ? ?", "? ? a1 a1"] {
        assert!(inspection(nodes).is_err(), "{nodes}");
    }
}

#[test]
fn each_node_is_shown_with_what_it_holds_and_without_the_token() {
    let seen = inspection("a10 b20 a5 . ?").unwrap_or_else(|_| panic!("a majority answered"));
    assert_eq!(seen.state, LockState::Undecided);
    let seen = inspection("a10 a20 b5 a7 ?").unwrap_or_else(|_| panic!("a majority answered"));
    let agrees: Vec<bool> = seen.nodes.iter().map(|node| node.agrees).collect();
    assert_eq!(agrees, [true, true, false, true, false]);
    assert_eq!(seen.nodes[4].holder, Err(NodeError::Overloaded));
    assert!(
        !format!("{seen:?}").contains("97, 97"),
        "a token could release the lock"
    );
}

#[test]
fn what_was_seen_to_be_a_lock_is_remembered_once_and_what_is_none_by_its_node() {
    let seen = inspection("a10 b20 a5 c- .")
        .unwrap_or_else(|_| panic!("a majority answered"))
        .seen;
    let names: Vec<_> = seen.locks.iter().map(|value| value[Token::LEN]).collect();
    assert_eq!((names, seen.others.len()), (b"ab".to_vec(), 1));

    let kind = |length: usize, left| NotALock::of(&string(vec![b'x'; length], left));
    assert_eq!((kind(1, 0), kind(SHOWN_MAX - 1, 1)), (None, None));
    assert_eq!(kind(0, 1), Some(NotALock::Empty));
    assert_eq!(
        kind(SHOWN_MAX, 1),
        Some(NotALock::TooLong),
        "the rest of it is not known"
    );
    assert_eq!(kind(20, -1), Some(NotALock::NoTtl));
    let of = |text| NotALock::of(&snapshot(text).expect("an answer"));
    assert_eq!(
        (of("*"), of("."), of("!x-")),
        (Some(NotALock::NotAString), None, None)
    );
}

#[test]
fn a_reservation_is_neither_a_lock_nor_other_data() {
    let seen = inspection("!x10 !x10 a10").unwrap_or_else(|_| panic!("a majority answered"));
    let reserved: Vec<bool> = seen.nodes.iter().map(|node| node.is_reserved).collect();
    assert_eq!(reserved, [true, true, false]);
    assert!(seen.nodes.iter().all(|node| !node.agrees));
    assert_eq!(
        (&seen.nodes[0].holder, &seen.nodes[1].holder),
        (&Ok(None), &Ok(None))
    );
    assert!(matches!(&seen.nodes[2].holder, Ok(Some(_))));
    assert_eq!(
        (seen.seen.locks.len(), seen.seen.others.len()),
        (1, 0),
        "the lock on one node"
    );
    let seen = inspection("!x10 !x10 !y10").unwrap_or_else(|_| panic!("a majority answered"));
    assert_eq!((seen.seen.locks.len(), seen.seen.others.len()), (0, 0));
}

#[test]
fn data_that_is_no_lock_has_no_holder_unless_it_is_a_lock_that_lost_its_ttl() {
    let seen = inspection("a- a20 * . ?").unwrap_or_else(|_| panic!("a majority answered"));
    assert_eq!(seen.state, LockState::Undecided);
    let kinds: Vec<_> = seen.nodes.iter().map(|node| node.not_a_lock).collect();
    let no_ttl = Some(NotALock::NoTtl);
    let other = Some(NotALock::NotAString);
    assert_eq!(kinds, [no_ttl, None, other, None, None]);
    assert_eq!(
        (&seen.nodes[0].holder, &seen.nodes[2].holder),
        (&Ok(None), &Ok(None))
    );
    let seen = inspection("a- a20 a10 * .").unwrap_or_else(|_| panic!("a majority answered"));
    assert_eq!((&seen.state, seen.holder_count), (&held("a", Some(10)), 1));
    assert!(seen.nodes[0].agrees && seen.nodes[0].not_a_lock.is_none());
    let holder = seen.nodes[0]
        .holder
        .as_ref()
        .expect("an answer")
        .as_ref()
        .expect("a holder");
    assert_eq!(holder.remaining, None);
}

#[test]
fn a_quarantine_ends_when_a_majority_can_grant() {
    const DOWN: u64 = 100;
    let seconds = |numbers: [u64; 3]| {
        let node = |seconds: u64| {
            if seconds == DOWN {
                return None;
            }
            let quarantine = (seconds > 0).then(|| Duration::from_secs(seconds));
            Some(KeySnapshot {
                left: -2,
                quarantine,
                ..KeySnapshot::default()
            })
        };
        let report = || NodeReport::new(Arc::from("node"), NodeKind::Server, NodeAnswer::Answered);
        let key = Arc::from(&b"key"[..]);
        let snapshots = numbers.map(node);
        let seen = Inspection::of(key, &snapshots, vec![report(), report(), report()]);
        let seen = seen.unwrap_or_else(|_| panic!("a majority answered"));
        seen.quarantine.map(|left| left.as_secs())
    };
    let table = [
        ([0, 0, 9], None),
        ([0, 7, 9], Some(7)),
        ([5, 7, 9], Some(7)),
        ([0, 0, DOWN], None),
        ([0, 7, DOWN], Some(7)),
        ([5, 7, DOWN], Some(7)),
    ];
    for (numbers, expected) in table {
        assert_eq!(seconds(numbers), expected, "{numbers:?}");
    }
}

#[test]
fn a_lock_ends_sooner_than_its_key_where_that_lives_longer() {
    let remaining = |value: &[u8], left, skew| {
        let node = KeySnapshot {
            skew: Duration::from_millis(skew),
            ..string(value.to_vec(), left)
        };
        let snapshots = [Some(node.clone()), Some(node)];
        let report = || NodeReport::new(Arc::from("node"), NodeKind::Group, NodeAnswer::Answered);
        let key = Arc::from(&b"key"[..]);
        let seen = Inspection::of(key, &snapshots, vec![report(), report()]);
        let seen = seen.unwrap_or_else(|_| panic!("a majority answered"));
        let LockState::Held(holder) = seen.state else {
            panic!("{:?}", seen.state)
        };
        let on_node = seen.nodes[0]
            .holder
            .clone()
            .expect("an answer")
            .expect("a holder");
        assert_eq!(on_node.remaining, holder.remaining);
        holder.remaining.map(|left| left.as_millis())
    };
    let ours = [0x80; Token::LEN];
    assert_eq!(remaining(&ours, 3_000, 0), Some(3_000));
    assert_eq!(remaining(&ours, 3_000, 1_000), Some(2_000));
    assert_eq!(
        remaining(&ours, 400, 1_000),
        Some(0),
        "nobody else has it yet"
    );
    let of_redis_py = b"d0f7eeeae93a11f1a51e02fc00000001";
    assert_eq!(remaining(of_redis_py, 3_000, 1_000), Some(3_000));
}

#[test]
fn a_grant_is_the_same_while_a_majority_has_its_value() {
    let seen = |nodes| inspection(nodes).expect("a majority answers");
    let first = seen("a10 a10 b30");
    assert!(seen("a30 a20 .").is_same_grant(&first), "extended");
    assert!(
        !seen("b10 b10 a30").is_same_grant(&first),
        "a minority is not a grant"
    );
    assert!(!seen(". . .").is_same_grant(&first) && !seen(". . .").is_same_grant(&seen(". . .")));
}
