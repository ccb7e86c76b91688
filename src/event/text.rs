//! Events as lines of a log.

use super::Event;
use crate::node::{NodeAnswer, NodeError, NodeReport, QueueSupport};
use crate::released::Released;
use std::fmt;

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.resource(), self.url()) {
            (Some(resource), _) => write!(f, "'{resource}' ")?,
            (None, url) => write!(f, "{} ", url.unwrap_or_default())?,
        }
        match self {
            Self::Attempt { number, outcome, took, .. } => {
                write!(f, "attempt {number}: {}, took {took:.1?}", outcome.name())
            }
            Self::Quarantined { left, reports, .. } => {
                write!(f, "waits for {left:.1?}: quarantined, as started less than max_ttl ago")?;
                write!(f, " (setting restart_guard):")?;
                for (index, report) in quarantined(reports).enumerate() {
                    write!(f, "{} {}", if index == 0 { "" } else { "," }, report.url)?;
                }
                Ok(())
            }
            Self::Queued { place, .. } => write!(f, "queued: {place} before it"),
            Self::Woken { waited, .. } => write!(f, "woken: waited {waited:.1?}"),
            Self::Acquired { attempts, waited, validity, .. } => write!(
                f,
                "acquired: attempts {attempts}, waited {waited:.1?}, valid for {validity:.1?}"
            ),
            Self::Contended { attempts, waited, .. } => {
                write!(f, "contended: attempts {attempts}, waited {waited:.1?}")
            }
            Self::Failed { attempts, waited, error, .. } => {
                write!(f, "failed: attempts {attempts}, waited {waited:.1?}, {error}")
            }
            Self::Extended { took, validity, is_automatic, .. } => {
                let how = automatically(*is_automatic);
                write!(f, "extended{how}: took {took:.1?}, valid for {validity:.1?}")
            }
            Self::NotExtended { took, validity, error, is_automatic, .. } => {
                let how = automatically(*is_automatic);
                write!(f, "not extended{how}: took {took:.1?}, valid for {validity:.1?}, {error}")
            }
            Self::Lost { held, reason, .. } => write!(f, "lost: held {held:.1?}, {reason}"),
            Self::Released { held, outcome, remaining, .. } => {
                let how = match outcome {
                    Some(Released::InTime) => ", in time",
                    Some(Released::TooLate) => ", too late",
                    None => "",
                };
                write!(f, "released: held {held:.1?}{how}")?;
                if !remaining.is_zero() {
                    write!(f, ", stays taken for {remaining:.1?}")?;
                }
                Ok(())
            }
            Self::LetExpire { held, remaining, .. } => {
                write!(f, "left to its ttl: held {held:.1?}, valid for {remaining:.1?}")
            }
            #[cfg(feature = "registers")]
            Self::Register(event) => event.write(f),
            _ => self.write_of_node(f),
        }
    }
}

impl Event<'_> {
    fn write_of_node(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeUp { .. } => f.write_str("is up"),
            Self::NodeDown { error, .. } => write!(f, "is down: {error}"),
            Self::NodeQueue { support: QueueSupport::Unsupported, .. } => {
                f.write_str("has no queue for waiters")
            }
            Self::NodeQueue { .. } => f.write_str("does not tell waiters when it is their turn"),
            Self::SessionLost { .. } => f.write_str("has ended the session, and all its locks"),
            Self::NodeSlow { silent, .. } => write!(f, "is slow: silent for {silent:.1?}"),
            _ => unreachable!("it is about a node"),
        }
    }
}

/// The nodes whose grants do not count yet.
fn quarantined(reports: &[NodeReport]) -> impl Iterator<Item = &NodeReport> {
    let is_it = |report: &&NodeReport| {
        matches!(report.answer, NodeAnswer::Failed(NodeError::Quarantined { .. }))
    };
    reports.iter().filter(is_it)
}

fn automatically(is_automatic: bool) -> &'static str {
    if is_automatic { " automatically" } else { "" }
}

/// As its text: resources are bytes, and a list of numbers is hard to read.
impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({self})")
    }
}
