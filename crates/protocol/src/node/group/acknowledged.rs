//! Groups whose replicas acknowledge each vote: what a session makes of the arithmetic of
//! [`history`](super::history).
//!
//! The age of a reign counts from its first vote that was acknowledged: from then on, too few
//! replicas are left to the master before. Whoever has seen one writes the clock into the marker.

use super::history::{Marker, Replicas, Since, Standing, Weight, weigh};
use super::{GroupOptions, Reign, not_master};
use crate::engine::ReignStep;
use crate::node::NodeError;
use crate::time::Time;
use std::time::Duration;

/// What is known of such a reign besides.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Acknowledged {
    marker: Marker,
    /// The first digits of any earlier reign that is known.
    pub(super) after: Option<String>,
    /// How many replicas had acknowledged the last votes.
    pub(super) by: Option<usize>,
}

impl Acknowledged {
    /// A person says the same of a reign only if no earlier one is known.
    pub(super) fn is_proven(&self) -> bool {
        self.marker.since == Since::Proven && self.marker.former.is_some()
    }

    /// The marker, if the reign may be proven.
    pub(super) fn unproven(&self) -> Option<&Marker> {
        let is_open = self.marker.since != Since::Proven && self.marker.former.is_some();
        is_open.then_some(&self.marker)
    }
}

/// What is asked behind votes. The touch is a write, without which `WAIT` would not wait for what
/// other clients have written; its answer and the last one are what [`weigh`] compares.
pub(super) fn questions(replicas: u32, wait: Duration) -> Vec<ReignStep> {
    let replicas = Replicas(replicas).majority();
    let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
    vec![
        ReignStep::Touch,
        ReignStep::Wait { replicas, millis },
        ReignStep::Check,
    ]
}

/// The reign of this standing.
pub(super) fn greeted(
    options: &GroupOptions,
    now: Time,
    sent_at: Time,
    standing: &Standing,
) -> Result<Reign, NodeError> {
    let it = match standing {
        Standing::NotMaster => return Err(not_master()),
        Standing::Hidden => return Err(NodeError::HidesReign),
        Standing::OtherMode(marker) => {
            return Err(NodeError::ModeDiffers {
                named: options.replicas,
                found: Marker::parse(marker).map(|marker| marker.replicas),
            });
        }
        Standing::Reigning(it) => it,
    };
    // It was deleted or renewed meanwhile.
    let marker = Marker::parse(&it.marker).filter(|marker| marker.id.as_bytes() == it.id);
    let marker = marker.ok_or(NodeError::ReignChanged)?;
    Ok(Reign {
        id: it.id.clone(),
        age: age(&marker, now, it.now),
        confirmed_at: sent_at,
        acknowledged: Some(Acknowledged {
            marker,
            after: it.after.clone(),
            by: None,
        }),
        marker: it.marker.clone(),
    })
}

/// How old the reign is at least at this time of the client, behind that of the server's clock.
fn age(marker: &Marker, now: Time, clock: Duration) -> Option<(Duration, Time)> {
    match marker.since {
        Since::Unknown => None,
        Since::Clock(since) => Some((clock.saturating_sub(since), now)),
        Since::Proven => Some((Duration::MAX, now)),
    }
}

impl Reign {
    /// Judges the votes before a check that was written at `sent_at`, and answered at `now`:
    /// `first` is the answer to the touch in front of it.
    ///
    /// # Errors
    ///
    /// Why they do not count.
    pub fn check_acknowledged(
        &mut self,
        options: &GroupOptions,
        (sent_at, now): (Time, Time),
        first: &Standing,
        second: &Standing,
    ) -> Result<(), NodeError> {
        let (Some(known), Some(replicas)) = (&mut self.acknowledged, options.replicas) else {
            return Err(NodeError::ReignChanged);
        };
        if *second == Standing::NotMaster {
            return Err(not_master());
        }
        let replicas = Replicas(replicas);
        let weight = weigh(replicas, &known.marker, first, second);
        if let (Standing::Reigning(first), Standing::Reigning(second)) = (first, second) {
            known.by = Some(second.count_passed(first.offset));
        }
        match weight {
            Weight::OtherReign => return Err(NodeError::ReignChanged),
            Weight::TooFew { acknowledged } => {
                return Err(NodeError::NotAcknowledged {
                    wanted: replicas.majority(),
                    acknowledged,
                });
            }
            Weight::TooManyReplicas { listed } => {
                return Err(NodeError::TooManyReplicas {
                    named: replicas.0,
                    listed,
                    is_permanent: false,
                });
            }
            Weight::Acknowledged => {}
        }
        if self.is_stale_in(options.max_ttl, sent_at) {
            return Err(NodeError::ReignChanged);
        }
        self.confirmed_at = self.confirmed_at.max(sent_at);
        self.learn(now, second)
    }

    /// Takes the answer of a step after which the reign is the same, and what is known of it may be
    /// more: also by other clients.
    ///
    /// # Errors
    ///
    /// It is another one.
    pub fn learn(&mut self, now: Time, standing: &Standing) -> Result<(), NodeError> {
        let (Some(known), Standing::Reigning(it)) = (&mut self.acknowledged, standing) else {
            return Err(NodeError::ReignChanged);
        };
        let told = Marker::parse(&it.marker).filter(|told| known.marker.is_same(told));
        let told = told.ok_or(NodeError::ReignChanged)?;
        self.age = age(&told, now, it.now);
        self.marker.clone_from(&it.marker);
        known.marker = told;
        known.after.clone_from(&it.after);
        Ok(())
    }

    /// Is a vote acknowledged, and does the marker not say so?
    pub fn is_to_confirm(&self) -> bool {
        let known = self.acknowledged.as_ref();
        known.is_some_and(|it| it.marker.since == Since::Unknown)
    }
}
