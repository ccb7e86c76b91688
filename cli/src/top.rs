//! `redlatch top`: the locks, and who waits for them.

pub(crate) mod arguments;
mod screen;
pub(crate) mod search;
mod terminal;
mod view;

use super::arguments::NodeArguments;
use super::exit::{self, Failure};
use super::inspect::{exact, holder_json, millis, not_a_lock_json, seconds};
use super::inspect::{shown, state_json, state_text};
use super::run::signals::end_first_process;
use super::table;
use super::{duration, output, settings};
use arguments::TopArguments;
use search::Row;
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

const WATCH: Duration = Duration::from_secs(2);

pub(crate) fn top(nodes: &NodeArguments, arguments: &TopArguments) -> Result<u8, Failure> {
    let client = settings::client(nodes)?;
    let pattern = arguments.pattern.as_bytes();
    if !arguments.json && !arguments.plain && terminal::is_possible() {
        return terminal::show(client, pattern, arguments.limit);
    }
    end_first_process()?;
    output::watch(arguments.watch.then_some(WATCH), !arguments.json, || {
        let rows = search::listed(&client, pattern)?;
        let shown = &rows[..arguments.limit.unwrap_or(rows.len()).min(rows.len())];
        let text = if arguments.json {
            format!("{}\n", Value::Array(shown.iter().map(to_json).collect()))
        } else {
            to_text(&rows, shown)
        };
        Ok((text, exit::SUCCESS))
    })
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
    let mut lines = Vec::new();
    for row in limited {
        lines.push(vec![
            shown(row.lock.as_ref()),
            row.seen.waiter_count.to_string(),
            table::cell(row.longest_wait().map(duration::show)),
            state_text(&row.seen),
        ]);
    }
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
        "longest_wait_millis": row.longest_wait().map(millis),
    })
}
