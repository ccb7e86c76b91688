//! Three real servers without persistence are killed and restarted, one after the other, while four
//! clients compete for a lock. With the restart guard there are never two holders. Without it there
//! are, which shows that this test can detect them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{LockClient, LockGuard};
use support::eventually;
use support::locks::LIMIT;
use support::servers::Servers;

const RESOURCE: &str = "orders:42";

/// The ttl, as long as the quarantine: the longest that the guard must protect.
const TTL: Duration = Duration::from_secs(3);

/// A small part of the ttl; on a busy machine, a round that times out is repeated.
const NODE_TIMEOUT: Duration = Duration::from_millis(300);

/// A time in which a client believed that it held the lock.
#[derive(Clone, Copy, Debug)]
struct Claim {
    client: usize,
    /// Will it hold the lock to its end, whatever happens?
    is_stubborn: bool,
    from: Instant,
    until: Instant,
}

/// The claims of all clients, as seen by the test.
#[derive(Default)]
struct Claims {
    claims: Mutex<Vec<Claim>>,
    is_over: AtomicBool,
}

impl Claims {
    fn claims(&self) -> Vec<Claim> {
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

    /// Was the lock acquired after this time by a client that will hold it for most of its ttl?
    fn is_held(&self, since: Instant) -> bool {
        let soon = Instant::now() + TTL * 3 / 4;
        let is_it = |claim: &Claim| claim.is_stubborn && claim.from > since && claim.until > soon;
        self.claims().iter().any(is_it)
    }
}

/// Ends the clients when it is dropped.
struct Over<'a>(&'a AtomicBool);

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
fn work(number: usize, client: &LockClient, all_claims: &Claims) {
    let wait = Duration::from_millis(500);
    for turn in number.. {
        if all_claims.is_over.load(Ordering::SeqCst) {
            return;
        }
        // Too few nodes may be up, or count: then it retries.
        let Ok(Some(mut guard)) = client.request(RESOURCE).ttl(TTL).try_lock_for(wait) else {
            continue;
        };
        let from = Instant::now();
        let (is_stubborn, until) = (turn % 3 == 0, promised(&guard));
        let claim = all_claims.begin(Claim { client: number, is_stubborn, from, until });
        match turn % 3 {
            0 => while_held(&guard, TTL),
            1 => {
                while_held(&guard, TTL / 3);
                if guard.extend(TTL).is_ok() {
                    all_claims.change(claim, |_| promised(&guard));
                }
                while_held(&guard, TTL);
            }
            _ => while_held(&guard, TTL / 30),
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

/// Kills and restarts the servers, one after the other, each time the lock has been acquired, until
/// `enough` returns true.
fn storm(restart_guard: bool, mut enough: impl FnMut(usize, &Claims) -> bool) -> Claims {
    let mut servers = Servers::start(3);
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let builder = LockClient::builder().nodes(servers.urls()).node_timeout(NODE_TIMEOUT);
            builder.restart_guard(restart_guard).max_ttl(TTL).build().expect("good settings")
        })
        .collect();
    let all_claims = Claims::default();
    thread::scope(|scope| {
        // Also after a failed assertion: the clients would go on for ever otherwise.
        let _over = Over(&all_claims.is_over);
        for (number, client) in clients.iter().enumerate() {
            let all_claims = &all_claims;
            scope.spawn(move || work(number, client, all_claims));
        }
        for turn in 1.. {
            // Acquired since the servers restarted, so there is a lock to lose.
            let since = Instant::now();
            let is_held = eventually(LIMIT * 3, || all_claims.is_held(since));
            assert!(is_held, "turn {turn}: no client gets the lock any more");
            // All servers lose the key, or two, which are a majority.
            for index in turn..turn + 2 + turn % 2 {
                servers[index % 3].restart();
            }
            if enough(turn, &all_claims) {
                break;
            }
        }
    });
    all_claims
}

#[test]
fn with_the_restart_guard_there_are_never_two_holders() {
    let all_claims = storm(true, |turn, _| turn == 4);
    assert_eq!(all_claims.two_holders().map(|pair| format!("{pair:?}")), None);
}

#[test]
fn without_the_restart_guard_there_are_two_holders() {
    let start = Instant::now();
    let all_claims = storm(false, |_, all_claims| {
        // The next client tries at once.
        let seen = eventually(TTL, || all_claims.two_holders().is_some());
        assert!(
            seen || start.elapsed() < LIMIT * 3,
            "the servers lost their data, and no double holder was seen"
        );
        seen
    });
    let (first, second) = all_claims.two_holders().expect("seen before");
    assert_ne!(first.client, second.client);
}
