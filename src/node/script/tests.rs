//! Each script's digest, its room, and its row in the table of commands that arrive late.

use super::*;
use crate::engine::{Share, Verb};
use crate::node::command::is_plain;
use crate::node::fixture::{about, at, fenced, request, share, ttl};

#[test]
fn the_digests_are_those_of_the_sources() {
    for script in ALL {
        let digest = sha1_smol::Sha1::from(script.source).digest().to_string();
        assert_eq!(script.sha1, digest, "{}", script.source);
    }
    // The length of a text decides whether its last block holds the length too.
    for length in 0..200 {
        let text = "a".repeat(length);
        let digest = sha1_smol::Sha1::from(&text).digest().to_string();
        assert_eq!(sha1::hex(text.as_bytes()).as_slice(), digest.as_bytes(), "{length}");
    }
}

#[test]
fn the_table_of_late_arrivals_has_every_request_and_every_script() {
    let verbs = [
        Verb::Acquire,
        Verb::Handoff,
        Verb::Extend,
        Verb::Release,
        Verb::Undo,
        Verb::Restore,
        Verb::Fence,
        Verb::Inspect,
        Verb::Remove,
        Verb::Scan,
        Verb::Ping,
        Verb::Queue,
        Verb::Turn,
        Verb::Listen,
        Verb::Ask,
    ];
    for verb in verbs {
        assert!(LATE_ARRIVALS.contains(&format!("`{verb:?}`")), "{verb:?}");
        // A new action needs a row in the table.
        match verb {
            Verb::Acquire | Verb::Handoff | Verb::Extend | Verb::Release | Verb::Undo => {}
            Verb::Restore | Verb::Fence | Verb::Inspect | Verb::Remove | Verb::Ping => {}
            Verb::Queue | Verb::Turn | Verb::Listen | Verb::Ask | Verb::Scan => {}
            Verb::Await | Verb::EndWaits => unreachable!("never sent"),
        }
    }
    assert_eq!(NAMES.len(), ALL.len());
    for name in NAMES {
        let row = format!("`{name}.lua` | ");
        assert!(LATE_ARRIVALS.lines().any(|line| line.contains(&row)), "{name}");
    }
    assert!(LATE_ARRIVALS.lines().all(|line| !line.starts_with('|') || line.ends_with('|')));
}

#[test]
fn every_request_has_one_room_at_most() {
    let verbs = [Verb::Acquire, Verb::Handoff, Verb::Turn, Verb::Extend, Verb::Restore];
    let removals = [Verb::Release, Verb::Undo];
    let permit = Share::Permit { of: 3, number: Some(1) };
    let rooms = |request: &Request| ROOMS.iter().filter(|room| (room.is_for)(request)).count();
    for verb in verbs.into_iter().chain(removals) {
        let of_shares = [Share::Reader, permit].map(|of| about(verb, share(7, of), at(0)));
        let exclusive = [request(verb, 7, at(0)), fenced(verb, 7, at(0))];
        for mut request in of_shares.into_iter().chain(exclusive) {
            // A plain lock is acquired by `SET`.
            let is_set = matches!(&request.action, Action::Acquire(new) if is_plain(&new.lock));
            assert_eq!(rooms(&request), usize::from(!is_set), "{request:?}");
            if let Action::Release(it) | Action::Undo(it) = &mut request.action {
                it.linger = Some(ttl(500));
                assert_eq!(rooms(&request), 1, "{request:?}");
            }
        }
    }
}
