//! Many threads whose calls are cancelled at random moments: no lock and no waiter is left behind,
//! nobody who was not cancelled fails, and no two hold a lock at a time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use redlatch::{CancelToken, Error, LockClient, LockGuard};
use support::locks::LONG;
use support::servers::Servers;
use support::waiters::{LONG_LEASE, await_keys, with_lease};

const THREADS: u32 = 8;
const CALLS: u32 = 40;

/// This many calls must be granted, and this many cancelled. Where the thread that cancels gets
/// little of the processor, that takes more of them.
const ENOUGH: u32 = 20;
const CALLS_MAX: u32 = 50 * CALLS;

/// A sequence of numbers that differs from thread to thread.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// What the threads have done, and who holds the writers' lock.
#[derive(Default)]
struct Tally {
    held: [Mutex<()>; 2],
    granted: AtomicU32,
    cancelled: AtomicU32,
    /// Tokens to cancel, by a thread that does nothing else.
    tokens: Mutex<Vec<CancelToken>>,
}

/// One call with a token that may be cancelled before, during or after it.
fn call(client: &LockClient, numbers: &mut Numbers, tally: &Tally) {
    let token = CancelToken::new();
    let name = numbers.below(2);
    if numbers.below(3) > 0 {
        tally.tokens.lock().expect("no panic").push(token.clone());
    }
    let request = client
        .request(["a", "b"][name as usize])
        .ttl(LONG)
        .cancelled_by(&token);
    let share = client.request("shared").ttl(LONG).cancelled_by(&token);
    let kind = numbers.below(6);
    let work = |guard: &LockGuard, is_alone: bool| {
        // Nobody else may be here, and with a lock of the process nobody has to be trusted.
        let alone = is_alone.then(|| tally.held[name as usize].try_lock().expect("two holders"));
        thread::sleep(Duration::from_micros(300));
        drop(alone);
        guard.ensure_held().expect("it is valid for long");
    };
    let result = match kind {
        0 => share.shared().lock().map(|guard| work(&guard, false)),
        1 => share.one_of(3).lock().map(|guard| work(&guard, false)),
        2 => {
            let body = |guard: &_| {
                work(guard, true);
                Ok(())
            };
            request.with_lock(body)
        }
        _ => request.lock().map(|guard| work(&guard, true)),
    };
    match result {
        Ok(()) => tally.granted.fetch_add(1, Ordering::SeqCst),
        Err(Error::Cancelled) => {
            assert!(token.is_cancelled(), "nobody cancelled it");
            tally.cancelled.fetch_add(1, Ordering::SeqCst)
        }
        Err(error) => panic!("{error}"),
    };
}

/// Cancels the tokens of calls that have just begun, until the threads have ended.
fn cancel_some(threads: &[ScopedJoinHandle<'_, ()>], tally: &Tally) {
    let mut numbers = Numbers(99);
    while !threads.iter().all(ScopedJoinHandle::is_finished) {
        let token = tally.tokens.lock().expect("no panic").pop();
        if let Some(token) = token {
            thread::sleep(Duration::from_micros(numbers.below(2_000)));
            token.cancel();
        }
        thread::yield_now();
    }
}

#[test]
fn random_cancellations_leave_nothing_and_disturb_nobody() {
    for io_thread in [false, true] {
        let servers = Servers::start(3);
        // An entry that was left behind would keep the others waiting for longer than the test.
        let settings = || with_lease(servers.urls(), LONG_LEASE).io_thread(io_thread);
        let clients = [settings(), settings()].map(|settings| settings.build().unwrap());
        let tally = &Tally::default();
        thread::scope(|scope| {
            let start = |(index, client)| {
                let mut numbers = Numbers(u64::from(index) * 0x9E37_79B9);
                let are_enough = || tally.cancelled.load(Ordering::SeqCst) > ENOUGH;
                scope.spawn(move || {
                    for number in 0..CALLS_MAX {
                        if number >= CALLS && are_enough() {
                            break;
                        }
                        call(client, &mut numbers, tally);
                    }
                })
            };
            let threads: Vec<_> = (1..=THREADS)
                .zip(clients.iter().cycle())
                .map(start)
                .collect();
            cancel_some(&threads, tally);
        });
        let [granted, cancelled] =
            [&tally.granted, &tally.cancelled].map(|it| it.load(Ordering::SeqCst));
        assert!(granted + cancelled >= THREADS * CALLS);
        let are_enough = granted > ENOUGH && cancelled > ENOUGH;
        assert!(are_enough, "{granted} granted, {cancelled} cancelled");
        await_keys(&servers, &[]);
    }
}
