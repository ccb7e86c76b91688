//! The values of an event's fields, in the few forms that texts, logs and metrics tell apart.

use self::FieldValue::{Flag, Name, Number, Reason, Reports, Text, Time, Url, Word};
use super::{AttemptOutcome, Released};
use crate::engine::NoVote;
use crate::error::{Error, LossReason};
use crate::inspect::NotALock;
use crate::name;
use crate::node::{NodeAnswer, NodeError, NodeReport, QueueSupport};
use std::fmt;
use std::time::Duration;

#[derive(Clone, Copy)]
pub(crate) enum FieldValue<'a> {
    Name(name::Name<'a>),
    Url(&'a str),
    Number(u64),
    Time(Duration),
    Flag(bool),
    /// A word that can be a label of a metric.
    Word(&'static str),
    /// A reason: in such a word, and in full.
    #[cfg_attr(not(any(feature = "tracing", feature = "metrics")), expect(dead_code))]
    Reason(&'static str, &'a dyn fmt::Display),
    Text(&'a dyn fmt::Display),
    /// The reports of all nodes. As text, the nodes whose grants do not count yet.
    Reports(&'a [NodeReport]),
}

impl fmt::Display for FieldValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Name(name) => name.fmt(f),
            Url(word) | Word(word) => f.write_str(word),
            Number(number) => number.fmt(f),
            Time(time) => write!(f, "{time:.1?}"),
            Flag(flag) => flag.fmt(f),
            Reason(_, text) | Text(text) => text.fmt(f),
            Reports(reports) => {
                let mut before = "";
                for report in reports {
                    if let NodeAnswer::Failed(NodeError::Quarantined { .. }) = report.answer {
                        write!(f, "{before}{}", report.url)?;
                        before = ", ";
                    }
                }
                Ok(())
            }
        }
    }
}

macro_rules! values {
    ($($field:ident: $type:ty => $value:expr),+ $(,)?) => {$(
        impl<'a> From<&'a $type> for FieldValue<'a> {
            fn from($field: &'a $type) -> Self {
                $value
            }
        }
    )+};
}

// The types that fields have.
values! {
    name: name::Name<'a> => Name(*name),
    url: &'a str => Url(url),
    number: u32 => Number((*number).into()),
    number: u64 => Number(*number),
    time: Duration => Time(*time),
    flag: bool => Flag(*flag),
    outcome: AttemptOutcome => Word(outcome.name()),
    outcome: Option<Released> => Word(outcome.map_or("unknown", Released::name)),
    reason: NotALock => Reason(reason.name(), reason),
    reason: LossReason => Reason(reason.name(), reason),
    reason: NoVote => Reason(reason.name(), reason),
    support: QueueSupport => Reason(support.as_str(), limit(*support)),
    error: &'a Error => Text(error),
    error: &'a NodeError => Text(error),
    reports: &'a [NodeReport] => Reports(reports),
}

#[cfg(feature = "registers")]
values! {
    error: &'a crate::error::RegisterError => Text(error),
}

fn limit(support: QueueSupport) -> &'static &'static str {
    match support {
        QueueSupport::Unsupported => &"it has no queue for waiters",
        _ => &"it does not tell waiters when it is their turn",
    }
}
