//! The order of waiters, from the lists of all nodes.

use super::*;
use crate::clock::wall_time;
use redlatch_protocol::inspect::WaiterSnapshot;

/// Nodes with these waiters, a letter each; `?` is a node that did not answer, `.` an empty queue.
/// Returns each waiter and the number of its nodes.
fn order(nodes: &str) -> Vec<String> {
    let waiter = |letter: u8| WaiterSnapshot {
        name: Token::new([letter; Token::LEN]),
        since: u64::from(letter) * 1_000_000,
        permits: None,
        owner: vec![letter],
    };
    let node = |text: &str| match text {
        "?" => None,
        "." => Some(KeySnapshot {
            left: -2,
            ..KeySnapshot::default()
        }),
        _ => {
            let waiters = text.bytes().map(waiter).collect();
            Some(KeySnapshot {
                left: -2,
                waiters,
                ..KeySnapshot::default()
            })
        }
    };
    let snapshots: Vec<_> = nodes.split(' ').map(node).collect();
    let waiters = waiters_of(&snapshots);
    waiters
        .iter()
        .map(|it| format!("{}{}", it.owner().unwrap(), it.nodes))
        .collect()
}

#[test]
fn waiters_of_a_majority_keep_the_nodes_order_whichever_nodes_lack_some() {
    let table: [(&str, &[&str]); 11] = [
        (". . .", &[]),
        ("cab cab cab", &["c3", "a3", "b3"]),
        ("cab cab ?", &["c2", "a2", "b2"]),
        ("ca ab cb", &["c2", "a2", "b2"]),
        // One node lost its queue.
        ("cab . cab", &["c2", "a2", "b2"]),
        ("c c cb b b", &["c3", "b3"]),
        ("b cb cb c b c b", &["c4", "b5"]),
        // On fewer nodes than a majority: behind the others, whatever these nodes say.
        ("xa a a", &["a3", "x1"]),
        ("xa ya a", &["a3", "x1", "y1"]),
        ("x ? .", &["x1"]),
        // The nodes disagree: most of them decide.
        ("ab ab ba", &["a3", "b3"]),
    ];
    for (nodes, expected) in table {
        assert_eq!(order(nodes), expected, "{nodes}");
    }
}

#[test]
fn waiters_of_a_majority_are_in_order_for_every_way_to_lack_some() {
    // Three waiters with the order c, a, b; each lacks up to two of five nodes.
    let lacking: Vec<u8> = (0_u8..32).filter(|nodes| nodes.count_ones() <= 2).collect();
    for choice in 0..lacking.len().pow(3) {
        let mut lists = vec![String::new(); 5];
        for (index, letter) in "cab".chars().enumerate() {
            let without = lacking[choice / lacking.len().pow(index as u32) % lacking.len()];
            let has = |node: &usize| without & 1 << node == 0;
            (0..5).filter(has).for_each(|node| lists[node].push(letter));
        }
        lists
            .iter_mut()
            .filter(|list| list.is_empty())
            .for_each(|list| list.push('.'));
        let nodes = lists.join(" ");
        let found: String = order(&nodes).iter().map(|name| &name[..1]).collect();
        assert_eq!(found, "cab", "{nodes}");
    }
}

#[test]
fn a_waiter_is_shown_with_its_label_and_its_own_time() {
    let waiter = |since, owner: &[u8]| WaiterSnapshot {
        name: Token::new([1; Token::LEN]),
        since,
        permits: None,
        owner: owner.to_vec(),
    };
    let shown = |waiter| {
        let waiters = vec![waiter];
        let snapshots = [Some(KeySnapshot {
            left: -2,
            waiters,
            ..KeySnapshot::default()
        })];
        waiters_of(&snapshots).remove(0)
    };
    let named = shown(waiter(1_500_000, b"me"));
    assert!(named.owner().is_some_and(|owner| owner == "me"));
    assert_eq!(named.since, wall_time(1_500_000));
    assert_eq!(
        shown(waiter(1, b"")).owner(),
        None,
        "an empty label is none"
    );
    // Whatever a node answers.
    let _ = shown(waiter(u64::MAX, b"me"));
    assert!(
        !format!("{named:?}").contains("1, 1"),
        "its name could free its place"
    );
}
