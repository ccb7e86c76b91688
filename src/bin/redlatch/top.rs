//! `redlatch top`: the locks, and who waits for them.

use super::arguments::{NodeArguments, TopArguments};
use super::exit::{self, Failure};
use super::inspect::{exact, holder_json, millis, shown, state_json, state_text};
use super::table;
use super::{duration, output, settings};
use redlatch::{FoundLock, InspectError, Inspection, LockClient, LockState, Locks};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

/// How many locks are looked at at the same time. A client sends what its threads ask together.
const THREADS: usize = 8;

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
    let found = Mutex::new(client.locks(pattern));
    let (mut rows, mut failed) = (Vec::new(), None);
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|_| scope.spawn(|| inspect(client, &found))).collect();
        for thread in threads {
            match thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                Ok(more) => rows.extend(more),
                Err(error) => failed = Some(error),
            }
        }
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    rows.sort_by_cached_key(|row: &Row| {
        (row.since.is_none(), row.since, Reverse(row.seen.waiters.len()), row.lock.clone())
    });
    Ok(rows)
}

/// Looks at one found lock after another until there are no more.
fn inspect(client: &LockClient, found: &Mutex<Locks<'_>>) -> Result<Vec<Row>, InspectError> {
    let mut rows = Vec::new();
    let next = || found.lock().unwrap_or_else(PoisonError::into_inner).next();
    while let Some(lock) = next() {
        let lock = lock?;
        let seen = look(client, &lock)?;
        // A key that only a minority has is what a failed attempt left, or no lock.
        if seen.state == LockState::Free && seen.waiters.is_empty() {
            continue;
        }
        let since = seen.waiters.iter().map(|it| it.since).min();
        rows.push(Row { lock, seen, since });
    }
    Ok(rows)
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
    let waiting: usize = rows.iter().map(|row| row.seen.waiters.len()).sum();
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
            row.seen.waiters.len().to_string(),
            table::cell(longest(row).map(duration::show)),
            state_text(&row.seen.state),
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
        "holders": holders.iter().map(holder_json).collect::<Vec<_>>(),
        "waiters": row.seen.waiters.len(),
        "longest_wait_millis": longest(row).map(millis),
    })
}
