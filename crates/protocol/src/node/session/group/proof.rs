//! Proving a new reign: the servers of the group are asked about their histories, on threads of
//! others, and what they say proves that nothing is missing of the reign before, or does not.
//!
//! They are asked as long as new locks do not count, and somebody drives the connections. Who has
//! the proof writes it into the marker: then they count at once, for all clients.

use crate::engine::ReignStep;
use crate::node::group::Reign;
use crate::node::group::history::{History, Proof, Replicas, Testimony};
use crate::node::session::Session;
use crate::time::Time;
use std::time::Duration;

/// How often they are asked at first: replicas follow a promoted master within a second or two.
const OFTEN: Duration = Duration::from_millis(200);

/// So often, and then seldom: a replica that copies everything anew proves nothing, and neither
/// does one that is down.
const OFTEN_MAX: u32 = 50;
const SELDOM: Duration = Duration::from_secs(2);

/// When a caller tries again that waits for a reign to be proven.
const TRY_AGAIN: Duration = Duration::from_millis(300);

/// What was heard about the reign of a connection.
#[derive(Debug, Default)]
pub(in crate::node::session) struct Inquiry {
    proof: Proof,
    began: Option<Time>,
    count: u32,
    /// Is the proof complete, and was that written?
    is_over: bool,
}

impl Session {
    /// When the servers are to be asked: as long as the reign may be proven, and new locks do not
    /// count in it.
    pub(in crate::node::session) fn inquires_in_group_at(&self) -> Option<Time> {
        let group = &self.trust.group;
        let quarantine = self.options.quarantine?;
        let reign = group.reign.as_ref().filter(|reign| reign.is_provable())?;
        if !self.is_ready() || group.inquiry.is_over {
            return None;
        }
        let pause = if group.inquiry.count < OFTEN_MAX {
            OFTEN
        } else {
            SELDOM
        };
        let next_at = group.inquiry.began.map_or(Time::ZERO, |at| at.after(pause));
        let is_needless = reign.is_as_old_at(quarantine, next_at);
        Some(next_at).filter(|_| !is_needless)
    }

    /// They are being asked.
    pub fn inquiring(&mut self, now: Time) {
        let inquiry = &mut self.trust.group.inquiry;
        inquiry.began = Some(now);
        inquiry.count += 1;
    }

    /// A server of the group has said this about its history, and the master of this connection
    /// that about its own.
    pub fn heard(&mut self, now: Time, server: &History, master: &History) {
        let (Some(options), Some(reign)) = (&self.options.group, &self.trust.group.reign) else {
            return;
        };
        let (Some(replicas), Some(marker)) = (options.replicas, reign.unproven()) else {
            return;
        };
        let testimony = Testimony::of(server, master, marker, options.max_ttl, options.skew);
        let inquiry = &mut self.trust.group.inquiry;
        inquiry.proof.hear(server, testimony);
        if inquiry.is_over || !inquiry.proof.is_complete(Replicas(replicas)) {
            return;
        }
        inquiry.is_over = true;
        if let Some(nonce) = self.nonce() {
            let run_id = self.run();
            self.ask_reign(now, ReignStep::Prove { run_id, nonce });
        }
    }

    /// When it is worth while to ask again for a lock whose grants do not count for this time:
    /// sooner if the reign may be proven before.
    pub(in crate::node) fn may_count_in(&self, left: Duration) -> Duration {
        let is_asked_often = self.trust.group.inquiry.count < OFTEN_MAX;
        if is_asked_often && self.is_provable() {
            left.min(TRY_AGAIN)
        } else {
            left
        }
    }

    fn is_provable(&self) -> bool {
        let reign = self.trust.group.reign.as_ref();
        reign.is_some_and(Reign::is_provable)
    }
}
