//! Three real servers without persistence are killed and restarted, one after the other, while four
//! clients compete for a lock. With the restart guard there are never two holders. Without it there
//! are, which shows that this test can detect them.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::LockClient;
use support::claims::{Claims, Over, work};
use support::eventually;
use support::locks::LIMIT;
use support::servers::Servers;

/// The ttl, as long as the quarantine: the longest that the guard must protect.
const TTL: Duration = Duration::from_secs(3);

/// A small part of the ttl; on a busy machine, a round that times out is repeated.
const NODE_TIMEOUT: Duration = Duration::from_millis(300);

/// Kills and restarts the servers, one after the other, each time the lock has been acquired, until
/// `enough` returns true.
fn storm(restart_guard: bool, mut enough: impl FnMut(usize, &Claims) -> bool) -> Claims {
    let mut servers = Servers::start(3);
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let builder = LockClient::builder()
                .nodes(servers.urls())
                .node_timeout(NODE_TIMEOUT);
            builder
                .restart_guard(restart_guard)
                .max_ttl(TTL)
                .build()
                .expect("good settings")
        })
        .collect();
    let all_claims = Claims::default();
    thread::scope(|scope| {
        // Also after a failed assertion: the clients would go on for ever otherwise.
        let _over = Over(&all_claims.is_over);
        for (number, client) in clients.iter().enumerate() {
            let all_claims = &all_claims;
            scope.spawn(move || work(number, client, TTL, all_claims));
        }
        for turn in 1.. {
            // Acquired since the servers restarted, so there is a lock to lose.
            let since = Instant::now();
            let is_held = eventually(LIMIT * 3, || all_claims.is_held(since, TTL));
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
    assert_eq!(
        all_claims.two_holders().map(|pair| format!("{pair:?}")),
        None
    );
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
