//! Each script's digest, its room, and its row in the table of commands that arrive late.

use super::*;
use crate::engine::{Request, Share, Verb};
use crate::node::command::is_plain;
use crate::node::fixture::{about, at, fenced, request, share, ttl};

/// The name and the file of each script.
const FILES: [(&str, &str); 18] = [
    ("claim", include_str!("claim.lua")),
    ("keep", include_str!("keep.lua")),
    ("release", include_str!("release.lua")),
    ("give", include_str!("give.lua")),
    ("fence", include_str!("fence.lua")),
    ("queue", include_str!("queue.lua")),
    ("listen", include_str!("listen.lua")),
    ("share", include_str!("share.lua")),
    ("keep_shared", include_str!("keep_shared.lua")),
    ("release_shared", include_str!("release_shared.lua")),
    ("release_reader", include_str!("release_reader.lua")),
    ("reign", include_str!("reign.lua")),
    ("check", include_str!("check.lua")),
    ("proof", include_str!("proof.lua")),
    ("remove", include_str!("../../inspect/remove.lua")),
    ("inspect", include_str!("../../inspect/inspect.lua")),
    ("scan", include_str!("../../inspect/scan.lua")),
    ("reign_acknowledged", include_str!("reign_acknowledged.lua")),
];

/// The script that carries out this request.
fn script_of(request: &Request) -> Option<Script> {
    request.command.of_node().script()
}

#[test]
fn the_digests_are_those_of_the_sources_and_the_numbers_those_of_the_places() {
    for (script, number) in ALL.iter().zip(0..) {
        assert_eq!(script.number, number);
        let digest = sha1_smol::Sha1::from(script.source).digest().to_string();
        assert_eq!(script.sha1, digest, "{}", script.source);
    }
    // The length of a text decides whether its last block holds the length too.
    for length in 0..200 {
        let text = "a".repeat(length);
        let digest = sha1_smol::Sha1::from(&text).digest().to_string();
        assert_eq!(
            sha1::hex(text.as_bytes()).as_slice(),
            digest.as_bytes(),
            "{length}"
        );
    }
}

#[test]
fn every_request_and_every_script_says_why_it_may_arrive_late() {
    let said: String = FILES
        .iter()
        .map(|(_, file)| *file)
        .chain([include_str!("../script.rs")])
        .collect();
    let verbs = [
        Verb::Acquire,
        Verb::Handoff,
        Verb::Extend,
        Verb::Release,
        Verb::Undo,
        Verb::Restore,
        Verb::Fence,
        Verb::Ping,
        Verb::Queue,
        Verb::Turn,
        Verb::Listen,
        #[cfg(feature = "diagnostics")]
        Verb::Ask,
        #[cfg(feature = "groups")]
        Verb::Reign,
        Verb::Custom,
    ];
    for verb in verbs {
        let is_said = said.lines().any(|line| {
            line.contains(&format!("`{verb:?}`"))
                && (line.starts_with("-- Late, or once more, as ") || line.starts_with("//! - `"))
        });
        assert!(is_said || verb == Verb::Custom, "{verb:?}");
        // A new action needs a reason.
        match verb {
            Verb::Acquire | Verb::Handoff | Verb::Extend | Verb::Release | Verb::Undo => {}
            Verb::Restore | Verb::Fence | Verb::Ping | Verb::Queue | Verb::Turn => {}
            Verb::Listen | Verb::Custom => {}
            #[cfg(feature = "diagnostics")]
            Verb::Ask => {}
            #[cfg(feature = "groups")]
            Verb::Reign => {}
        }
    }
    for (name, file) in FILES {
        assert!(
            file.lines()
                .any(|line| line.starts_with("-- Late, or once more")),
            "{name}"
        );
    }
}

#[test]
fn each_request_has_the_script_of_its_kind_of_lock() {
    let permit = Share::Permit {
        of: 3,
        number: Some(1),
    };
    let locks = [
        (|verb| request(verb, 7, at(0))) as fn(Verb) -> Request,
        |verb| fenced(verb, 7, at(0)),
    ];
    let of = |share_of: Share, verb| about(verb, share(7, share_of), at(0));
    let acquisitions = [Verb::Acquire, Verb::Handoff, Verb::Turn];
    for verb in acquisitions {
        for lock in locks {
            let request = lock(verb);
            // A plain lock is acquired by `SET`.
            let is_set = verb == Verb::Acquire && is_plain(request.lock().unwrap());
            assert_eq!(
                script_of(&request),
                (!is_set).then_some(CLAIM),
                "{request:?}"
            );
        }
        for it in [Share::Reader, permit] {
            assert_eq!(script_of(&of(it, verb)), Some(SHARE), "{verb:?} {it:?}");
        }
    }
    for verb in [Verb::Extend, Verb::Restore] {
        assert!(
            locks
                .iter()
                .all(|lock| script_of(&lock(verb)) == Some(KEEP)),
            "{verb:?}"
        );
        assert_eq!(script_of(&of(permit, verb)), Some(KEEP_SHARED));
    }
    for verb in [Verb::Release, Verb::Undo] {
        let removals = [
            (request(verb, 7, at(0)), RELEASE, GIVE),
            (of(Share::Reader, verb), RELEASE_READER, RELEASE_SHARED),
            (of(permit, verb), RELEASE_SHARED, RELEASE_SHARED),
        ];
        for (mut request, special, general) in removals {
            assert_eq!(script_of(&request), Some(special), "{request:?}");
            request.removal_mut().keep_for = Some(ttl(500));
            assert_eq!(script_of(&request), Some(general), "{request:?}");
        }
    }
}

#[test]
fn the_bytes_that_nodes_get_are_those_that_are_written_down() {
    let line = |(name, script): (&&str, &Script)| {
        format!("{name} {} {}\n", script.sha1, script.source.len())
    };
    let all: String = FILES
        .iter()
        .map(|(name, _)| name)
        .zip(ALL)
        .map(line)
        .collect();
    assert_eq!(
        all,
        include_str!("digests.txt"),
        "name, digest and bytes of each script"
    );
}
