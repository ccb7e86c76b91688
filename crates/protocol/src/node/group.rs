//! A node that is a replicated group: a master, its replicas, and something that promotes one of
//! them. By one of two rules no failover gives a lock away, although replication is late.
//!
//! A *reign* is the time for which one process is master without a break. Every promotion and every
//! restart draws a new `master_replid`, so a reign never comes back. The marker, a key of the
//! group, says since when the reign is known, by the server's own clock: a client that was started
//! a moment ago knows as much as any other.
//!
//! By both rules:
//!
//! 1. A vote counts only in the reign that was greeted. The question for that is written *behind*
//!    the votes on the same connection: what is asked before them may be over when they are given.
//! 2. A grant counts only when no lock of an earlier reign can be held that the group does not
//!    have. Until then it is in *quarantine*.
//! 3. A lock that is still valid may be extended before that, and is set again where the group has
//!    lost it: nobody else can have got it. This is the grace period of NFSv4 (RFC 8881, 8.4.2).
//! 4. A server that was stopped and replaced may be elected again without ever being told. So one
//!    that was named [too long ago](GroupOptions::named_within) is not greeted: meanwhile a holder
//!    may have reclaimed its lock from the successor. And a session without a countable vote for as
//!    long as the longest ttl greets again. (Within that time, an election ends the connections to
//!    the server: Sentinel sends `CLIENT KILL`.)
//!
//! The rules differ in what a vote must have, and in when the quarantine ends:
//!
//! - [`bounded`]: a replaced master stops by itself. A grant counts when the reign is as old as the
//!   longest ttl and the [bound](GroupOptions::bound), an extension from the bound on.
//! - [`acknowledged`], with [`replicas`](GroupOptions::replicas): a vote counts if a majority of
//!   the group has it, an extension at once. A grant counts when the servers have proven that
//!   nothing is missing, or as late as above, without a bound. [`history`] is its arithmetic.

mod acknowledged;
mod bounded;
pub mod history;
mod slot;

pub use bounded::Checked;
pub use slot::tag_of;

use super::wrong_server::NamedServer;
use super::{GroupStatus, NodeError, ServerError};
use crate::engine::{Acknowledgements, ReignQuestion, ReignStep};
use crate::resp::Reply;
use crate::time::Time;
use acknowledged::Acknowledged;
use history::{Marker, Standing};
use std::sync::Arc;
use std::time::Duration;

/// The key of the marker. It has no prefix of a client: a new program on an old group would begin a
/// quarantine of its own.
pub const MARKER: &[u8] = b"redlatch:reign";

/// What a client assumes of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOptions {
    /// What stands before each key, so that all keys of the node are in its slot of a cluster.
    /// Empty for a group that is not a part of one.
    pub tag: Arc<[u8]>,
    /// How long after the first write of its successor a replaced master may still carry out a
    /// vote. None counts of a group with `replicas`, so it is zero there.
    pub bound: Duration,
    /// How long ago a server may have been named that is greeted.
    pub named_within: Duration,
    /// The longest ttl of any client.
    pub max_ttl: Duration,
    /// How many replicas the master has, if a majority of the group must acknowledge each vote.
    pub replicas: Option<u32>,
    /// By how much the clocks of two of its servers may differ. What is written with a ttl lives
    /// longer by that: its end is a time that the next master's clock judges.
    pub skew: Duration,
}

impl GroupOptions {
    pub(super) fn tag(&self) -> &Arc<[u8]> {
        &self.tag
    }

    pub(super) fn skew(&self) -> Duration {
        self.skew
    }

    pub(super) fn named_server(&self) -> NamedServer {
        if self.tag.is_empty() {
            NamedServer::Group
        } else {
            NamedServer::Slot
        }
    }

    /// Must replicas acknowledge each vote?
    pub(super) fn waits_for_replicas(&self) -> bool {
        self.replicas.is_some()
    }

    /// How long new locks do not count in a reign of which no more is known than its age.
    pub fn quarantine(&self) -> Duration {
        let of_clocks = self.replicas.map_or(Duration::ZERO, |_| self.skew);
        let longest = self.max_ttl.saturating_add(self.bound);
        longest.saturating_add(of_clocks)
    }

    /// What all clients of the group assume, if replicas acknowledge each vote.
    pub(super) fn acknowledgements(&self) -> Option<Acknowledgements> {
        self.replicas.map(|replicas| Acknowledgements {
            replicas,
            quarantine: self.quarantine(),
        })
    }

    /// What is asked behind votes: the server waits for its replicas for at most so long.
    pub(super) fn questions(&self, wait: Duration) -> Vec<ReignStep> {
        match self.replicas {
            None => vec![ReignStep::Check],
            Some(replicas) => acknowledged::questions(replicas, wait),
        }
    }
}

/// What a server has answered to a question about its reign.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReignAnswer {
    /// It is not a master.
    NotMaster,
    /// It names no reign.
    Hidden,
    /// The marker as it is now, and the server's clock.
    Greeted { marker: Vec<u8>, now: Duration },
    /// In which reign the votes before were given.
    Checked(Checked),
    /// It has waited for its replicas.
    Waited,
    /// Of a group whose replicas acknowledge each vote.
    Standing(Standing),
}

impl ReignAnswer {
    /// Reads the answer to this question, if it is one with this number.
    pub(super) fn read(question: &ReignQuestion, number: i64, reply: &Reply<'_>) -> Option<Self> {
        match (&question.step, question.acknowledged) {
            (ReignStep::Wait { .. }, _) => {
                matches!(reply, Reply::Integer(0..)).then_some(Self::Waited)
            }
            (_, Some(_)) => Standing::read(number, reply).map(Self::Standing),
            (ReignStep::Check, None) => Checked::read(number, reply).map(Self::Checked),
            (_, None) => Self::greeted(number, reply),
        }
    }

    pub(super) fn is_of_replica(&self) -> bool {
        matches!(self, Self::NotMaster | Self::Standing(Standing::NotMaster))
    }
}

/// A reign, as it was greeted on a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reign {
    marker: Vec<u8>,
    id: Vec<u8>,
    /// How old it was at least, at this time of the client. `None` as long as no vote of it was
    /// acknowledged, where that is wanted.
    age: Option<(Duration, Time)>,
    /// When the last command was written that certainly was carried out in it.
    confirmed_at: Time,
    /// Of a group whose replicas acknowledge each vote.
    acknowledged: Option<Acknowledged>,
}

impl Reign {
    /// The reign that a server has answered to a greeting which was written at `sent_at`.
    ///
    /// # Errors
    ///
    /// Why no vote of this server can count.
    pub fn greeted(
        options: &GroupOptions,
        now: Time,
        sent_at: Time,
        answer: &ReignAnswer,
    ) -> Result<Self, NodeError> {
        match answer {
            ReignAnswer::Greeted { marker, now: clock } => {
                bounded::greeted(now, sent_at, marker, *clock)
            }
            ReignAnswer::Standing(standing) => {
                acknowledged::greeted(options, now, sent_at, standing)
            }
            ReignAnswer::NotMaster => Err(not_master()),
            _ => Err(NodeError::HidesReign),
        }
    }

    /// The server's name for it.
    pub fn id(&self) -> &[u8] {
        &self.id
    }

    /// As it was told last.
    pub fn marker(&self) -> &[u8] {
        &self.marker
    }

    /// A word of the marker.
    fn word(&self, place: usize) -> &[u8] {
        let mut words = self.marker.split(|byte| *byte == b' ');
        words.nth(place).unwrap_or_default()
    }

    pub fn nonce(&self) -> &[u8] {
        self.word(5)
    }

    /// The first digits of an earlier reign's name, if one is known: locks that were granted in it
    /// may still be held.
    pub fn former(&self) -> Option<String> {
        match &self.acknowledged {
            Some(it) => it.after.clone(),
            None => bounded::former(self.nonce()),
        }
    }

    /// Is it known since when it lasts? Where replicas acknowledge votes, not before the first one.
    pub fn is_timed(&self) -> bool {
        self.age.is_some()
    }

    /// Has a person vouched for it? Then the marker says that it is known since 1970.
    pub fn is_adopted(&self) -> bool {
        self.word(4) == b"0" && !self.is_proven()
    }

    /// Have the servers proven that it has all that counted in the reign before?
    pub fn is_proven(&self) -> bool {
        self.acknowledged
            .as_ref()
            .is_some_and(Acknowledged::is_proven)
    }

    /// May it be proven that it has all of the reign before?
    pub fn is_provable(&self) -> bool {
        self.unproven().is_some()
    }

    /// The marker, if that may be proven.
    pub(super) fn unproven(&self) -> Option<&Marker> {
        self.acknowledged.as_ref()?.unproven()
    }

    /// Will it be this old at this time?
    pub(super) fn is_as_old_at(&self, age: Duration, at: Time) -> bool {
        self.is_timed() && self.age(at) >= age
    }

    /// How old the reign is at least.
    pub fn age(&self, now: Time) -> Duration {
        self.age.map_or(Duration::ZERO, |(age, at)| {
            age.saturating_add(now.since(at))
        })
    }

    /// What a user sees of it.
    pub fn status(&self, now: Time) -> GroupStatus {
        let epoch = String::from_utf8_lossy(self.word(3));
        let is_dated = self.is_timed() && self.word(4) != b"0";
        GroupStatus {
            reign: String::from_utf8_lossy(&self.id).into_owned(),
            epoch: epoch.parse().unwrap_or(0),
            former: self.former(),
            is_adopted: self.is_adopted(),
            is_proven: self.is_proven(),
            age: is_dated.then(|| self.age(now)),
            acknowledged: self.acknowledged.as_ref().and_then(|it| it.by),
        }
    }

    /// Is the last countable vote this old? After the longest ttl the server may have been replaced
    /// and elected again.
    pub fn is_stale_in(&self, time: Duration, now: Time) -> bool {
        now.since(self.confirmed_at) >= time
    }

    /// Was the server named so long ago that it may have been replaced, and elected again?
    pub fn is_named_too_long_ago(options: &GroupOptions, named_at: Time, now: Time) -> bool {
        now.since(named_at) >= options.named_within
    }

    /// How long it takes until an answer about a lock that is held counts.
    pub fn grace(&self, options: &GroupOptions, now: Time) -> Option<Duration> {
        let left = options.bound.saturating_sub(self.age(now));
        (!left.is_zero()).then_some(left)
    }
}

impl NodeError {
    /// What an error means that a server of a replicated group answers. Most of those that a plain
    /// node answers for ever, a group answers for as long as a failover or a move of a slot takes.
    pub fn in_group(error: ServerError) -> Self {
        // Old servers wrap the error of a script in another.
        let mut words = error
            .text
            .split(' ')
            .map(|word| word.trim_start_matches('-'));
        match words.find(|word| GROUP_CODES.contains(word)) {
            Some("CLUSTERDOWN") => Self::ClusterDown(error.text),
            Some("ASK" | "TRYAGAIN") => Self::SlotMoving(error.text),
            Some(_) => Self::NoMaster(error.text),
            // A script looks for keys that have moved already.
            None if error.text.contains(NON_LOCAL_KEY) => Self::SlotMoving(error.text),
            None => Self::Server(error),
        }
    }
}

const GROUP_CODES: [&str; 6] = [
    "CLUSTERDOWN",
    "ASK",
    "TRYAGAIN",
    "MOVED",
    "READONLY",
    "MASTERDOWN",
];

const NON_LOCAL_KEY: &str = "attempted to access a non local key";

fn not_master() -> NodeError {
    NodeError::NoMaster("the server is a replica".to_owned())
}
