//! Looking at many locks at a time.

use crate::exit::Failure;
use redlatch::{Error, FoundLock, Inspection, LockClient, LockState, NodeError};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant, SystemTime};

/// How many locks are looked at at the same time. A client sends what its threads ask together, and
/// on the nodes that is in the way of others' commands.
const THREADS: usize = 8;

/// How many while a node hangs. Each look then takes the node timeout, so they come more slowly.
const THREADS_MAX: usize = 64;

/// How often the nodes are asked about one lock: of many thousands, some are asked about when a
/// node is slow.
const TRIES: u32 = 3;

/// A lock that somebody holds or waits for.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) lock: FoundLock,
    pub(crate) seen: Inspection,
    /// Since when the waiter waits that has waited longest.
    since: Option<SystemTime>,
    /// For how long the holder of the exclusive lock has had it, as far as is known: see [`Ages`].
    pub(crate) age: Option<Duration>,
}

impl Row {
    /// For how long somebody waits. Zero by the clock of another machine that is ahead of this one.
    pub(crate) fn longest_wait(&self) -> Option<Duration> {
        self.since.map(|since| since.elapsed().unwrap_or_default())
    }

    /// How long until nobody holds the lock, if nobody extends it. `None` if that is not known.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        match &self.seen.state {
            LockState::Held(holder) => holder.remaining,
            LockState::Shared(holders) => holders.iter().filter_map(|it| it.remaining).max(),
            _ => None,
        }
    }
}

type Found = Result<FoundLock, Error>;

/// The locks with such names that somebody holds or waits for: those for which somebody waits
/// longest come first.
pub(crate) fn listed(client: &LockClient, pattern: &[u8]) -> Result<Vec<Row>, Failure> {
    let mut rows = of(client, client.locks(pattern))?;
    rows.sort_by_cached_key(|row: &Row| {
        (
            row.since.is_none(),
            row.since,
            Reverse(row.seen.waiter_count),
            row.lock.clone(),
        )
    });
    Ok(rows)
}

/// Those of these locks that somebody holds or waits for, in no order.
pub(crate) fn of<'a>(
    client: &'a LockClient,
    found: impl Iterator<Item = Found> + Send + 'a,
) -> Result<Vec<Row>, Error> {
    let search = Search {
        client,
        found: Mutex::new(Box::new(found)),
        rows: Mutex::new(Ok(Vec::new())),
        threads: AtomicUsize::new(THREADS),
    };
    thread::scope(|scope| {
        (1..THREADS).for_each(|_| search.add_thread(scope));
        search.look_at_all(scope);
    });
    search
        .rows
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
}

/// What the threads share that look at the locks.
struct Search<'a> {
    client: &'a LockClient,
    found: Mutex<Box<dyn Iterator<Item = Found> + Send + 'a>>,
    rows: Mutex<Result<Vec<Row>, Error>>,
    threads: AtomicUsize,
}

impl Search<'_> {
    /// It takes longer without one, if the system gives none.
    fn add_thread<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let thread = thread::Builder::new();
        let _ = thread.spawn_scoped(scope, || self.look_at_all(scope));
    }

    fn look_at_all<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        if let Err(error) = self.try_all(scope) {
            *lock(&self.rows) = Err(error);
        }
    }

    /// Looks at one found lock after another until there are no more.
    fn try_all<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> Result<(), Error> {
        let next = || lock(&self.found).next();
        while let Some(found) = next() {
            let found = found?;
            let seen = look(self.client, &found)?;
            if has_hung(&seen) && self.threads.fetch_add(1, Ordering::Relaxed) < THREADS_MAX {
                self.add_thread(scope);
            }
            // A key that only a minority has is what a failed attempt left, or no lock.
            if seen.state == LockState::Free && seen.waiter_count == 0 {
                continue;
            }
            let since = seen.waiters.iter().map(|it| it.since).min();
            if let Ok(rows) = &mut *lock(&self.rows) {
                rows.push(Row {
                    lock: found,
                    seen,
                    since,
                    age: None,
                });
            }
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has a node kept this look waiting until it was given up?
fn has_hung(seen: &Inspection) -> bool {
    seen.nodes
        .iter()
        .any(|node| matches!(node.holder, Err(NodeError::TimedOut(_))))
}

fn look(client: &LockClient, lock: &FoundLock) -> Result<Inspection, Error> {
    for _ in 1..TRIES {
        match client.inspect(lock) {
            Err(Error::NoQuorum(_)) => {}
            result => return result,
        }
    }
    client.inspect(lock)
}

/// For how long locks have been held: found by looking again and again, since Redis nodes do not
/// know it. So it is at least that long.
#[derive(Debug, Default)]
pub(crate) struct Ages {
    before: HashMap<FoundLock, (Inspection, Instant)>,
}

impl Ages {
    /// Fills in the ages of these rows, which were seen just now.
    pub(crate) fn fill(&mut self, rows: &mut [Row]) {
        let now = Instant::now();
        let mut seen = HashMap::new();
        for row in rows {
            let LockState::Held(holder) = &row.seen.state else {
                continue;
            };
            let first = match self.before.get(&row.lock) {
                Some((before, first)) if row.seen.is_same_grant(before) => *first,
                _ => now,
            };
            let known = holder
                .since
                .map(|since| since.elapsed().unwrap_or_default());
            row.age = Some(known.unwrap_or(now.duration_since(first)));
            seen.insert(row.lock.clone(), (row.seen.clone(), first));
        }
        self.before = seen;
    }
}
