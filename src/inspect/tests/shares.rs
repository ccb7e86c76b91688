//! Readers and permits, from the sets of holders of all nodes.

use super::*;
use redlatch_protocol::inspect::{HolderSnapshot, WaiterSnapshot};

/// What nodes report, one word each: `a10,1b20` is a lock shared by the reader `a` for another ten
/// milliseconds and by `b` with permit 1; `+` one without holders; `=a10,…` one whose key is a
/// plain lock of `a`, with such a set beside it. The others are as in [`snapshot`].
fn shared(nodes: &str) -> Inspection {
    let snapshots: Vec<_> = nodes.split(' ').map(on_node).collect();
    let report = |snapshot: &Option<KeySnapshot>| {
        let answer = match snapshot {
            Some(_) => NodeAnswer::Answered,
            None => NodeAnswer::Failed(NodeError::Overloaded),
        };
        NodeReport::new(Arc::from("node"), NodeKind::Server, answer)
    };
    let reports = snapshots.iter().map(report).collect();
    Inspection::of(Arc::from(&b"key"[..]), &snapshots, reports)
        .unwrap_or_else(|_| panic!("{nodes}: a majority answered"))
}

fn on_node(text: &str) -> Option<KeySnapshot> {
    if text.starts_with(['?', '.', '!']) {
        return snapshot(text);
    }
    if let Some(beside) = text.strip_prefix('=') {
        let (plain, holders) = beside.split_once(',').expect("a lock, and a set");
        return Some(KeySnapshot {
            holders: holders_of(holders),
            ..snapshot(plain)?
        });
    }
    let holders = if text == "+" {
        Vec::new()
    } else {
        holders_of(text)
    };
    Some(KeySnapshot {
        holders,
        ..string(SHARED.to_vec(), 90)
    })
}

fn holders_of(text: &str) -> Vec<HolderSnapshot> {
    let holder = |text: &str| {
        let at = text
            .find(|it: char| it.is_ascii_lowercase())
            .expect("a name");
        let name = text.as_bytes()[at];
        let member = [&text.as_bytes()[..at], b":", &[name; Token::LEN], &[name]].concat();
        HolderSnapshot {
            member,
            left: text[at + 1..].parse().expect("a ttl"),
        }
    };
    text.split(',').map(holder).collect()
}

/// The holders in the words of [`shared`].
fn names(holders: &[Holder]) -> String {
    let name = |holder: &Holder| {
        let permit = holder
            .slot
            .map_or_else(String::new, |number| number.to_string());
        let owner = holder.owner().expect("each has a label");
        format!(
            "{permit}{owner}{}",
            holder.remaining.expect("each has a ttl").as_millis()
        )
    };
    holders.iter().map(name).collect::<Vec<_>>().join(",")
}

#[test]
fn the_holders_that_a_majority_has_are_shown_with_the_ttl_that_a_majority_gives_them() {
    let table = [
        ("a10 a20 a30", "a20"),
        ("a10 a20 ?", "a10"),
        ("a10 a20 .", "a10"),
        ("a10,b5 a20,b6 a30", "b5,a20"),
        // A holder that fewer nodes have is just coming or going.
        ("a10,b9 a10 a10", "a10"),
        // Permits in their order, behind the readers.
        ("3a1,1b2,c9 3a1,1b2,c9 3a1,1b2,c9", "c9,1b2,3a1"),
        ("2a1,10b1 2a1,10b1 .", "2a1,10b1"),
        // A node gave the same client another permit, or a reader's share.
        ("1a10 1a20 2a30", "1a10"),
        ("a10 a20 2a30", "a10"),
        // A majority of four and of five.
        ("a10 a20 a30 .", "a10"),
        ("a10,b1 a20,b1 a30 b1 b1", "b1,a10"),
        // A node whose key is a plain lock counts for no share, whatever is in its set.
        ("a10 a20 =b9,a30", "a10"),
    ];
    for (nodes, expected) in table {
        let LockState::Shared(holders) = shared(nodes).state else {
            panic!("{nodes}")
        };
        assert_eq!(names(&holders), expected, "{nodes}");
    }
}

#[test]
fn without_a_holder_of_a_majority_the_state_is_undecided() {
    let table = [
        "a10 b20 c30",
        "a10 b20 .",
        "1a10 2a20 3a30",
        "a10 + +",
        "+ + +",
        // No majority shares it at all.
        "a10 . ?",
        "a10 =b9,a10 .",
        "a10 a10 =b9,a10 =b9,a10",
    ];
    for nodes in table {
        assert_eq!(shared(nodes).state, LockState::Undecided, "{nodes}");
    }
    for (nodes, state) in [
        ("a10 . .", LockState::Free),
        ("a10 !x1 !x1", LockState::Reserved),
    ] {
        assert_eq!(shared(nodes).state, state, "{nodes}");
    }
    let LockState::Held(holder) = shared("a10 =b9,a10 =b8,a10").state else {
        panic!("a writer")
    };
    assert_eq!(
        (names(std::slice::from_ref(&holder)), holder.slot),
        ("b8".to_owned(), None)
    );
}

#[test]
fn each_node_is_shown_with_its_shares_and_without_a_single_holder() {
    let seen = shared("a10,2b20 a15 =c9,a30 . ?");
    let shares: Vec<String> = seen.nodes.iter().map(|node| names(&node.shares)).collect();
    assert_eq!(shares, ["a10,2b20", "a15", "", "", ""]);
    let is_single = |node: &NodeView| matches!(&node.holder, Ok(Some(_)));
    let single: Vec<bool> = seen.nodes.iter().map(is_single).collect();
    assert_eq!(single, [false, false, true, false, false]);
    assert!(
        !format!("{seen:?}").contains("97, 97"),
        "a token could release the share"
    );
    let agrees = |nodes| -> Vec<bool> { shared(nodes).nodes.iter().map(|it| it.agrees).collect() };
    assert_eq!(agrees("a10 a10 ."), [true, true, false]);
    assert_eq!(
        agrees("a10 b10 =c9,a10"),
        [true, true, false],
        "both share it"
    );
}

#[test]
fn members_that_the_library_did_not_write_are_not_shown() {
    let mut snapshot = on_node("a10").expect("it answered");
    let garbage = [&b"no colon"[..], b"x:y", b"-1:y", b"4294967296:y", b""];
    let holder = |member: &[u8]| HolderSnapshot {
        member: member.to_vec(),
        left: 5,
    };
    snapshot.holders.extend(garbage.map(holder));
    let snapshots = vec![Some(snapshot); 3];
    let report = NodeReport::new(Arc::from("node"), NodeKind::Server, NodeAnswer::Answered);
    let seen = Inspection::of(Arc::from(&b"key"[..]), &snapshots, vec![report; 3]);
    let seen = seen.unwrap_or_else(|_| panic!("a majority answered"));
    let LockState::Shared(holders) = &seen.state else {
        panic!("{seen:?}")
    };
    assert_eq!(names(holders), "a10");
    assert!(seen.nodes.iter().all(|node| names(&node.shares) == "a10"));
}

#[test]
fn a_release_by_force_removes_the_members_that_were_seen_or_the_value_of_a_lock_that_has_none() {
    let seen = shared("a10,2b20 a15 . =c9,d5").seen;
    let member =
        |before: &str, name: u8| [before.as_bytes(), &[name; Token::LEN], &[name]].concat();
    // The set beside a plain lock is of no use any more: only the lock is removed.
    let exclusive = [&[b'c' | 0x80; Token::LEN][..], b"c"].concat();
    let expected = [member("2:", b'b'), member(":", b'a'), exclusive];
    assert_eq!(seen.locks.to_vec(), expected);
    assert!(
        seen.others.is_empty(),
        "the shared value is no other program's"
    );
    // Nobody has a share: the node removes the value if that is so still.
    assert_eq!(shared("+ + +").seen.locks.to_vec(), [SHARED]);
}

#[test]
fn a_waiter_says_whether_it_waits_for_a_share() {
    for (permits, is_for_share) in [(None, false), (Some(0), true), (Some(4), true)] {
        let waiter = WaiterSnapshot {
            name: Token::new([1; Token::LEN]),
            since: 5,
            permits,
            owner: Vec::new(),
        };
        let node = snapshot(".").map(|it| KeySnapshot {
            waiters: vec![waiter],
            ..it
        });
        let found = waiters_of(&[node]);
        let found: Vec<bool> = found.iter().map(QueuedWaiter::is_for_share).collect();
        assert_eq!(found, [is_for_share]);
    }
}

#[test]
fn a_share_ends_sooner_than_its_key_where_that_lives_longer() {
    let node = on_node("a3000").map(|it| KeySnapshot {
        skew: Duration::from_secs(1),
        ..it
    });
    let report = NodeReport::new(Arc::from("node"), NodeKind::Group, NodeAnswer::Answered);
    let seen = Inspection::of(Arc::from(&b"key"[..]), &[node], vec![report]);
    let seen = seen.expect("it has answered");
    let LockState::Shared(holders) = &seen.state else {
        panic!("{:?}", seen.state)
    };
    for holder in holders.iter().chain(&seen.nodes[0].shares) {
        assert_eq!(holder.remaining, Some(Duration::from_secs(2)));
    }
    assert_eq!((holders.len(), seen.nodes[0].shares.len()), (1, 1));
}
