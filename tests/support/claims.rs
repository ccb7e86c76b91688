//! Clients that compete for a lock, and an independent record of who believed to hold it when. They
//! are threads, or processes that tell of their claims.

use std::io::{BufRead, BufReader, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{LockClient, LockGuard};
use rustix::time::{ClockId, clock_gettime};

pub const RESOURCE: &str = "orders:42";

/// A time in which a client believed that it held the lock.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub client: usize,
    /// Will it hold the lock to its end, whatever happens?
    is_stubborn: bool,
    pub from: Instant,
    until: Instant,
}

/// The claims of all clients, as seen by the test.
#[derive(Default)]
pub struct Claims {
    claims: Mutex<Vec<Claim>>,
    pub is_over: AtomicBool,
    /// Is each claim told on the standard output?
    are_told: bool,
}

impl Claims {
    /// Those of a process, which tells them.
    pub fn telling() -> Self {
        Self {
            are_told: true,
            ..Self::default()
        }
    }

    pub fn claims(&self) -> Vec<Claim> {
        self.claims
            .lock()
            .expect("nothing panics with this lock held")
            .clone()
    }

    /// Records a claim that has begun, and returns its index.
    fn begin(&self, claim: Claim) -> usize {
        let mut claims = self
            .claims
            .lock()
            .expect("nothing panics with this lock held");
        claims.push(claim);
        self.tell(claims.len() - 1, claim);
        claims.len() - 1
    }

    /// Changes the end of a claim.
    fn change(&self, index: usize, until: impl FnOnce(Instant) -> Instant) {
        let claim = &mut self
            .claims
            .lock()
            .expect("nothing panics with this lock held")[index];
        claim.until = until(claim.until);
        self.tell(index, *claim);
    }

    #[expect(
        clippy::print_stdout,
        reason = "the process that has started this one reads it"
    )]
    fn tell(
        &self,
        index: usize,
        Claim {
            is_stubborn,
            from,
            until,
            ..
        }: Claim,
    ) {
        if self.are_told {
            println!(
                "claim {index} {is_stubborn} {} {}",
                shared(from),
                shared(until)
            );
        }
    }

    /// Records what a process tells, until it has ended.
    pub fn hear(&self, client: usize, output: impl Read) {
        let mut own = Vec::new();
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let Some((_, told)) = line.split_once("claim ") else {
                continue;
            };
            let words: Vec<&str> = told.split(' ').collect();
            let [index, is_stubborn, from, until] = words[..] else {
                panic!("{line}")
            };
            let instant = |nanos: &str| instant(nanos.parse().expect("nanoseconds"));
            let from = instant(from);
            let until = instant(until);
            let is_stubborn = is_stubborn == "true";
            if index.parse() == Ok(own.len()) {
                own.push(self.begin(Claim {
                    client,
                    is_stubborn,
                    from,
                    until,
                }));
            } else {
                let index: usize = index.parse().expect("an index");
                self.change(own[index], |_| until);
            }
        }
    }

    /// The claims that began while another client had one, each with that.
    pub fn overlaps(&self) -> Vec<(Claim, Claim)> {
        let mut claims = self.claims();
        claims.sort_by_key(|claim| claim.from);
        let (mut longest, mut overlaps): (Option<Claim>, _) = (None, Vec::new());
        for claim in claims {
            overlaps.extend(
                longest
                    .filter(|it| claim.from < it.until)
                    .map(|it| (it, claim)),
            );
            longest = longest.filter(|it| it.until > claim.until).or(Some(claim));
        }
        overlaps
    }

    /// Two claims of different clients at the same time, if there are any.
    pub fn two_holders(&self) -> Option<(Claim, Claim)> {
        self.overlaps().into_iter().next()
    }

    /// When the first claim after this time began.
    pub fn next_begun(&self, since: Instant) -> Option<Instant> {
        self.claims()
            .iter()
            .map(|claim| claim.from)
            .filter(|from| *from > since)
            .min()
    }

    /// When the last claim ends, as far as is known.
    pub fn free_at(&self) -> Option<Instant> {
        self.claims().iter().map(|claim| claim.until).max()
    }

    /// Was the lock acquired after this time by a client that will hold it for most of its ttl?
    pub fn is_held(&self, since: Instant, ttl: Duration) -> bool {
        let soon = Instant::now() + ttl * 3 / 4;
        let is_it = |claim: &Claim| claim.is_stubborn && claim.from > since && claim.until > soon;
        self.claims().iter().any(is_it)
    }
}

/// The clock that all processes share, at a time of this one.
static CLOCK: OnceLock<(Instant, i128)> = OnceLock::new();

fn clock() -> (Instant, i128) {
    *CLOCK.get_or_init(|| {
        let clock = clock_gettime(ClockId::Monotonic);
        let nanos = i128::from(clock.tv_sec) * 1_000_000_000 + i128::from(clock.tv_nsec);
        (Instant::now(), nanos)
    })
}

/// This time in nanoseconds of the clock that all processes share.
fn shared(at: Instant) -> i128 {
    let (now, clock) = clock();
    let after = at.saturating_duration_since(now);
    let before = now.saturating_duration_since(at);
    clock + after.as_nanos() as i128 - before.as_nanos() as i128
}

fn instant(shared: i128) -> Instant {
    let (now, clock) = clock();
    let nanos = |nanos: i128| Duration::from_nanos(nanos.max(0) as u64);
    now + nanos(shared - clock) - nanos(clock - shared)
}

/// Ends the clients when it is dropped.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A lock that a client believes to hold, and releases when it is dropped.
pub trait Hold {
    /// The end of the validity.
    fn promised(&self) -> Instant;

    fn is_held(&self) -> bool;

    /// Returns whether it was extended.
    fn extend(&mut self, ttl: Duration) -> bool;
}

impl Hold for LockGuard {
    /// The clock is read before the remaining validity, so the result is not too late: in doubt,
    /// the test decides in the library's favour.
    fn promised(&self) -> Instant {
        let now = Instant::now();
        now + self.remaining()
    }

    fn is_held(&self) -> bool {
        self.ensure_held().is_ok()
    }

    fn extend(&mut self, ttl: Duration) -> bool {
        LockGuard::extend(self, ttl).is_ok()
    }
}

/// One client of this library: see [`compete`].
pub fn work(number: usize, client: &LockClient, ttl: Duration, all_claims: &Claims) {
    let wait = Duration::from_millis(500);
    // Too few nodes may be up, or count: then it retries.
    let acquire = || {
        client
            .request(RESOURCE)
            .ttl(ttl)
            .try_lock_for(wait)
            .ok()
            .flatten()
    };
    compete(number, ttl, all_claims, acquire);
}

/// Acquires the lock again and again, and alternately holds it until it expires, extends it, and
/// releases it early.
pub fn compete<H: Hold>(
    number: usize,
    ttl: Duration,
    all_claims: &Claims,
    mut acquire: impl FnMut() -> Option<H>,
) {
    for turn in number.. {
        if all_claims.is_over.load(Ordering::SeqCst) {
            return;
        }
        let Some(mut guard) = acquire() else { continue };
        let from = Instant::now();
        let is_stubborn = turn % 3 == 0;
        let until = guard.promised();
        let claim = all_claims.begin(Claim {
            client: number,
            is_stubborn,
            from,
            until,
        });
        match turn % 3 {
            0 => while_held(&guard, ttl),
            1 => {
                while_held(&guard, ttl / 3);
                if guard.extend(ttl) {
                    all_claims.change(claim, |_| guard.promised());
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
fn while_held(guard: &impl Hold, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end && guard.is_held() {
        thread::sleep(Duration::from_millis(5));
    }
}
