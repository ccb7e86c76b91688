//! Bridges from events to the crates `tracing` and `metrics`, each behind the feature of its name.
//!
//! Each is a function that is called with every event, and reads its row of the table of events.
//! The page [`guide::monitoring`](crate::guide::monitoring) has the levels, fields and names as
//! tables, and the tests hold these against the code.

#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "tracing")]
mod tracing;

#[cfg(feature = "metrics")]
pub(crate) use metrics::{describe_metrics, measure};
#[cfg(feature = "tracing")]
pub(crate) use tracing::trace;

use crate::event::{Event, FieldValue};

/// The event's field of this name, if it has one.
fn field<'a>(event: &'a Event<'_>, name: &str) -> Option<FieldValue<'a>> {
    let mut found = None;
    event.visit(|field, value| {
        if field == name {
            found = Some(value);
        }
    });
    found
}

#[cfg(test)]
mod test_events;
