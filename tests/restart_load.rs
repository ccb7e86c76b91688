//! Three real servers that persist nothing are killed and come back empty, one after the other,
//! while four clients fight for a lock: with the restart guard there are never two holders, and
//! without it there are, so that this test would notice.

mod support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{LockClient, LockGuard};
use support::eventually;
use support::locks::LIMIT;
use support::servers::Servers;

const RESOURCE: &str = "orders:42";

/// As long as the guard waits: the longest that it has to protect.
const TTL: Duration = Duration::from_secs(3);

/// A small part of the ttl, as it should be; a round that a busy machine cuts short is tried again.
const NODE_TIMEOUT: Duration = Duration::from_millis(300);

/// A time in which a client was told that the lock is its own.
#[derive(Clone, Copy, Debug)]
struct Claim {
    client: usize,
    /// Will it hold the lock to its end, whatever happens to it?
    is_stubborn: bool,
    from: Instant,
    until: Instant,
}

/// What all clients share, though it is not theirs to know: who believed what, and when.
#[derive(Default)]
struct Witness {
    claims: Mutex<Vec<Claim>>,
    is_over: AtomicBool,
}

impl Witness {
    fn claims(&self) -> Vec<Claim> {
        self.claims.lock().expect("nothing panics with this lock held").clone()
    }

    /// Takes down a claim that has begun, and says where.
    fn begin(&self, claim: Claim) -> usize {
        let mut claims = self.claims.lock().expect("nothing panics with this lock held");
        claims.push(claim);
        claims.len() - 1
    }

    /// A claim ends at another time than it was to.
    fn change(&self, index: usize, until: impl FnOnce(Instant) -> Instant) {
        let claim = &mut self.claims.lock().expect("nothing panics with this lock held")[index];
        claim.until = until(claim.until);
    }

    /// Two clients that held the lock at one time, if there are.
    fn two_holders(&self) -> Option<(Claim, Claim)> {
        let mut claims = self.claims();
        claims.sort_by_key(|claim| claim.from);
        let mut longest: Option<Claim> = None;
        for claim in claims {
            match longest {
                Some(before) if claim.from < before.until => return Some((before, claim)),
                _ => longest = Some(claim),
            }
        }
        None
    }

    /// Was the lock taken after this time by one who will hold it for most of its ttl from now?
    fn is_held(&self, since: Instant) -> bool {
        let soon = Instant::now() + TTL * 3 / 4;
        let is_it = |claim: &Claim| claim.is_stubborn && claim.from > since && claim.until > soon;
        self.claims().iter().any(is_it)
    }
}

/// Sends the clients home when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The end of what the guard promises. The clock is read before the promise: this errs on the side
/// of the library.
fn promised(guard: &LockGuard) -> Instant {
    let now = Instant::now();
    now + guard.remaining()
}

/// One client: takes the lock again and again, and in turn holds it to its end, extends it, and
/// gives it back early.
fn work(number: usize, client: &LockClient, witness: &Witness) {
    let wait = Duration::from_millis(500);
    for turn in number.. {
        if witness.is_over.load(Ordering::SeqCst) {
            return;
        }
        // Too few nodes may be there, or count: then as at any other time.
        let Ok(Some(mut guard)) = client.try_lock_for(RESOURCE, TTL, wait) else { continue };
        let from = Instant::now();
        let (is_stubborn, until) = (turn % 3 == 0, promised(&guard));
        let claim = witness.begin(Claim { client: number, is_stubborn, from, until });
        match turn % 3 {
            0 => while_held(&guard, TTL),
            1 => {
                while_held(&guard, TTL / 3);
                if guard.extend(TTL).is_ok() {
                    witness.change(claim, |_| promised(&guard));
                }
                while_held(&guard, TTL);
            }
            _ => while_held(&guard, TTL / 30),
        }
        // It may be given back, or have been found lost, before the end that was promised.
        witness.change(claim, |until| until.min(Instant::now()));
        drop(guard);
    }
}

/// Works for so long, or until the lock is lost.
fn while_held(guard: &LockGuard, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end && guard.ensure_held().is_ok() {
        thread::sleep(Duration::from_millis(2));
    }
}

/// Kills and restarts the servers, one after the other, whenever the lock has been taken, until
/// `enough` says so after one such turn.
fn storm(restart_guard: bool, mut enough: impl FnMut(usize, &Witness) -> bool) -> Witness {
    let mut servers = Servers::start(3);
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let builder = LockClient::builder().nodes(servers.urls()).node_timeout(NODE_TIMEOUT);
            builder.restart_guard(restart_guard).max_ttl(TTL).build().expect("good settings")
        })
        .collect();
    let witness = Witness::default();
    thread::scope(|scope| {
        // Also when an assertion fails, or the clients would go on for ever.
        let _over = Over(&witness.is_over);
        for (number, client) in clients.iter().enumerate() {
            let witness = &witness;
            scope.spawn(move || work(number, client, witness));
        }
        for turn in 1.. {
            // Taken since the servers came back, or nothing would be at stake.
            let since = Instant::now();
            let is_held = eventually(LIMIT * 3, || witness.is_held(since));
            assert!(is_held, "turn {turn}: nobody gets the lock any more");
            // All forget it, or two, which are a majority of three.
            for index in turn..turn + 2 + turn % 2 {
                servers[index % 3].restart();
            }
            if enough(turn, &witness) {
                break;
            }
        }
    });
    witness
}

#[test]
fn with_the_restart_guard_there_are_never_two_holders() {
    let witness = storm(true, |turn, _| turn == 4);
    assert_eq!(witness.two_holders().map(|pair| format!("{pair:?}")), None);
}

#[test]
fn without_the_restart_guard_there_are_two_holders() {
    let start = Instant::now();
    let witness = storm(false, |_, witness| {
        // Whoever is next comes at once.
        let seen = eventually(TTL, || witness.two_holders().is_some());
        assert!(seen || start.elapsed() < LIMIT * 3, "the servers forgot, and nobody noticed");
        seen
    });
    let (first, second) = witness.two_holders().expect("seen before");
    assert_ne!(first.client, second.client);
}
