//! What is searched as a whole: how many sides there are, and how many processes each has.

use crate::mistake::{MISTAKES, Mistake};
use crate::{ONE_EACH, Search};
use models::explore::{self, Order};

/// More states than any of them has that is searched as a whole.
pub(crate) const STATES_MAX: usize = 5_000_000;

#[test]
fn two_sides_end_in_the_same_way_in_all_schedules() {
    let mut sound = Search {
        processes: vec![1, 1],
        ..ONE_EACH
    };
    let states = explore::all_sound("two sides", &mut sound, STATES_MAX);
    assert!(states > 10_000, "{states}");
}

#[test]
#[ignore = "it takes half a minute"]
fn three_sides_end_in_the_same_way_in_all_schedules() {
    let mut sound = Search {
        processes: vec![1, 1, 1],
        asks: 1,
        ..ONE_EACH
    };
    explore::all_sound("three sides", &mut sound, 50_000_000);
}

/// One process of a side takes part, and another one recovers beside it, or both recover.
fn one_is_replaced() -> Search {
    Search {
        processes: vec![2, 1],
        asks: 1,
        crashes: 0,
        ..ONE_EACH
    }
}

/// Two processes take part for one side, and recover.
fn both_are_asked() -> Search {
    Search {
        processes: vec![2, 1],
        crashes: 0,
        keeps_ids: true,
        ..ONE_EACH
    }
}

/// Two processes take part for one side, and the participant keeps no ids.
pub(crate) fn both_are_asked_and_forget() -> Search {
    Search {
        processes: vec![2, 1],
        crashes: 0,
        recovers: false,
        ..ONE_EACH
    }
}

#[test]
#[ignore = "it takes ten seconds: ./check runs it"]
fn a_side_of_two_processes_is_told_nothing_wrong_in_all_schedules() {
    for (name, mut sound) in [
        ("one is replaced", one_is_replaced()),
        ("both are asked", both_are_asked()),
        ("both are asked, and forget", both_are_asked_and_forget()),
    ] {
        let states = explore::all_sound(name, &mut sound, STATES_MAX);
        assert!(states > 10_000, "{name}: {states}");
    }
}

#[test]
#[ignore = "it takes ten seconds: ./check runs it"]
fn who_has_begun_it_joins_without_a_look_in_all_schedules() {
    for (name, sound) in [
        (
            "begun, one each",
            Search {
                processes: vec![1, 1],
                ..ONE_EACH
            },
        ),
        ("begun, one is replaced", one_is_replaced()),
        ("begun, both are asked", both_are_asked()),
        ("begun, and forget", both_are_asked_and_forget()),
    ] {
        let mut begun = Search {
            is_begun_by_side: true,
            ..sound
        };
        let states = explore::all_sound(name, &mut begun, STATES_MAX);
        assert!(states > 10_000, "{name}: {states}");
    }
}

/// One process has all sides. Beside it, another one recovers for the first of them.
fn one_has_all() -> Search {
    Search {
        processes: vec![2, 1],
        asks: 0,
        crashes: 0,
        has_whole: true,
        ..ONE_EACH
    }
}

#[test]
fn all_sides_of_one_process_end_in_the_same_way_in_all_schedules() {
    let states = explore::all_sound("one has all", &mut one_has_all(), STATES_MAX);
    assert!(states > 10_000, "{states}");
}

#[test]
#[ignore = "it takes minutes"]
fn all_sides_of_one_process_end_in_the_same_way_whoever_recovers_and_is_asked() {
    let mut both_recover = Search {
        processes: vec![2, 2],
        ..one_has_all()
    };
    explore::all_sound("both recover", &mut both_recover, 100_000_000);
    let mut asked_elsewhere = Search {
        asks: 1,
        keeps_ids: true,
        ..one_has_all()
    };
    explore::all_sound("one is asked elsewhere", &mut asked_elsewhere, 100_000_000);
}

#[test]
#[ignore = "it takes minutes"]
fn three_sides_of_one_process_end_in_the_same_way_in_all_schedules() {
    let mut three = Search {
        processes: vec![2, 1, 1],
        ..one_has_all()
    };
    explore::all_sound("one has all three", &mut three, 100_000_000);
}

#[test]
#[ignore = "it takes minutes"]
fn a_side_of_three_processes_is_told_nothing_wrong_in_all_schedules() {
    for (name, two) in [
        ("one is replaced", one_is_replaced()),
        ("both", both_are_asked()),
    ] {
        let mut three = Search {
            processes: vec![3, 1],
            ..two
        };
        explore::all_sound(name, &mut three, 100_000_000);
    }
}

/// Where several processes are asked to take part, a participant must keep the ids.
#[test]
fn a_participant_that_keeps_no_ids_cannot_be_asked_by_two_and_recovered() {
    let mut forgets = Search {
        keeps_ids: false,
        ..both_are_asked()
    };
    explore::broken("forgets", &mut forgets, STATES_MAX, Order::Depth);
}

#[test]
fn each_mistake_is_found() {
    for (mistake, words) in MISTAKES {
        let sides = match mistake {
            Mistake::CommitAtMajority => 3,
            _ => 2,
        };
        let mut one_each = Search {
            mistake,
            processes: vec![1; sides],
            ..ONE_EACH
        };
        if mistake.needs_whole() {
            let mut whole = Search {
                mistake,
                ..one_has_all()
            };
            explore::broken(words, &mut whole, STATES_MAX, Order::Depth);
            continue;
        }
        if !mistake.needs_two_processes() {
            explore::broken(words, &mut one_each, STATES_MAX, Order::Depth);
            continue;
        }
        explore::all_sound(words, &mut one_each, STATES_MAX);
        let several = match mistake {
            Mistake::OwnIsAborted => both_are_asked_and_forget(),
            Mistake::RefusedIsAborted => both_are_asked(),
            _ => one_is_replaced(),
        };
        let mut several = Search { mistake, ..several };
        explore::broken(words, &mut several, STATES_MAX, Order::Depth);
    }
}
