//! Readers and permits: the permit in the lock and in every request about it, and the numbers of
//! fenced readers.

use super::super::super::fixture::{Script, draw, fenced_votes, rules, votes_of};
use super::*;
use crate::engine::{Extension, LockId, Node, Release, Share};

const ANY: Share = Share::Permit {
    of: 4,
    number: None,
};
const THIRD: Share = Share::Permit {
    of: 4,
    number: Some(2),
};

/// This share, with an owner's label, and a counter if it is fenced.
fn attributes(share: Share, is_fenced: bool) -> Arc<LockAttributes> {
    let hour = Ttl::from_duration(Duration::from_secs(3_600)).unwrap();
    let owner = b"me".to_vec();
    let share = Some(share);
    let fence = is_fenced.then_some(hour);
    Arc::new(LockAttributes {
        owner,
        fence,
        share,
        ..LockAttributes::default()
    })
}

fn taking(share: Share, is_fenced: bool, wait: Wait) -> Script {
    let ttl = Ttl::from_duration(Duration::from_millis(1_000)).unwrap();
    let acquire = Acquire::new(rules(5), Arc::from(&b"key"[..]), ttl, wait);
    Script::new(acquire.with(Some(attributes(share, is_fenced))))
}

/// These votes, of which the grants are for the third permit.
fn third(votes: &str) -> Votes {
    Votes {
        permit: Some(2),
        ..votes_of(votes)
    }
}

/// Answers of nodes that all have a counter, also if it is zero.
fn counted(votes: &str, counters: [u64; 5]) -> Votes {
    let mut votes = votes_of(votes);
    for (index, counter) in counters.into_iter().enumerate() {
        let node = Node::new(index);
        if votes.tally.granted.contains(node) {
            votes.counters.note(node, counter, true);
        }
    }
    votes
}

fn granted(outcome: Acquired) -> HeldLock {
    match outcome {
        Acquired::Held(held) => held,
        other => panic!("{other:?}"),
    }
}

fn share_of(request: &Request) -> Option<Share> {
    request.lock().expect("it is about a lock").share()
}

#[test]
fn the_lock_and_all_requests_about_it_have_the_permit_that_was_granted() {
    for is_fenced in [false, true] {
        let mut script = taking(ANY, is_fenced, Wait::No);
        let request = script.attempt(1_000, draw(1).at(50));
        assert_eq!(
            share_of(&request),
            Some(ANY),
            "each node chooses one that is free"
        );
        assert!(script.operation().is_shared());
        let answers = fenced_votes("yyynn", [if is_fenced { 50 } else { 0 }; 5]);
        let held = granted(
            script
                .answer(
                    1_005,
                    Votes {
                        permit: Some(2),
                        ..answers
                    },
                )
                .done(),
        );
        assert_eq!(
            held.attributes,
            Some(attributes(THIRD, is_fenced)),
            "the rest stays"
        );
        assert_eq!(held.id().share(), Some(THIRD));

        let now = Time::from_millis(1_100);
        let extension = Extension {
            held: held.clone(),
            ttl: held.ttl,
            began: now,
            is_resumed: false,
        };
        let release = Release {
            held: &held,
            keep_for: None,
            began: now,
        };
        let requests = [
            extension.request(&rules(5)).unwrap(),
            release.request(&rules(5)),
            held.undo(now, &rules(5)),
        ];
        for request in requests {
            assert_eq!(request.lock(), Some(&held.id()), "{:?}", request.verb());
            assert_eq!(share_of(&request), Some(THIRD), "{:?}", request.verb());
        }
    }
}

#[test]
fn a_permit_without_a_majority_is_undone_everywhere_whatever_was_granted() {
    let table = [
        ("yynnn", 1_005),
        ("ynnnf", 1_005),
        ("yy---", 1_050),
        ("yyynn", 1_988),
    ];
    for (votes, now) in table {
        let mut script = taking(ANY, false, Wait::No);
        script.attempt(1_000, draw(1));
        let undo = script.answer(now, third(votes)).undo();
        assert_eq!(
            (token_of(&undo), undo.nodes),
            (draw(1).token, NodeSet::all(5)),
            "{votes}"
        );
        assert_eq!(
            share_of(&undo),
            Some(ANY),
            "{votes}: nodes gave different ones"
        );
    }
}

#[test]
fn a_permit_of_split_votes_is_requested_again() {
    let mut script = taking(ANY, false, Wait::No);
    script.attempt(1_000, draw(1));
    script.answer(1_005, third("yynnn")).undo();
    assert!(script.wait() < Time::from_millis(1_050));
    let again = script.attempt(1_045, draw(2));
    assert_eq!(
        (share_of(&again), token_of(&again)),
        (Some(ANY), draw(2).token)
    );
    assert_eq!(
        granted(script.answer(1_046, third("yyy--")).done())
            .id()
            .share(),
        Some(THIRD)
    );
}

#[test]
fn a_reader_has_no_permit() {
    let mut script = taking(Share::Reader, false, Wait::No);
    let request = script.attempt(1_000, draw(1));
    assert_eq!(
        (share_of(&request), request.fence()),
        (Some(Share::Reader), Some(0))
    );
    let held = granted(script.answer(1_005, votes_of("yyynn")).done());
    let given = request
        .lock()
        .and_then(|lock| lock.attributes.clone())
        .unwrap();
    assert!(
        Arc::ptr_eq(&given, held.attributes.as_ref().unwrap()),
        "nothing was copied"
    );
    assert!(!acquire(Wait::No).operation().is_shared());
    let fenced = LockAttributes {
        share: None,
        ..(*attributes(ANY, true)).clone()
    };
    let ttl = Ttl::SHORTEST;
    let whole = Acquire::new(rules(5), Arc::from(&b"key"[..]), ttl, Wait::No);
    assert!(!whole.with(Some(Arc::new(fenced))).is_shared());
}

#[test]
fn every_fenced_share_names_its_wall_clock() {
    for share in [ANY, Share::Reader] {
        let mut script = taking(share, true, Wait::Forever);
        assert_eq!(
            script.attempt(1_000, draw(1).at(50)).fence(),
            Some(50),
            "{share:?}"
        );
        script.answer(1_005, votes_of("nnn--")).undo();
        let again = script.attempt(1_200, draw(2).at(50));
        assert_eq!(again.fence(), Some(50), "{share:?}");
        let plain = taking(share, false, Wait::No).attempt(1_000, draw(1).at(50));
        assert_eq!(plain.fence(), Some(0), "{share:?}");
    }
}

#[test]
fn a_readers_number_is_the_largest_that_a_majority_knows() {
    let table = [("yyy--", [7, 7, 7, 0, 0], 7), ("yyyyy", [9, 7, 9, 0, 9], 9)];
    for (votes, counters, number) in table {
        let mut script = taking(Share::Reader, true, Wait::No);
        script.attempt(1_000, draw(1));
        let held = granted(script.answer(1_005, counted(votes, counters)).done());
        assert_eq!(held.fence, Some(number), "{votes} {counters:?}");
    }
}

#[test]
fn a_number_that_a_minority_knows_is_told_to_all_nodes_before_a_reader_gets_it() {
    let table = [
        ("yyy--", [0, 0, 9, 0, 0]),
        ("yyy--", [9, 0, 9, 0, 0]),
        ("yyyyy", [7, 9, 9, 7, 0]),
    ];
    for (votes, counters) in table {
        let confirming = || {
            let mut script = taking(Share::Reader, true, Wait::No);
            let attempt = script.attempt(1_000, draw(1));
            let request = script.answer(1_005, counted(votes, counters)).request();
            assert_eq!(
                (request.verb(), request.fence()),
                (Verb::Fence, Some(9)),
                "{votes}"
            );
            assert_eq!(
                (request.lock(), request.nodes),
                (attempt.lock(), NodeSet::all(5))
            );
            script
        };
        let held = granted(confirming().answer(1_010, votes_of("yyy--")).done());
        assert_eq!(
            (held.fence, held.id().share()),
            (Some(9), Some(Share::Reader)),
            "{votes}"
        );
        let mut script = confirming();
        let undo = script.answer(1_010, votes_of("yynnn")).undo();
        assert_eq!(
            (share_of(&undo), undo.nodes),
            (Some(Share::Reader), NodeSet::all(5))
        );
        assert!(matches!(script.done(), Acquired::Contended), "{votes}");
    }
}

#[test]
fn a_permits_number_is_confirmed_for_that_permit() {
    let start = || {
        let mut script = taking(ANY, true, Wait::No);
        script.attempt(1_000, draw(1).at(5));
        let answers = fenced_votes("yyy--", [7, 9, 7, 0, 0]);
        let request = script
            .answer(
                1_005,
                Votes {
                    permit: Some(2),
                    ..answers
                },
            )
            .request();
        assert_eq!((request.verb(), request.fence()), (Verb::Fence, Some(9)));
        assert_eq!(
            share_of(&request),
            Some(THIRD),
            "the holders' set has it with its number"
        );
        script
    };
    // The second round grants no permit. The first one's stays.
    let held = granted(start().answer(1_010, votes_of("yyy--")).done());
    assert_eq!((held.fence, held.id().share()), (Some(9), Some(THIRD)));
    let mut script = start();
    let undo = script.answer(1_010, votes_of("ynn--")).undo();
    let LockId { token, .. } = undo.lock().unwrap();
    assert_eq!((*token, undo.nodes), (draw(1).token, NodeSet::all(5)));
}
