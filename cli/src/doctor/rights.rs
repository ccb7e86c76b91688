//! Whether the user on the nodes may do what locks take: found out by doing it.

use super::finding::{Finding, Level};
use crate::duration;
use crate::exit::{self, Failure};
use crate::inspect::shown;
use redlatch::{Error, LockClient, LockGuard, NodeError, NodeStatus, QueueSupport};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

/// The name of a lock that nobody uses, to see whether it may be read.
pub(super) const UNUSED: &[u8] = b"redlatch-doctor";

/// The ttl of the lock that is tried out: others can have it after this, if the command is killed.
const TTL: Duration = Duration::from_secs(2);

/// For how long the second client waits: time enough to have a place in the queue of each node.
const WAIT: Duration = Duration::from_millis(300);

/// Whether the keys of this lock can be read.
pub(super) fn to_read(client: &LockClient, name: &[u8]) -> Vec<Finding> {
    let seen = match client.inspect(name) {
        Ok(seen) => seen,
        // A node that does not answer has a finding of its own.
        Err(Error::NoQuorum(_)) => return refused(&client.nodes(), name),
        Err(error) => return vec![Finding::of_all(Level::Error, "rights", &error)],
    };
    let views = seen
        .nodes
        .iter()
        .filter_map(|node| Some((&node.url, node.holder.as_ref().err()?)));
    let refused = views.filter(|(_, error)| is_refusal(error));
    refused
        .map(|(url, error)| refusal(url, error, name))
        .collect()
}

/// Has the server itself said no?
fn is_refusal(error: &NodeError) -> bool {
    matches!(error, NodeError::Server(_) | NodeError::Refused { .. })
}

fn refused(statuses: &[NodeStatus], name: &[u8]) -> Vec<Finding> {
    let errors = statuses
        .iter()
        .filter_map(|node| Some((&node.url, node.last_error.as_ref()?)));
    let refused = errors.filter(|(_, error)| is_refusal(error));
    refused
        .map(|(url, error)| refusal(url, error, name))
        .collect()
}

fn refusal(url: &std::sync::Arc<str>, error: &NodeError, name: &[u8]) -> Finding {
    let hint = if name == UNUSED {
        " (if the user has rights to other locks only, name one with --lock)"
    } else {
        ""
    };
    let text = format!(
        "{} is refused: {error}; give the user the rights that the page on settings lists{hint}",
        shown(name)
    );
    Finding::of(url, Level::Error, "rights", &text)
}

/// Acquires the lock, has the second client wait for it, and releases it.
pub(super) fn to_lock(client: &LockClient, second: &LockClient, name: &OsStr) -> Vec<Finding> {
    let name = name.as_bytes();
    let start = Instant::now();
    let request = client.request(name).ttl(TTL).owner("redlatch doctor");
    let held = match request.try_lock() {
        Ok(held) => held,
        Err(error) => {
            let mut findings = refused(&client.nodes(), name);
            let failure = Failure::from(error);
            let is_quarantine = failure.code == exit::QUARANTINED;
            let level = if is_quarantine {
                Level::Warning
            } else {
                Level::Error
            };
            let text = format!("{} cannot be acquired: {}", shown(name), failure.text);
            findings.push(Finding::of_all(level, "lock", &text));
            return findings;
        }
    };
    let took = duration::show(start.elapsed());
    // It does not get the lock, or lets it go at once.
    let waited = second
        .request(name)
        .ttl(TTL)
        .owner("redlatch doctor")
        .try_lock_for(WAIT);
    let statuses = second.nodes();
    let mut findings: Vec<Finding> = statuses.iter().filter_map(queue).collect();
    let (level, text) = match held.map(LockGuard::release) {
        None => (
            Level::Ok,
            "others have it or wait for it, and it was waited for".to_owned(),
        ),
        Some(Ok(())) => (Level::Ok, format!("acquired in {took}, and released")),
        Some(Err(error)) => (Level::Error, format!("acquired in {took}, but: {error}")),
    };
    let text = format!("{}: {text}", shown(name));
    findings.extend(refused(&client.nodes(), name));
    findings.extend(
        waited
            .err()
            .map(|error| Finding::of_all(Level::Error, "lock", &error)),
    );
    findings.push(Finding::of_all(level, "lock", &text));
    findings
}

/// Whether a waiter has a place on this node.
fn queue(node: &NodeStatus) -> Option<Finding> {
    let (level, text) = match node.queue? {
        QueueSupport::Full => (Level::Ok, "waiters have their place in its queue"),
        QueueSupport::WithoutPushes => (
            Level::Warning,
            "waiters have a place in its queue, but it does not tell them that it is their turn, \
             so they ask it now and then; give the user the rights to SUBSCRIBE and CLIENT \
             TRACKING",
        ),
        _ => (
            Level::Warning,
            "it has no queue for waiters; give the user the rights to sorted sets (ZADD and \
             others)",
        ),
    };
    Some(Finding::of(&node.url, level, "queue", &text))
}
