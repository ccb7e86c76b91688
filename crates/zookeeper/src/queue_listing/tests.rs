//! What is seen of a lock.

use super::*;
use crate::jute::{FrameWriter, frame};
use crate::message::RequestKind;
use crate::path::{ContenderId, Root};

fn directory() -> Directory {
    Directory::new(&Root::new("/a").unwrap(), b"", b"b").unwrap()
}

/// The listing of a lock with these names in its directories.
fn listing(queue: &[&str], shares: &[&str]) -> QueueListing {
    let body = |names: &[&str]| {
        let mut bytes = Vec::new();
        let mut writer = FrameWriter::begin(&mut bytes);
        writer.int(i32::try_from(names.len()).unwrap());
        for name in names {
            writer.text(name);
        }
        for _ in 0..17 {
            writer.int(0);
        }
        writer.finish().unwrap();
        frame(&bytes).unwrap().unwrap().0.to_vec()
    };
    let shares: Vec<String> = shares.iter().map(|name| share(name)).collect();
    let shares: Vec<&str> = shares.iter().map(String::as_str).collect();
    let queue = body(queue);
    let shares = body(&shares);
    let names = |body| match EnsembleReply::decode(RequestKind::GetChildren, body).unwrap() {
        EnsembleReply::Children { names, .. } => Some(names),
        other => panic!("{other:?}"),
    };
    QueueListing::of_names(Layout::Curator, &directory(), names(&queue), names(&shares))
}

/// The whole name of a share: `p3-1` is permit number 3 of the contender with the id 1.
fn share(name: &str) -> String {
    let start = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match name[start.len()..].parse() {
        Ok(id) if start == "r" || start.len() > 2 => {
            format!("{start}{}", ContenderId::from_random([id; 16]))
        }
        _ => name.to_owned(),
    }
}

fn paths(listing: &QueueListing) -> Vec<String> {
    let path = |request: &EnsembleRequest| match request {
        EnsembleRequest::GetData { path, watch: false } => path.to_string(),
        other => panic!("{other:?}"),
    };
    listing.details().iter().map(path).collect()
}

/// The data of a znode that this transaction has created.
fn data(owner: &str, created_by: i64) -> Option<(&[u8], Stat)> {
    let mut bytes = Vec::new();
    let mut writer = FrameWriter::begin(&mut bytes);
    writer
        .long(created_by)
        .long(0)
        .long(7_000 + created_by)
        .long(0);
    writer.int(0).int(0).int(0).long(1).int(0).int(0).long(0);
    writer.finish().unwrap();
    let (body, _) = frame(&bytes).unwrap().unwrap();
    let EnsembleReply::Found(stat) = EnsembleReply::decode(RequestKind::Exists, body).unwrap()
    else {
        panic!("a stat was encoded")
    };
    Some((owner.as_bytes(), stat))
}

fn owners(members: &[ListedClient]) -> Vec<&str> {
    members
        .iter()
        .map(|member| std::str::from_utf8(&member.owner).unwrap())
        .collect()
}

#[test]
fn the_first_of_the_queue_holds_the_lock_and_the_others_wait_in_their_order() {
    let names = [
        "z-lock-0000000010",
        "a-lock-0000000011",
        "lock-0000000009",
        "other",
    ];
    let listing = listing(&names, &[]);
    let expected = [
        "/a/b/lock-0000000009",
        "/a/b/z-lock-0000000010",
        "/a/b/a-lock-0000000011",
    ];
    assert_eq!(paths(&listing), expected);
    let view = listing.view_of(&[data("x", 3), data("", 4), data("y", 5)]);
    assert_eq!(
        (owners(&view.holders), owners(&view.waiters)),
        (vec!["x"], vec!["", "y"])
    );
    assert_eq!((view.holder_count, view.waiter_count), (1, 2));
    assert!(!view.is_shared && !view.has_changed);
    let holder = &view.holders[0];
    assert_eq!(
        (&*holder.path, holder.created_at_ms, holder.slot),
        (expected[0], 7_003, None)
    );
}

#[test]
fn nobody_there_is_nobody() {
    let empty = listing(&["other"], &["x", "p", "p-1"]);
    assert_eq!(paths(&empty), [""; 0]);
    let view = empty.view_of(&[]);
    assert!(view.holders.is_empty() && view.waiters.is_empty() && !view.has_changed);
    assert_eq!((view.holder_count, view.waiter_count), (0, 0));
    let absent = QueueListing::of_names(Layout::Curator, &directory(), None, None);
    assert_eq!(absent.view_of(&[]), view, "no directories");
}

#[test]
fn shares_are_held_and_the_whole_queue_waits() {
    let listing = listing(&["lock-0000000009"], &["p11-1", "p2-1", "r0", "x"]);
    let expected = ["r0", "p2-1", "p11-1"].map(|name| format!("/a/b~shares/{}", share(name)));
    assert_eq!(paths(&listing)[..3], expected);
    let view = listing.view_of(&[data("r", 1), data("p", 2), data("q", 3), data("w", 4)]);
    assert!(view.is_shared && !view.has_changed);
    assert_eq!(
        (owners(&view.holders), owners(&view.waiters)),
        (vec!["r", "p", "q"], vec!["w"])
    );
    let slots: Vec<_> = view.holders.iter().map(|holder| holder.slot).collect();
    assert_eq!(slots, [None, Some(2), Some(11)]);
}

#[test]
fn who_is_gone_by_the_time_its_data_is_read_is_left_out() {
    let queue = listing(
        &["lock-0000000001", "lock-0000000002", "lock-0000000003"],
        &[],
    );
    let view = queue.view_of(&[data("a", 1), None, data("c", 3)]);
    assert_eq!(
        (owners(&view.holders), owners(&view.waiters)),
        (vec!["a"], vec!["c"])
    );
    assert_eq!((view.waiter_count, view.has_changed), (1, false));
    // The next one may hold the lock, or the first one has a share now.
    let view = queue.view_of(&[None, data("b", 2), data("c", 3)]);
    assert_eq!(
        (owners(&view.holders), owners(&view.waiters)),
        (vec![], vec!["b", "c"])
    );
    assert_eq!(
        (view.holder_count, view.waiter_count, view.has_changed),
        (0, 2, true)
    );
    let view = listing(&[], &["r1", "r2"]).view_of(&[None, data("b", 2)]);
    assert_eq!(
        (owners(&view.holders), view.holder_count, view.has_changed),
        (vec!["b"], 1, true)
    );
}

#[test]
fn past_the_end_of_the_numbers_the_transactions_give_the_order() {
    let names = [
        "a-lock-2147483647",
        "b-lock--2147483648",
        "c-lock-2147483647",
    ];
    let listing = listing(&names, &[]);
    assert_eq!(paths(&listing).len(), 3);
    let view = listing.view_of(&[data("a", 9), data("b", 7), data("c", 8)]);
    assert_eq!(
        (owners(&view.holders), owners(&view.waiters)),
        (vec!["b"], vec!["c", "a"])
    );
    let view = listing.view_of(&[data("a", 9), None, data("c", 8)]);
    assert!(view.has_changed && view.holders.is_empty());
}

#[test]
fn a_hundred_are_shown_and_all_are_counted() {
    let names: Vec<String> = (0..250)
        .map(|number| format!("lock-{number:010}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = vec![data("x", 1); 2 * SHOWN_MAX + 1];
    let held = listing(&names, &[]);
    assert_eq!(held.details().len(), SHOWN_MAX + 1);
    let view = held.view_of(&found[..SHOWN_MAX + 1]);
    assert_eq!((view.waiters.len(), view.waiter_count), (SHOWN_MAX, 249));
    let shares: Vec<String> = (0..150).map(|number| format!("p{number}-0")).collect();
    let shares: Vec<&str> = shares.iter().map(String::as_str).collect();
    let shared = listing(&names, &shares);
    assert_eq!(shared.details().len(), 2 * SHOWN_MAX + 1);
    let view = shared.view_of(&found);
    assert_eq!((view.holders.len(), view.holder_count), (SHOWN_MAX, 150));
    assert_eq!((view.waiters.len(), view.waiter_count), (SHOWN_MAX, 250));
}

#[test]
fn the_first_requests_are_behind_a_sync_and_list_the_queue_first() {
    let list = |path: &str| EnsembleRequest::GetChildren {
        path: path.into(),
        watch: false,
    };
    let expected = [
        EnsembleRequest::Sync("/a/b".into()),
        list("/a/b"),
        list("/a/b~shares"),
    ];
    assert_eq!(QueueListing::requests(&directory()), expected);
}
