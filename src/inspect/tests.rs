//! What a majority sees, from what each node says.

mod shares;
mod waiters;

use super::*;
use crate::node::command::RESERVED;

/// `a10` is a value and ten milliseconds to live, `a-` one without an end, `.` no key, `?` no
/// answer; `!x10` is a reservation for the waiter `x`.
fn inspection(nodes: &str) -> Result<Inspection, Vec<NodeReport>> {
    let snapshots: Vec<_> = nodes.split(' ').map(snapshot).collect();
    let report = |snapshot: &Option<KeySnapshot>| NodeReport {
        url: Arc::from("node"),
        answer: match snapshot {
            Some(_) => NodeAnswer::Granted,
            None => NodeAnswer::Failed(NodeError::Overloaded),
        },
    };
    let reports = snapshots.iter().map(report).collect();
    Inspection::of(Arc::from(&b"key"[..]), &snapshots, reports)
}

fn snapshot(text: &str) -> Option<KeySnapshot> {
    let (value, left) = text.split_at(1);
    match value {
        "?" => None,
        "." => {
            Some(KeySnapshot { value: None, left: -2, waiters: Vec::new(), holders: Vec::new() })
        }
        "!" => {
            let value = [RESERVED, &[left.as_bytes()[0]; Token::LEN]].concat();
            let left = left[1..].parse().unwrap();
            Some(KeySnapshot { value: Some(value), left, waiters: Vec::new(), holders: Vec::new() })
        }
        _ => {
            let value = [[value.as_bytes()[0]; Token::LEN].as_slice(), value.as_bytes()].concat();
            let left = if left == "-" { -1 } else { left.parse().unwrap() };
            Some(KeySnapshot { value: Some(value), left, waiters: Vec::new(), holders: Vec::new() })
        }
    }
}

fn held(owner: &str, left: Option<u64>) -> LockState {
    let owner = Some(Label(owner.as_bytes().to_vec()));
    LockState::Held(Holder { owner, remaining: left.map(Duration::from_millis), permit: None })
}

#[test]
fn a_majority_says_who_holds_a_lock_and_for_how_long() {
    let table = [
        ("a10 a20 a30", held("a", Some(20))),
        ("a10 a20 .", held("a", Some(10))),
        ("a10 a20 b30", held("a", Some(10))),
        ("a- a20 ?", held("a", Some(20))),
        ("a- a- a5", held("a", None)),
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
    assert!(!format!("{seen:?}").contains("97, 97"), "a token could release the lock");
}

#[test]
fn what_was_seen_to_be_a_lock_is_remembered_once_and_what_is_none_by_its_node() {
    let seen = inspection("a10 b20 a5 c- .").unwrap_or_else(|_| panic!("a majority answered")).seen;
    let names: Vec<_> = seen.locks.iter().map(|value| value[Token::LEN]).collect();
    assert_eq!((names, seen.others.len()), (b"ab".to_vec(), 1));

    let snapshot =
        |value, left| KeySnapshot { value, left, waiters: Vec::new(), holders: Vec::new() };
    let lock = |length: usize, left| snapshot(Some(vec![b'x'; length]), left);
    assert!(is_lock(&lock(1, 0)) && is_lock(&lock(SHOWN_MAX - 1, 1)));
    assert!(!is_lock(&lock(0, 1)), "no string, or an empty one");
    assert!(!is_lock(&lock(SHOWN_MAX, 1)), "the rest of it is not known");
    assert!(!is_lock(&lock(20, -1)) && !is_lock(&snapshot(None, -2)));
}

#[test]
fn a_reservation_is_neither_a_lock_nor_other_data() {
    let seen = inspection("!x10 !x10 a10").unwrap_or_else(|_| panic!("a majority answered"));
    let reserved: Vec<bool> = seen.nodes.iter().map(|node| node.is_reserved).collect();
    assert_eq!(reserved, [true, true, false]);
    assert!(seen.nodes.iter().all(|node| !node.agrees));
    assert_eq!((&seen.nodes[0].holder, &seen.nodes[1].holder), (&Ok(None), &Ok(None)));
    assert!(matches!(&seen.nodes[2].holder, Ok(Some(_))));
    assert_eq!((seen.seen.locks.len(), seen.seen.others.len()), (1, 0), "the lock on one node");
    let seen = inspection("!x10 !x10 !y10").unwrap_or_else(|_| panic!("a majority answered"));
    assert_eq!((seen.seen.locks.len(), seen.seen.others.len()), (0, 0));
}
