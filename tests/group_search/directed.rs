//! Schedules that random walks hardly find: each leads to two holders by one wrong rule, and to one
//! by the right ones.

use crate::scheme::{Faults, Mistake, Scheme};
use crate::search::Search;
use crate::world::{Step, World};
use Step::{
    Ask, Begin, Close, Connect, Deliver, ElectAgain, Execute, Extend, Promote, Read, Release,
    Resume, Tick,
};
use models::explore::{self, Model};

/// The first master, and the one that is promoted.
const OLD: usize = 0;
const NEW: usize = 1;

/// The clients of the old master, and the one of the new master.
const ANN: usize = 0;
const BOB: usize = 1;
const CID: usize = 2;

struct Schedule {
    search: Search,
    world: World,
    trace: Vec<Step>,
    has_two_holders: bool,
}

impl Schedule {
    fn new(scheme: Scheme) -> Self {
        let mut search = Search::new(scheme);
        let world = search.first();
        Self {
            search,
            world,
            trace: Vec::new(),
            has_two_holders: false,
        }
    }

    /// Takes a step, if it is possible: by the right rules, some are not.
    fn go(&mut self, step: Step) {
        if self.search.allows(&self.world, &step) {
            self.trace.push(step);
            self.has_two_holders |= self.search.take(&mut self.world, &step).is_err();
        }
    }

    fn pass(&mut self, ticks: u8) {
        (0..ticks).for_each(|_| self.go(Tick));
    }

    fn greet(&mut self, client: usize, server: usize) {
        self.go(Connect(client, 0, server));
        self.go(Execute(client, 0));
        self.go(Read(client, 0));
    }

    /// An idle session is greeted again.
    fn wake(&mut self, client: usize, server: usize) {
        self.go(Close(client, 0));
        self.greet(client, server);
    }

    /// A vote and its check.
    fn vote(&mut self, first: Step) {
        let (Begin(client) | Extend(client) | Resume(client)) = first else {
            unreachable!("{first:?}")
        };
        self.go(first);
        (0..3).for_each(|_| self.go(Execute(client, 0)));
        self.go(Read(client, 0));
        self.go(Execute(client, 0));
        self.go(Read(client, 0));
    }
}

/// Two clients hold the lock at the end with the mistake, and not without it.
#[track_caller]
fn is_needed(mistake: Mistake, scheme: Scheme, schedule: fn(&mut Schedule, &Scheme)) {
    for (scheme, wanted) in [(scheme, false), (scheme.with(mistake), true)] {
        let mut it = Schedule::new(scheme);
        schedule(&mut it, &scheme);
        let story = explore::tell(&mut it.search, &it.trace);
        assert_eq!(it.has_two_holders, wanted, "{mistake:?}\n{story}");
    }
}

/// The old master is elected again without ever being told that it was replaced.
const ELECTED_AGAIN: Scheme = Scheme {
    servers: 2,
    has_epochs: true,
    faults: Faults {
        attempts: 9,
        promotions: 1,
        second_elections: 1,
        ..Faults::NONE
    },
    ..Scheme::bounded()
};

#[test]
fn the_marker_has_the_epoch() {
    is_needed(Mistake::NoEpoch, ELECTED_AGAIN, |it, scheme| {
        it.go(Promote(0, NEW));
        it.greet(CID, NEW);
        it.pass(scheme.ttl + scheme.bound);
        it.wake(CID, NEW);
        it.vote(Begin(CID));
        it.go(ElectAgain(0, OLD));
        it.greet(ANN, OLD);
        it.vote(Begin(ANN));
    });
}

#[test]
fn an_idle_session_is_greeted_again() {
    is_needed(Mistake::NotGreetedAgain, ELECTED_AGAIN, |it, scheme| {
        it.greet(ANN, OLD);
        it.go(Promote(0, NEW));
        it.greet(CID, NEW);
        it.pass(scheme.ttl + scheme.bound);
        it.wake(CID, NEW);
        it.vote(Begin(CID));
        it.go(ElectAgain(0, OLD));
        it.vote(Begin(ANN));
    });
}

#[test]
fn a_server_that_was_named_long_ago_is_asked_for_again() {
    is_needed(Mistake::NamedLongAgo, ELECTED_AGAIN, |it, scheme| {
        it.go(Ask(ANN, 0));
        it.go(Promote(0, NEW));
        it.greet(CID, NEW);
        it.pass(scheme.ttl + scheme.bound);
        it.wake(CID, NEW);
        it.vote(Begin(CID));
        it.go(ElectAgain(0, OLD));
        it.greet(ANN, OLD);
        it.vote(Begin(ANN));
    });
}

/// Also within the longest ttl: a holder reclaims its lock from the successor as soon as the bound
/// has passed, and its key on the old master ends before that.
#[test]
fn a_server_that_was_named_before_a_reclaim_is_asked_for_again() {
    let scheme = Scheme {
        ttl: 6,
        ticks: 40,
        ..ELECTED_AGAIN
    };
    is_needed(Mistake::NamedBeforeTheBound, scheme, |it, scheme| {
        it.greet(BOB, OLD);
        it.vote(Begin(BOB));
        it.pass(3);
        it.go(Ask(ANN, 0));
        it.go(Promote(0, NEW));
        it.wake(BOB, NEW);
        it.pass(scheme.bound);
        it.vote(Extend(BOB));
        it.go(ElectAgain(0, OLD));
        it.pass(2);
        it.greet(ANN, OLD);
        it.vote(Begin(ANN));
    });
}

/// Bob holds a lock of which the new master knows nothing, and Ann the token of one that she has
/// released before.
const RESUMED: Scheme = Scheme {
    servers: 2,
    ttl: 6,
    faults: Faults {
        attempts: 9,
        promotions: 1,
        ..Faults::NONE
    },
    ..Scheme::bounded()
}
.resumed();

fn release_and_lose(it: &mut Schedule, scheme: &Scheme, has_copy: bool) {
    it.greet(ANN, OLD);
    it.vote(Begin(ANN));
    while has_copy && !it.world.groups[0].servers[NEW].behind.is_empty() {
        it.go(Deliver(0, NEW));
    }
    it.go(Release(ANN));
    it.go(Execute(ANN, 0));
    it.go(Read(ANN, 0));
    it.greet(BOB, OLD);
    it.vote(Begin(BOB));
    it.go(Promote(0, NEW));
    it.wake(ANN, NEW);
    it.pass(scheme.bound);
    it.vote(Resume(ANN));
}

#[test]
fn a_lock_that_is_resumed_is_not_reclaimed() {
    is_needed(Mistake::ResumedIsReclaimed, RESUMED, |it, scheme| {
        release_and_lose(it, scheme, false);
    });
}

/// The key is there still, of a time when the lock was hers.
#[test]
fn a_lock_is_not_resumed_in_a_quarantine() {
    is_needed(Mistake::ResumedInQuarantine, RESUMED, |it, scheme| {
        release_and_lose(it, scheme, true);
    });
}
