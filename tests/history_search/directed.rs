//! Schedules that random walks hardly find. Each leads to two holders by one wrong rule, or where
//! one assumption does not hold, and to one holder by the right rule.

use crate::group::{Kept, Way};
use crate::schedule::{ANN, BOB, NEW, OLD, REPLICA, Schedule};
use crate::scheme::{Faults, Kind, Mistake, Scheme};
use crate::world::{Step, Violation};
use Step::{
    Attach, Begin, Cut, Demote, ElectAgain, Execute, Extend, Flush, Load, Promote, Release,
    Restart, Resume, Save,
};
use models::explore;

const TTL: u8 = 8;

const SCHEME: Scheme = Scheme {
    ttl: TTL,
    ticks: 40,
    has_epochs: true,
    faults: Faults {
        attempts: 9,
        resumptions: 1,
        promotions: 3,
        restarts: 3,
        saves: 2,
        flushes: 1,
        evictions: 1,
        cuts: 3,
        second_elections: 1,
        new_clients: 0,
        late: 0,
        detours: 0,
    },
    ..Scheme::small()
};

/// What becomes of a schedule.
fn outcome(scheme: Scheme, schedule: impl Fn(&mut Schedule)) -> (Option<Violation>, String) {
    let mut it = Schedule::new(scheme);
    schedule(&mut it);
    let story = explore::tell(&mut it.search, &it.trace);
    (it.found, story)
}

/// Two clients hold the lock at the end with the mistake, and not without it.
#[track_caller]
fn is_needed(mistake: Mistake, scheme: Scheme, schedule: impl Fn(&mut Schedule)) {
    for kind in [Kind::Plain, Kind::Fenced, Kind::Permit] {
        let scheme = Scheme { kind, ..scheme };
        let (found, story) = outcome(scheme, &schedule);
        assert_eq!(found, None, "{mistake:?} {kind:?}\n{story}");
        let (found, story) = outcome(scheme.with(mistake), &schedule);
        let wanted = Some(Violation::TwoHolders);
        assert!(
            found == wanted || kind == Kind::Fenced && found.is_some(),
            "{mistake:?} {kind:?}: {found:?}\n{story}"
        );
    }
}

/// Two clients hold the lock at the end by the right rule: what it assumes does not hold.
#[track_caller]
fn is_assumed(scheme: Scheme, schedule: fn(&mut Schedule)) {
    let (found, story) = outcome(scheme, schedule);
    assert_eq!(found, Some(Violation::TwoHolders), "{story}");
}

#[test]
fn votes_are_acknowledged() {
    is_needed(Mistake::NothingAcknowledged, SCHEME, |it| {
        it.greet(ANN, OLD);
        it.vote(Begin(ANN), OLD, &[]);
        it.succeed();
    });
    // Offset 1 is in front of the vote.
    is_needed(Mistake::AcknowledgedBefore, SCHEME, |it| {
        it.catch_up(OLD, NEW);
        it.greet(ANN, OLD);
        it.vote(Begin(ANN), OLD, &[]);
        it.succeed();
    });
    is_needed(Mistake::ExtensionNotAcknowledged, SCHEME, |it| {
        it.greet(ANN, OLD);
        it.vote(Begin(ANN), OLD, &[NEW, REPLICA]);
        it.pass(TTL - 1);
        it.vote(Extend(ANN), OLD, &[]);
        it.go(Promote(NEW));
        it.follow(REPLICA, NEW);
        it.greet(BOB, NEW);
        it.prove(BOB, &[NEW, REPLICA]);
        it.pass(1);
        it.vote(Begin(BOB), NEW, &[REPLICA]);
    });
}

#[test]
fn a_majority_acknowledges() {
    let scheme = Scheme {
        servers: 5,
        replicas: 4,
        ..SCHEME
    };
    is_needed(Mistake::FewerThanAMajority, scheme, |it| {
        it.greet(ANN, OLD);
        it.vote(Begin(ANN), OLD, &[4]);
        it.go(Promote(NEW));
        it.follow(REPLICA, NEW);
        it.follow(3, NEW);
        it.greet(BOB, NEW);
        it.prove(BOB, &[NEW, REPLICA, 3]);
        it.vote(Begin(BOB), NEW, &[REPLICA, 3]);
    });
}

/// A lock that is acknowledged by the replica that is not promoted.
fn the_other_one_had_it(it: &mut Schedule) {
    it.greet(ANN, OLD);
    it.vote(Begin(ANN), OLD, &[REPLICA]);
    it.go(Promote(NEW));
    it.follow(REPLICA, NEW);
}

#[test]
fn a_reign_is_proven_by_enough_witnesses() {
    is_needed(Mistake::NothingProven, SCHEME, |it| {
        the_other_one_had_it(it);
        it.try_at_new(&[]);
    });
    for mistake in [Mistake::OneWitness, Mistake::WitnessCountsTwice] {
        is_needed(mistake, SCHEME, |it| {
            the_other_one_had_it(it);
            it.try_at_new(&[NEW]);
        });
    }
    is_needed(Mistake::CopyIsWitness, SCHEME, |it| {
        the_other_one_had_it(it);
        it.try_at_new(&[NEW, REPLICA]);
    });
}

/// Witnesses that have forgotten what they acknowledged.
#[test]
fn a_witness_is_the_process_that_acknowledged() {
    is_needed(Mistake::AnyUptime, SCHEME, |it| {
        it.greet(ANN, OLD);
        it.go(Save(NEW));
        it.vote(Begin(ANN), OLD, &[NEW]);
        it.go(Restart(NEW, Kept::Disk));
        it.succeed();
    });
    is_needed(Mistake::AllAcknowledgeAnyUptime, SCHEME, |it| {
        it.greet(ANN, OLD);
        it.go(Save(NEW));
        it.vote(Begin(ANN), OLD, &[NEW, REPLICA]);
        it.go(Restart(NEW, Kept::Disk));
        it.go(Promote(NEW));
        it.greet(BOB, NEW);
        it.prove(BOB, &[NEW]);
        it.go(Demote(OLD));
        it.follow(OLD, NEW);
        it.follow(REPLICA, NEW);
        it.vote(Begin(BOB), NEW, &[OLD, REPLICA]);
    });
    is_needed(Mistake::FormerByAddress, SCHEME, |it| {
        it.greet(ANN, OLD);
        it.go(Save(OLD));
        it.vote(Begin(ANN), OLD, &[REPLICA]);
        it.go(Promote(NEW));
        it.go(Demote(OLD));
        it.go(Restart(OLD, Kept::Disk));
        it.follow(OLD, NEW);
        it.greet(BOB, NEW);
        it.prove(BOB, &[OLD]);
        it.vote(Begin(BOB), NEW, &[OLD]);
    });
}

/// The reign before is the one of the marker, and the one that the server followed.
#[test]
fn the_reign_before_is_the_one_that_is_proven() {
    // The keys of a server that begins to copy may be gone, and its history still there.
    is_needed(Mistake::NoMarkerNeeded, SCHEME, |it| {
        it.greet(ANN, OLD);
        it.vote(Begin(ANN), OLD, &[NEW]);
        it.go(Cut(NEW));
        it.go(Attach(NEW, OLD, Way::Emptied));
        it.succeed();
    });
    // The first master reigns again, and has not got what a reign in between has granted.
    is_needed(Mistake::FormerNotCompared, SCHEME, |it| {
        it.go(Promote(NEW));
        it.go(Demote(OLD));
        it.follow(OLD, NEW);
        it.follow(REPLICA, NEW);
        it.greet(ANN, NEW);
        it.prove(ANN, &[OLD]);
        it.vote(Begin(ANN), NEW, &[REPLICA]);
        it.go(Promote(OLD));
        it.follow(REPLICA, OLD);
        it.greet(BOB, OLD);
        it.prove(BOB, &[OLD]);
        it.vote(Begin(BOB), OLD, &[REPLICA]);
    });
    is_needed(Mistake::QuarantineNotCarried, SCHEME, |it| {
        it.greet(ANN, OLD);
        it.vote(Begin(ANN), OLD, &[NEW, REPLICA]);
        it.go(Flush);
        it.greet(BOB, OLD);
        it.catch_up(OLD, NEW);
        it.catch_up(OLD, REPLICA);
        it.succeed();
    });
}

#[test]
fn the_reign_is_looked_at_behind_the_votes() {
    is_needed(Mistake::NoCheck, SCHEME, |it| {
        it.greet(ANN, OLD);
        it.greet(BOB, OLD);
        it.vote(Begin(BOB), OLD, &[REPLICA]);
        it.go(Promote(NEW));
        it.go(Demote(OLD));
        it.follow(OLD, NEW);
        it.go(Promote(OLD));
        it.follow(REPLICA, OLD);
        it.vote(Begin(ANN), OLD, &[REPLICA]);
    });
    is_needed(Mistake::MarkerIgnored, SCHEME, |it| {
        it.greet(ANN, OLD);
        it.greet(BOB, OLD);
        it.vote(Begin(ANN), OLD, &[REPLICA]);
        it.go(Flush);
        it.vote(Begin(BOB), OLD, &[REPLICA]);
    });
}

/// Ann has the token of a lock that she has released, and Bob has the lock since. What the new
/// master has got is of the time before, or nothing.
#[test]
fn a_lock_is_not_resumed_in_a_quarantine() {
    for has_copy in [false, true] {
        is_needed(Mistake::ResumedIsReclaimed, SCHEME, |it| {
            release_and_resume(it, has_copy);
        });
    }
}

fn release_and_resume(it: &mut Schedule, has_copy: bool) {
    it.greet(ANN, OLD);
    it.vote(Begin(ANN), OLD, &[REPLICA]);
    if has_copy {
        it.catch_up(OLD, NEW);
    }
    it.go(Release(ANN));
    it.go(Execute(ANN));
    it.greet(BOB, OLD);
    it.vote(Begin(BOB), OLD, &[REPLICA]);
    it.go(Promote(NEW));
    it.follow(REPLICA, NEW);
    it.greet(ANN, NEW);
    it.vote(Resume(ANN), NEW, &[REPLICA]);
}

/// A replica goes from the old master to the new one at the very time at which a quarantine that
/// began with the greeting is over: it acknowledged the old one's votes a moment ago.
#[test]
fn the_age_of_a_reign_counts_from_its_first_acknowledged_vote() {
    is_needed(Mistake::CountedFromGreeting, SCHEME, |it| {
        it.greet(ANN, OLD);
        it.go(Promote(NEW));
        it.greet(BOB, NEW);
        it.vote(Begin(ANN), OLD, &[REPLICA]);
        for _ in 0..TTL {
            it.pass(1);
            it.vote(Extend(ANN), OLD, &[REPLICA]);
        }
        it.go(Attach(REPLICA, NEW, Way::Copied));
        it.go(Load(REPLICA));
        it.greet(BOB, NEW);
        it.vote(Begin(BOB), NEW, &[REPLICA]);
    });
}

#[test]
fn all_clients_of_a_group_ask_for_acknowledgements() {
    is_needed(Mistake::ModesMix, SCHEME, |it| {
        it.greet(ANN, OLD);
        it.vote(Begin(ANN), OLD, &[]);
        it.succeed();
    });
}

/// The clock of the new master is ahead.
const SKEWED: Scheme = Scheme {
    skew: 1,
    assumed_skew: 1,
    ..SCHEME
};

fn lock_until_the_end(it: &mut Schedule) {
    it.greet(ANN, OLD);
    it.vote(Begin(ANN), OLD, &[NEW, REPLICA]);
    it.go(Promote(NEW));
    it.follow(REPLICA, NEW);
    it.greet(BOB, NEW);
    it.prove(BOB, &[NEW, REPLICA]);
    it.pass(TTL - 1);
    it.vote(Begin(BOB), NEW, &[REPLICA]);
}

#[test]
fn keys_live_longer_than_locks() {
    is_needed(Mistake::NoMargin, SKEWED, lock_until_the_end);
    is_assumed(Scheme { skew: 2, ..SKEWED }, lock_until_the_end);
}

/// The old master is elected again without ever being told that it was replaced.
fn elected_again(it: &mut Schedule) {
    it.greet(ANN, OLD);
    it.succeed();
    it.go(Cut(REPLICA));
    it.go(ElectAgain(OLD));
    it.follow(REPLICA, OLD);
}

#[test]
fn elections_count_and_end_connections() {
    is_needed(Mistake::NoEpoch, SCHEME, |it| {
        elected_again(it);
        it.greet(ANN, OLD);
        it.vote(Begin(ANN), OLD, &[REPLICA]);
    });
    is_needed(Mistake::ConnectionsKept, SCHEME, |it| {
        elected_again(it);
        it.vote(Begin(ANN), OLD, &[REPLICA]);
    });
}

/// A fencing token that only a replica has got which is not promoted.
#[test]
fn a_token_of_a_lock_that_was_released_is_not_given_again() {
    let schedule = |it: &mut Schedule| {
        the_other_one_had_it(it);
        it.go(Release(ANN));
        it.go(Execute(ANN));
        it.try_at_new(&[NEW, REPLICA]);
    };
    let scheme = Scheme {
        kind: Kind::Fenced,
        ..SCHEME
    };
    let (found, story) = outcome(scheme, schedule);
    assert_eq!(found, None, "{story}");
    let (found, story) = outcome(scheme.with(Mistake::NothingProven), schedule);
    assert_eq!(found, Some(Violation::TokenFell), "{story}");
}

/// What is assumed: without it, the right rule gives a lock away.
#[test]
fn replicas_go_over_once_and_all_are_counted() {
    let detour = Scheme {
        faults: Faults {
            detours: 1,
            ..SCHEME.faults
        },
        ..SCHEME
    };
    // A replica goes back to the replaced master.
    is_assumed(detour, |it| {
        it.greet(ANN, OLD);
        it.succeed();
        it.go(Cut(REPLICA));
        it.go(Attach(REPLICA, OLD, Way::Copied));
        it.go(Load(REPLICA));
        it.vote(Begin(ANN), OLD, &[REPLICA]);
    });
    // A replica is moved below another one, which has less.
    is_assumed(detour, |it| {
        it.greet(ANN, OLD);
        it.vote(Begin(ANN), OLD, &[NEW]);
        it.go(Cut(NEW));
        it.go(Attach(NEW, REPLICA, Way::Copied));
        it.go(Load(NEW));
        it.succeed();
    });
    let more = Scheme {
        servers: 4,
        ..SCHEME
    };
    is_assumed(more, |it| {
        it.greet(ANN, OLD);
        it.vote(Begin(ANN), OLD, &[3]);
        it.succeed();
    });
    // Unless all of them are there.
    is_needed(Mistake::MoreReplicas, more, |it| {
        it.catch_up(OLD, NEW);
        it.catch_up(OLD, REPLICA);
        it.greet(ANN, OLD);
        it.vote(Begin(ANN), OLD, &[3]);
        it.succeed();
    });
    // A copy that is broken off has no marker.
    is_needed(Mistake::HalfCopied, SCHEME, |it| {
        it.greet(ANN, OLD);
        it.vote(Begin(ANN), OLD, &[NEW]);
        it.go(Cut(NEW));
        it.go(Attach(NEW, OLD, Way::Emptied));
        it.succeed();
    });
}

/// A reign is proven, so that a lock is granted in it at once.
#[track_caller]
fn is_proven(schedule: fn(&mut Schedule)) {
    let mut it = Schedule::new(SCHEME);
    schedule(&mut it);
    let story = explore::tell(&mut it.search, &it.trace);
    assert_eq!(it.found, None, "{story}");
    assert!(it.holds(BOB) && it.world.granted_in_proven > 0, "{story}");
}

#[test]
fn a_failover_without_losses_is_proven() {
    is_proven(Schedule::succeed);
    // Planned: the old master follows, and proves it all alone.
    is_proven(|it| {
        it.greet(ANN, OLD);
        it.vote(Begin(ANN), OLD, &[NEW]);
        it.go(Release(ANN));
        it.go(Execute(ANN));
        it.catch_up(OLD, NEW);
        it.go(Promote(NEW));
        it.go(Demote(OLD));
        it.follow(OLD, NEW);
        it.follow(REPLICA, NEW);
        it.try_at_new(&[OLD]);
    });
    // A master that is started again with all of its data and its history.
    is_proven(|it| {
        it.go(Restart(OLD, Kept::Everything));
        it.follow(NEW, OLD);
        it.follow(REPLICA, OLD);
        it.greet(BOB, OLD);
        it.prove(BOB, &[NEW, REPLICA]);
        it.vote(Begin(BOB), OLD, &[NEW]);
    });
    // Two in a row.
    is_proven(|it| {
        it.succeed();
        it.go(Release(BOB));
        it.go(Execute(BOB));
        it.catch_up(NEW, REPLICA);
        it.go(Promote(REPLICA));
        it.go(Demote(NEW));
        it.follow(NEW, REPLICA);
        it.greet(BOB, REPLICA);
        it.prove(BOB, &[NEW]);
        it.vote(Begin(BOB), REPLICA, &[NEW]);
    });
}
