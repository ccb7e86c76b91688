//! `redlatch inspect` and `redlatch waiters`: who holds a lock, and who waits for it.

use super::arguments::{InspectArguments, NodeArguments, ShownLock};
use super::exit::{self, Failure};
use super::table::{self, cell};
use super::{duration, ensemble, output, settings};
use redlatch::{Holder, Inspection, LockState, NodeView, NotALock, OtherProgram, QueuedWaiter};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) fn inspect(nodes: &NodeArguments, arguments: &InspectArguments) -> Result<u8, Failure> {
    let name = &arguments.lock.name;
    let seen = settings::client(nodes)?
        .inspect(name.as_bytes())
        .map_err(Failure::from);
    if arguments.quiet {
        return match seen {
            Ok(seen) => Ok(code(&seen)),
            Err(failure) if failure.code == exit::USAGE => Err(failure),
            Err(failure) => Ok(failure.code),
        };
    }
    let seen = seen?;
    let text = if arguments.lock.json {
        format!("{}\n", to_json(name, &seen))
    } else {
        format!("{}\n\n{}", summary(name, &seen), node_table(&seen.nodes))
    };
    output::print(&text)?;
    Ok(exit::SUCCESS)
}

/// How a `redlatch run --no-wait` would end that comes now.
fn code(seen: &Inspection) -> u8 {
    match seen.state {
        LockState::Held(_) | LockState::Shared(_) => exit::HELD,
        LockState::NotALock(_) => exit::FAILED,
        LockState::Free | LockState::Reserved if seen.quarantine.is_some() => exit::QUARANTINED,
        LockState::Free if seen.waiter_count == 0 => exit::SUCCESS,
        LockState::Free | LockState::Reserved => exit::AWAITED,
        // Just changing hands.
        _ if is_of_ensemble(seen) => exit::HELD,
        _ => exit::NO_QUORUM,
    }
}

pub(crate) fn waiters(nodes: &NodeArguments, arguments: &ShownLock) -> Result<u8, Failure> {
    let name = &arguments.name;
    let seen = settings::client(nodes)?.inspect(name.as_bytes())?;
    let text = if arguments.json {
        let waiters: Vec<Value> = seen
            .waiters
            .iter()
            .enumerate()
            .map(|(index, waiter)| waiter_json(index, waiter))
            .collect();
        let name = exact(name.as_bytes());
        let count = seen.waiter_count;
        format!(
            "{}\n",
            json!({ "name": name, "waiters": waiters, "waiter_count": count })
        )
    } else if seen.waiters.is_empty() {
        format!("{}: nobody waits\n", shown(name.as_bytes()))
    } else {
        waiter_table(&seen) + &not_shown(&seen)
    };
    output::print(&text)?;
    Ok(exit::SUCCESS)
}

/// The name of a lock on one line. Different names look different, as those of owners do.
pub(crate) fn shown(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\'' | '"' => text.push(character),
                _ => text.extend(character.escape_debug()),
            }
        }
        text.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    text
}

/// The name of a lock or an owner in JSON, which has escapes of its own: the text, so that another
/// command can be given it, or a list of bytes if it is none.
pub(crate) fn exact(name: &[u8]) -> Value {
    std::str::from_utf8(name).map_or_else(|_| json!(name), |text| json!(text))
}

/// The state and the number of waiters, in a line.
pub(crate) fn summary(name: &OsStr, seen: &Inspection) -> String {
    let waiters = match seen.waiter_count {
        0 => "nobody waits".to_owned(),
        count => waiters_text(count),
    };
    format!(
        "{}: {}; {waiters}",
        shown(name.as_bytes()),
        state_text(seen)
    )
}

/// Such as "3 waiters".
pub(crate) fn waiters_text(count: usize) -> String {
    if count == 1 {
        "1 waiter".to_owned()
    } else {
        format!("{count} waiters")
    }
}

/// Such as "held by host-7 for another 12 s".
pub(crate) fn state_text(seen: &Inspection) -> String {
    let state = match &seen.state {
        LockState::Free => "free".to_owned(),
        LockState::Held(_) => format!("held by {}", holders_text(seen)),
        LockState::Shared(_) => format!("shared by {}", holders_text(seen)),
        LockState::Reserved => "reserved for the first waiter".to_owned(),
        LockState::NotALock(kind) => not_a_lock_text(*kind),
        _ if is_of_ensemble(seen) => "just changing hands".to_owned(),
        _ => "undecided: no majority agrees".to_owned(),
    };
    match seen.quarantine {
        Some(left) => format!("{state}, {}", quarantine_text(left)),
        None => state,
    }
}

pub(crate) fn quarantine_text(left: Duration) -> String {
    format!("quarantined for another {}", duration::show(left))
}

pub(crate) fn not_a_lock_text(kind: NotALock) -> String {
    format!("the key's value is not a lock: {kind}")
}

/// All holders, such as "host-7 for another 12 s, host-8 for another 15 s".
pub(crate) fn holders_text(seen: &Inspection) -> String {
    let (_, holders) = state_json(&seen.state);
    let mut texts: Vec<String> = holders.iter().map(holder_text).collect();
    let hidden = seen.holder_count.saturating_sub(holders.len());
    if hidden > 0 {
        texts.push(format!("and {hidden} more"));
    }
    texts.join(", ")
}

/// What a list of waiters is followed by, if it does not have all of them.
fn not_shown(seen: &Inspection) -> String {
    match (seen.waiters.len(), seen.waiter_count) {
        (shown, all) if shown < all => format!("\n{shown} of {all} shown\n"),
        _ => String::new(),
    }
}

/// Such as "host-7 with permit 2 for another 12 s".
fn holder_text(holder: &Holder) -> String {
    let mut text = holder_name(holder);
    if let Some(permit) = holder.slot {
        text += &format!(" with permit {permit}");
    }
    match (holder.remaining, holder.since) {
        (Some(left), _) => text + " for another " + &duration::show(left),
        (None, Some(since)) => text + &format!(" (came {} ago)", duration::show(age(since))),
        (None, None) => text + " without a ttl",
    }
}

/// What a waiter wants.
pub(crate) fn wanted(waiter: &QueuedWaiter) -> &'static str {
    if waiter.is_for_share() {
        "a share"
    } else {
        "the lock"
    }
}

/// How long ago this was. Zero by the clock of another machine that is ahead of this one.
pub(crate) fn age(since: SystemTime) -> Duration {
    since.elapsed().unwrap_or_default()
}

/// Is this a lock on a ZooKeeper ensemble?
pub(crate) fn is_of_ensemble(seen: &Inspection) -> bool {
    seen.nodes.iter().any(|node| ensemble::is_member(&node.url))
}

/// Such as "host-7", or "another program (likely redlock-py)".
pub(crate) fn holder_name(holder: &Holder) -> String {
    match (holder.other_program, holder.owner()) {
        (Some(OtherProgram::Unknown), _) => "another program".to_owned(),
        (Some(program), _) => format!("another program (likely {program})"),
        (None, Some(owner)) => owner.to_string(),
        (None, None) => "an unknown owner".to_owned(),
    }
}

fn node_table(nodes: &[NodeView]) -> String {
    let mut rows = Vec::new();
    for node in nodes {
        let holders: Vec<String> = match &node.holder {
            Ok(holder) => holder.iter().chain(&node.shares).map(holder_text).collect(),
            Err(error) => vec![exit::words(error)],
        };
        let mut text = match (&*holders, node.not_a_lock) {
            (_, Some(kind)) => not_a_lock_text(kind),
            ([], _) if node.is_reserved => "reserved for the first waiter".to_owned(),
            ([], _) => "-".to_owned(),
            (holders, _) => holders.join(", "),
        };
        if let Some(left) = node.quarantine {
            text += &format!("; {}", quarantine_text(left));
        }
        let agrees = if node.agrees { "yes" } else { "-" };
        rows.push(vec![node.url.to_string(), agrees.to_owned(), text]);
    }
    table::render(&["NODE", "AGREES", "HOLDER"], &rows)
}

fn waiter_table(seen: &Inspection) -> String {
    let mut headings = vec!["PLACE", "OWNER", "WAITED", "FOR", "NODES"];
    // On an ensemble, it is not known for what, and there is one answer.
    if is_of_ensemble(seen) {
        headings.truncate(3);
    }
    let mut rows = Vec::new();
    for (index, waiter) in seen.waiters.iter().enumerate() {
        let waited = SystemTime::now().duration_since(waiter.since).ok();
        let mut row = vec![
            (index + 1).to_string(),
            cell(waiter.owner()),
            cell(waited.map(duration::show)),
            wanted(waiter).to_owned(),
            waiter.nodes.to_string(),
        ];
        row.truncate(headings.len());
        rows.push(row);
    }
    table::render(&headings, &rows)
}

fn to_json(name: &OsStr, seen: &Inspection) -> Value {
    let (state, holders) = state_json(&seen.state);
    json!({
        "name": exact(name.as_bytes()),
        "state": state,
        "not_a_lock": not_a_lock_json(&seen.state),
        "quarantine_seconds": seen.quarantine.map(seconds),
        "holders": holders.iter().map(holder_json).collect::<Vec<_>>(),
        "holder_count": seen.holder_count,
        "waiters": seen.waiter_count,
        "nodes": seen.nodes.iter().map(node_json).collect::<Vec<_>>(),
    })
}

fn node_json(node: &NodeView) -> Value {
    json!({
        "url": &*node.url,
        "agrees": node.agrees,
        "reserved": node.is_reserved,
        "not_a_lock": node.not_a_lock.map(|kind| kind.to_string()),
        "quarantine_seconds": node.quarantine.map(seconds),
        "holder": node.holder.as_ref().ok().and_then(Option::as_ref).map(holder_json),
        "shares": node.shares.iter().map(holder_json).collect::<Vec<_>>(),
        "error": node.holder.as_ref().err().map(exit::words),
    })
}

/// The state, and the holders.
pub(crate) fn state_json(state: &LockState) -> (&'static str, &[Holder]) {
    match state {
        LockState::Free => ("free", &[]),
        LockState::Held(holder) => ("held", std::slice::from_ref(holder)),
        LockState::Shared(holders) => ("shared", holders),
        LockState::Reserved => ("reserved", &[]),
        LockState::NotALock(_) => ("not_a_lock", &[]),
        _ => ("undecided", &[]),
    }
}

pub(crate) fn not_a_lock_json(state: &LockState) -> Option<String> {
    match state {
        LockState::NotALock(kind) => Some(kind.to_string()),
        _ => None,
    }
}

/// What is left of a quarantine, so that it is over after this time.
pub(crate) fn seconds(left: Duration) -> f64 {
    left.as_secs_f64().ceil()
}

pub(crate) fn holder_json(holder: &Holder) -> Value {
    json!({
        "owner": holder.owner().map(|owner| exact(owner.as_bytes())),
        "other_program": holder.other_program.map(|program| program.to_string()),
        "remaining_millis": holder.remaining.map(millis),
        "permit": holder.slot,
        "since_unix_millis": holder.since.map(unix_millis),
    })
}

fn waiter_json(index: usize, waiter: &QueuedWaiter) -> Value {
    json!({
        "place": index + 1,
        "owner": waiter.owner().map(|owner| exact(owner.as_bytes())),
        "since_unix_millis": unix_millis(waiter.since),
        "is_for_share": waiter.is_for_share(),
        "nodes": waiter.nodes,
    })
}

pub(crate) fn unix_millis(time: SystemTime) -> u64 {
    millis(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_names_look_different() {
        let names: [&[u8]; 9] = [
            b"a\xff",
            b"a\xfe",
            b"a\\xff",
            "a\u{fffd}".as_bytes(),
            b"\n",
            b"\\n",
            b"'",
            b"\\'",
            b"",
        ];
        let mut texts: Vec<String> = names.into_iter().map(shown).collect();
        assert_eq!(texts[0], "a\\xff");
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), names.len(), "{texts:?}");
    }

    #[test]
    fn names_in_json_are_exact() {
        assert_eq!(
            exact("it's\n\"ü\"".as_bytes()).as_str(),
            Some("it's\n\"ü\"")
        );
        assert_eq!(exact(b"a\xff").to_string(), "[97,255]");
    }
}
