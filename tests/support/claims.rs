//! Clients that compete for a lock, and an independent record of who believed to hold it when.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{LockClient, LockGuard};

const RESOURCE: &str = "orders:42";

/// A time in which a client believed that it held the lock.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub client: usize,
    /// Will it hold the lock to its end, whatever happens?
    is_stubborn: bool,
    from: Instant,
    until: Instant,
}

/// The claims of all clients, as seen by the test.
#[derive(Default)]
pub struct Claims {
    claims: Mutex<Vec<Claim>>,
    pub is_over: AtomicBool,
}

impl Claims {
    pub fn claims(&self) -> Vec<Claim> {
        self.claims.lock().expect("nothing panics with this lock held").clone()
    }

    /// Records a claim that has begun, and returns its index.
    fn begin(&self, claim: Claim) -> usize {
        let mut claims = self.claims.lock().expect("nothing panics with this lock held");
        claims.push(claim);
        claims.len() - 1
    }

    /// Changes the end of a claim.
    fn change(&self, index: usize, until: impl FnOnce(Instant) -> Instant) {
        let claim = &mut self.claims.lock().expect("nothing panics with this lock held")[index];
        claim.until = until(claim.until);
    }

    /// Two claims of different clients at the same time, if there are any.
    pub fn two_holders(&self) -> Option<(Claim, Claim)> {
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

    /// Was the lock acquired after this time by a client that will hold it for most of its ttl?
    pub fn is_held(&self, since: Instant, ttl: Duration) -> bool {
        let soon = Instant::now() + ttl * 3 / 4;
        let is_it = |claim: &Claim| claim.is_stubborn && claim.from > since && claim.until > soon;
        self.claims().iter().any(is_it)
    }
}

/// Ends the clients when it is dropped.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The end of the validity. The clock is read before the remaining validity, so the result is not
/// too late: in doubt, the test decides in the library's favour.
fn promised(guard: &LockGuard) -> Instant {
    let now = Instant::now();
    now + guard.remaining()
}

/// One client: acquires the lock again and again, and alternately holds it until it expires,
/// extends it, and releases it early.
pub fn work(number: usize, client: &LockClient, ttl: Duration, all_claims: &Claims) {
    let wait = Duration::from_millis(500);
    for turn in number.. {
        if all_claims.is_over.load(Ordering::SeqCst) {
            return;
        }
        // Too few nodes may be up, or count: then it retries.
        let Ok(Some(mut guard)) = client.request(RESOURCE).ttl(ttl).try_lock_for(wait) else {
            continue;
        };
        let from = Instant::now();
        let (is_stubborn, until) = (turn % 3 == 0, promised(&guard));
        let claim = all_claims.begin(Claim { client: number, is_stubborn, from, until });
        match turn % 3 {
            0 => while_held(&guard, ttl),
            1 => {
                while_held(&guard, ttl / 3);
                if guard.extend(ttl).is_ok() {
                    all_claims.change(claim, |_| promised(&guard));
                }
                while_held(&guard, ttl);
            }
            _ => while_held(&guard, ttl / 30),
        }
        // It may have been released or found lost before the end of the validity.
        all_claims.change(claim, |until| until.min(Instant::now()));
        drop(guard);
    }
}

/// Waits for `time`, or until the lock is lost.
fn while_held(guard: &LockGuard, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end && guard.ensure_held().is_ok() {
        thread::sleep(Duration::from_millis(2));
    }
}
