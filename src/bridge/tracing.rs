//! Events for `tracing`. A level that no subscriber wants costs one load of an atomic.
//!
//! Levels: `warn` for what someone should look at even if no call failed, and for calls that
//! failed; `info` for the end of such a state; `debug` for what each call did; `trace` for the
//! steps in between, and for what goes on by itself all the time.

use super::words;
use crate::error::Error;
use crate::event::Event;
#[cfg(feature = "registers")]
use crate::event::RegisterEvent;
use ::tracing::{debug, info, trace, warn};
use std::time::Duration;

/// The targets, for which subscribers can filter.
const LOCK: &str = "redlatch::lock";
const NODE: &str = "redlatch::node";
#[cfg(feature = "registers")]
const REGISTER: &str = "redlatch::register";

pub(crate) fn trace(event: &Event<'_>) {
    let secs = Duration::as_secs_f64;
    match event {
        Event::Attempt { resource, number, outcome, took } => {
            let (outcome, took) = (outcome.name(), secs(took));
            trace!(target: LOCK, %resource, number, outcome, took, "attempt");
        }
        Event::Quarantined { resource, left, reports: _ } => {
            warn!(target: LOCK, %resource, left = secs(left), "waiting for nodes in quarantine");
        }
        Event::Queued { resource, place } => debug!(target: LOCK, %resource, place, "queued"),
        Event::Woken { resource, waited } => {
            debug!(target: LOCK, %resource, waited = secs(waited), "woken");
        }
        Event::Acquired { resource, attempts, waited, validity } => {
            let (waited, validity) = (secs(waited), secs(validity));
            debug!(target: LOCK, %resource, attempts, waited, validity, "acquired");
        }
        Event::Contended { resource, attempts, waited } => {
            debug!(target: LOCK, %resource, attempts, waited = secs(waited), "contended");
        }
        Event::Failed { resource, attempts, waited, error: Error::Cancelled } => {
            debug!(target: LOCK, %resource, attempts, waited = secs(waited), "cancelled");
        }
        Event::Failed { resource, attempts, waited, error } => {
            warn!(target: LOCK, %resource, attempts, waited = secs(waited), %error, "failed");
        }
        Event::Extended { resource, took, validity, is_automatic: true } => {
            let (took, validity) = (secs(took), secs(validity));
            trace!(target: LOCK, %resource, took, validity, "extended automatically");
        }
        Event::Extended { resource, took, validity, is_automatic: false } => {
            let (took, validity) = (secs(took), secs(validity));
            debug!(target: LOCK, %resource, took, validity, "extended");
        }
        Event::NotExtended { resource, took, validity, error, is_automatic: automatic } => {
            let (took, validity) = (secs(took), secs(validity));
            warn!(target: LOCK, %resource, took, validity, automatic, %error, "not extended");
        }
        Event::Lost { resource, held, reason } => {
            let (held, reason) = (secs(held), words::lost(*reason));
            warn!(target: LOCK, %resource, held, reason, "lost");
        }
        Event::Released { resource, held, outcome, remaining } => {
            let outcome = words::released(*outcome);
            let (held, remaining) = (secs(held), secs(remaining));
            debug!(target: LOCK, %resource, held, outcome, remaining, "released");
        }
        Event::LetExpire { resource, held, remaining } => {
            let (held, remaining) = (secs(held), secs(remaining));
            debug!(target: LOCK, %resource, held, remaining, "left to its ttl");
        }
        Event::NodeUp { url: node } => info!(target: NODE, node, "up"),
        Event::NodeDown { url: node, error } => warn!(target: NODE, node, %error, "down"),
        Event::NodeSlow { url: node, silent } => {
            warn!(target: NODE, node, silent = secs(silent), "slow");
        }
        Event::NodeQueue { url: node, support } => {
            warn!(target: NODE, node, support = support.as_str(), "queue is limited");
        }
        Event::SessionLost { url: node } => warn!(target: NODE, node, "session lost"),
        #[cfg(feature = "registers")]
        Event::Register(event) => trace_register(event),
    }
}

#[cfg(feature = "registers")]
fn trace_register(event: &RegisterEvent<'_>) {
    let secs = Duration::as_secs_f64;
    match event {
        RegisterEvent::NodeVotes { url: node } => {
            info!(target: NODE, node, "has a vote on registers");
        }
        RegisterEvent::NodeWithoutVote { url: node, why } => {
            warn!(target: NODE, node, reason = why.name(), "has no vote on registers");
        }
        RegisterEvent::Read { register, rounds, took } => {
            trace!(target: REGISTER, %register, rounds, took = secs(took), "read");
        }
        RegisterEvent::Changed { register, rounds, took } => {
            debug!(target: REGISTER, %register, rounds, took = secs(took), "changed");
        }
        RegisterEvent::Failed { register, took, error } => {
            warn!(target: REGISTER, %register, took = secs(took), %error, "failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_events;
    use super::*;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex, PoisonError};

    /// The tests take turns. Who first reaches a place that logs decides by its own subscriber
    /// whether that place is of interest, as long as only one subscriber exists: a thread without
    /// one would silence the thread that has it.
    static TURN: Mutex<()> = Mutex::new(());

    /// What a subscriber writes.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no test panics with it").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines of all samples, as the usual subscriber writes them.
    fn lines() -> Vec<(&'static str, String)> {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(::tracing::Level::TRACE)
            .without_time()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let mut lines = Vec::new();
        ::tracing::subscriber::with_default(subscriber, || {
            test_events::each(|event| {
                trace(event);
                let text = std::mem::take(&mut *log.0.lock().expect("no test panics with it"));
                lines.push((event.name(), String::from_utf8(text).expect("it is text")));
            });
        });
        lines
    }

    /// The row of the guide's table that fits this line: level, target, message, fields.
    fn row(event: &str, line: &str) -> String {
        let (level, rest) = line.trim().split_once(' ').expect("the level is first");
        let (target, rest) = rest.trim().split_once(": ").expect("the target is next");
        let first = rest.find('=').map_or(rest.len(), |equals| {
            rest[..equals].rfind(' ').expect("the message is before it")
        });
        let (message, fields) = rest.split_at(first);
        let fields: Vec<_> = fields
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        let level = level.to_lowercase();
        format!("| `{event}` | `{level}` | `{target}` | {message} | {} |", fields.join(" "))
    }

    #[test]
    fn the_guide_lists_every_event_with_its_level_target_and_fields() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let guide = include_str!("../guide/monitoring.md");
        let rows: Vec<_> = lines().iter().map(|(event, line)| row(event, line)).collect();
        let written = guide.lines().filter(|line| line.contains("| `redlatch::"));
        let written: Vec<_> = written.map(str::to_owned).collect();
        assert_eq!(written, rows, "in the order of the samples:\n{}", rows.join("\n"));
    }

    #[test]
    fn no_subscriber_and_no_level_is_no_problem() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        test_events::each(trace);
        let none =
            tracing_subscriber::fmt().with_max_level(::tracing::level_filters::LevelFilter::OFF);
        ::tracing::subscriber::with_default(none.finish(), || test_events::each(trace));
    }
}
