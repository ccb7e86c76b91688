//! `redlatch top`: the locks, and who waits for them.

use super::arguments::{NodeArguments, TopArguments};
use super::exit::{self, Failure};
use super::inspect::{exact, holder_json, millis, not_a_lock_json, seconds};
use super::inspect::{shown, state_json, state_text};
use super::table;
use super::{duration, output, settings};
use redlatch::{FoundLock, InspectError, Inspection, LockClient, LockState, Locks, NodeError};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, SystemTime};

/// How many locks are looked at at the same time. A client sends what its threads ask together, and
/// on the nodes that is in the way of others' commands.
const THREADS: usize = 8;

/// How many while a node hangs. Each look then takes the node timeout, so they come more slowly.
const THREADS_MAX: usize = 64;

const WATCH: Duration = Duration::from_secs(2);

/// How often the nodes are asked about one lock: of many thousands, some are asked about when a
/// node is slow.
const TRIES: u32 = 3;

/// A lock that somebody holds or waits for.
struct Row {
    lock: FoundLock,
    seen: Inspection,
    /// Since when the waiter waits that has waited longest.
    since: Option<SystemTime>,
}

pub(crate) fn top(nodes: &NodeArguments, arguments: &TopArguments) -> Result<u8, Failure> {
    let client = settings::client(nodes)?;
    let pattern = arguments.pattern.as_bytes();
    output::watch(arguments.watch.then_some(WATCH), !arguments.json, || {
        let rows = rows(&client, pattern)?;
        let shown = &rows[..arguments.limit.unwrap_or(rows.len()).min(rows.len())];
        let text = if arguments.json {
            format!("{}\n", Value::Array(shown.iter().map(to_json).collect()))
        } else {
            to_text(&rows, shown)
        };
        Ok((text, exit::SUCCESS))
    })
}

/// The locks that somebody holds or waits for: those for which somebody waits longest come first.
fn rows(client: &LockClient, pattern: &[u8]) -> Result<Vec<Row>, Failure> {
    let search = Search {
        client,
        found: Mutex::new(client.locks(pattern)),
        rows: Mutex::new(Ok(Vec::new())),
        threads: AtomicUsize::new(THREADS),
    };
    thread::scope(|scope| {
        (1..THREADS).for_each(|_| search.add_thread(scope));
        search.look_at_all(scope);
    });
    let mut rows = search.rows.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    rows.sort_by_cached_key(|row: &Row| {
        (row.since.is_none(), row.since, Reverse(row.seen.waiter_count), row.lock.clone())
    });
    Ok(rows)
}

/// What the threads share that look at the locks.
struct Search<'a> {
    client: &'a LockClient,
    found: Mutex<Locks<'a>>,
    rows: Mutex<Result<Vec<Row>, InspectError>>,
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
    fn try_all<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> Result<(), InspectError> {
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
                rows.push(Row { lock: found, seen, since });
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
    seen.nodes.iter().any(|node| matches!(node.holder, Err(NodeError::TimedOut(_))))
}

fn look(client: &LockClient, lock: &FoundLock) -> Result<Inspection, InspectError> {
    for _ in 1..TRIES {
        match client.inspect(lock) {
            Err(InspectError::NoQuorum(_)) => {}
            result => return result,
        }
    }
    client.inspect(lock)
}

/// For how long somebody waits. Zero by the clock of another machine that is ahead of this one.
fn longest(row: &Row) -> Option<Duration> {
    row.since.map(|since| since.elapsed().unwrap_or_default())
}

fn to_text(rows: &[Row], limited: &[Row]) -> String {
    let waiting: usize = rows.iter().map(|row| row.seen.waiter_count).sum();
    let mut text = match rows.len() {
        1 => format!("1 lock, {waiting} waiting\n"),
        count => format!("{count} locks, {waiting} waiting\n"),
    };
    if limited.is_empty() {
        return text;
    }
    let line = |row: &Row| {
        vec![
            shown(row.lock.as_ref()),
            row.seen.waiter_count.to_string(),
            table::cell(longest(row).map(duration::show)),
            state_text(&row.seen),
        ]
    };
    let lines: Vec<_> = limited.iter().map(line).collect();
    text += "\n";
    text + &table::render(&["LOCK", "WAITERS", "LONGEST WAIT", "STATE"], &lines)
}

fn to_json(row: &Row) -> Value {
    let (state, holders) = state_json(&row.seen.state);
    json!({
        "name": exact(row.lock.as_ref()),
        "state": state,
        "not_a_lock": not_a_lock_json(&row.seen.state),
        "quarantine_seconds": row.seen.quarantine.map(seconds),
        "holders": holders.iter().map(holder_json).collect::<Vec<_>>(),
        "holder_count": row.seen.holder_count,
        "waiters": row.seen.waiter_count,
        "longest_wait_millis": longest(row).map(millis),
    })
}
