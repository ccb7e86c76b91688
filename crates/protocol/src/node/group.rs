//! A node that is a replicated group: a master, its replicas, and something that promotes one of
//! them. By this rule no failover gives a lock away, although replication is late.
//!
//! A *reign* is the time for which one process is master without a break. Every promotion and every
//! restart draws a new `master_replid`, so a reign never comes back. The marker, a key of the
//! group, says since when the reign is known, by the server's own clock: a client that was started
//! a moment ago knows as much as any other.
//!
//! 1. A vote counts only in the reign that was greeted. The question for that is written *behind*
//!    the votes on the same connection: what is asked before them may be over when they are given.
//! 2. A grant counts only when the reign is as old as the longest ttl and the
//!    [bound](GroupOptions::bound): then every lock of an earlier reign has ended.
//! 3. A lock that is still valid may be extended from the bound on, and is set again where the
//!    group has lost it: nobody else can have got it. This is the grace period of NFSv4 (RFC 8881,
//!    8.4.2).
//! 4. With [`replicas`](GroupOptions::replicas), a vote counts only if a majority of the group has
//!    acknowledged a write of this client that is no older than the bound: a lease, read off from
//!    outside. The age of the reign then counts from the first vote that counts so.
//! 5. A server that was stopped and replaced may be elected again without ever being told. So one
//!    that was named longer ago than the bound is not greeted: meanwhile a holder may have
//!    reclaimed its lock from the successor. And a session without a countable vote for as long as
//!    the longest ttl greets again. (Within that time, an election ends the connections to the
//!    server: Sentinel sends `CLIENT KILL`.)

pub mod history;
mod slot;

pub use slot::tag_of;

use super::wrong_server::NamedServer;
use super::{GroupStatus, NodeError, ServerError};
use crate::engine::ReignStep;
use crate::resp::Reply;
use crate::time::Time;
use std::collections::VecDeque;
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
    /// vote.
    pub bound: Duration,
    /// The longest ttl of any client.
    pub max_ttl: Duration,
    /// How many replicas the master has, if a majority of the group must vouch for it.
    pub replicas: Option<u32>,
}

impl GroupOptions {
    pub(super) fn tag(&self) -> Arc<[u8]> {
        Arc::clone(&self.tag)
    }

    pub(super) fn named_server(&self) -> NamedServer {
        if self.tag.is_empty() {
            NamedServer::Group
        } else {
            NamedServer::Slot
        }
    }

    /// Must a majority of the group vouch for its master?
    pub(super) fn wants_vouchers(&self) -> bool {
        self.replicas.is_some()
    }

    /// How many replicas are a majority of the group, with the master.
    pub fn majority(&self) -> Option<usize> {
        self.replicas.map(|replicas| replicas.div_ceil(2) as usize)
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
    /// How many replicas have acknowledged what was written before on the connection.
    Acknowledged(usize),
    /// In which reign the votes before were given.
    Checked(Checked),
}

/// In which reign the votes before a question were given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checked {
    pub marker: Option<Vec<u8>>,
    pub is_master: bool,
    pub id: Vec<u8>,
    /// How far the server has written, and how far each replica has acknowledged that.
    pub offset: u64,
    pub replicas: Vec<u64>,
}

impl ReignAnswer {
    /// Reads the answer to this step, if it is one with this number.
    pub fn read(step: &ReignStep, number: i64, reply: &Reply<'_>) -> Option<Self> {
        match step {
            ReignStep::Greet { .. } | ReignStep::Confirm { .. } | ReignStep::Touch { .. } => {
                Self::greeted(number, reply)
            }
            ReignStep::Wait { .. } => {
                let Reply::Integer(count) = reply else {
                    return None;
                };
                usize::try_from(*count).ok().map(Self::Acknowledged)
            }
            ReignStep::Check => {
                let mut elements = elements(number, reply)?;
                let marker = bytes(elements.next()?);
                let is_master = elements.next()? == Reply::Bulk(b"master");
                let id = bytes(elements.next()?).unwrap_or_default();
                let offset = number_of(&elements.next()?);
                let Reply::Array(replicas) = elements.next()? else {
                    return None;
                };
                let replicas = replicas.iter().map(|offset| number_of(&offset)).collect();
                Some(Self::Checked(Checked {
                    marker,
                    is_master,
                    id,
                    offset,
                    replicas,
                }))
            }
        }
    }

    /// Reads the answer of the script that writes the marker.
    pub(super) fn greeted(number: i64, reply: &Reply<'_>) -> Option<Self> {
        if *reply == Reply::Integer(-number) {
            return Some(Self::NotMaster);
        }
        let mut elements = elements(number, reply)?;
        let Some(marker) = elements.next() else {
            return Some(Self::Hidden);
        };
        let (Reply::Bulk(_), Reply::Integer(now)) = (elements.next()?, elements.next()?) else {
            return None;
        };
        let now = Duration::from_millis(u64::try_from(now).ok()?);
        Some(Self::Greeted {
            marker: bytes(marker).unwrap_or_default(),
            now,
        })
    }
}

/// The elements of a list behind this number.
fn elements<'a>(number: i64, reply: &Reply<'a>) -> Option<impl Iterator<Item = Reply<'a>>> {
    let Reply::Array(list) = reply else {
        return None;
    };
    let mut elements = list.iter();
    (elements.next()? == Reply::Integer(number)).then_some(elements)
}

fn bytes(element: Reply<'_>) -> Option<Vec<u8>> {
    if let Reply::Bulk(bytes) = element {
        Some(bytes.to_vec())
    } else {
        None
    }
}

/// Zero for what is not an offset: it vouches for nothing.
fn number_of(element: &Reply<'_>) -> u64 {
    if let Reply::Integer(number) = element {
        u64::try_from(*number).unwrap_or(0)
    } else {
        0
    }
}

/// A reign, as it was greeted on a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reign {
    marker: Vec<u8>,
    id: Vec<u8>,
    /// How old it was at least, at this time of the client. `None` as long as no majority of the
    /// group has vouched for it.
    age: Option<(Duration, Time)>,
    /// When the last command was written that certainly was carried out in it.
    confirmed_at: Time,
    /// Writes of this session: how far the server had written behind each, and when it was sent at
    /// the latest. In ascending order, so many that each falls out of the bound by itself.
    writes: VecDeque<(u64, Time)>,
    /// When the last write was sent that a majority of the group has acknowledged.
    vouched_at: Option<Time>,
    /// How many replicas have acknowledged a write that the server was asked to wait for, and when
    /// that was sent.
    waited: Option<(usize, Time)>,
    /// How many replicas had acknowledged one of these writes, at the last check.
    acknowledged: Option<usize>,
}

/// How many writes are remembered in the time of the bound.
const WRITES: u32 = 16;

impl Reign {
    /// The reign that a server has answered to a greeting which was written at `sent_at`.
    ///
    /// # Errors
    ///
    /// Why no vote of this server can count.
    pub fn greeted(now: Time, sent_at: Time, answer: &ReignAnswer) -> Result<Self, NodeError> {
        let (marker, clock) = match answer {
            ReignAnswer::Greeted { marker, now } => (marker, *now),
            ReignAnswer::NotMaster => return Err(not_master()),
            _ => return Err(NodeError::HidesReign),
        };
        let words: Vec<&[u8]> = marker.split(|byte| *byte == b' ').collect();
        // It was deleted meanwhile.
        let [b"redlatch1", _, id, _, since, _] = words[..] else {
            return Err(NodeError::ReignChanged);
        };
        // The server's clock was read before this client's: the reign is at least that old now.
        let since = std::str::from_utf8(since)
            .ok()
            .and_then(|digits| digits.parse().ok());
        let age = since.map(|since| (clock.saturating_sub(Duration::from_millis(since)), now));
        let marker = marker.clone();
        let id = id.to_vec();
        let writes = VecDeque::new();
        let vouched_at = None;
        let acknowledged = None;
        let waited = None;
        let confirmed_at = sent_at;
        Ok(Self {
            marker,
            id,
            age,
            confirmed_at,
            writes,
            vouched_at,
            waited,
            acknowledged,
        })
    }

    /// The answer to the confirmation of this reign.
    ///
    /// # Errors
    ///
    /// Why no vote of this server can count.
    pub fn confirmed(self, now: Time, answer: &ReignAnswer) -> Result<Self, NodeError> {
        let Self {
            marker, age, id, ..
        } = Self::greeted(now, self.confirmed_at, answer)?;
        if id != self.id {
            return Err(NodeError::ReignChanged);
        }
        Ok(Self {
            marker,
            age,
            ..self
        })
    }

    /// The server's name for it.
    pub fn id(&self) -> &[u8] {
        &self.id
    }

    /// As it was greeted.
    pub fn marker(&self) -> &[u8] {
        &self.marker
    }

    /// The last word of the marker.
    pub fn nonce(&self) -> &[u8] {
        self.marker
            .rsplit(|byte| *byte == b' ')
            .next()
            .unwrap_or_default()
    }

    /// The first digits of an earlier reign's name, if one is known: locks that were granted in it
    /// may still be held.
    pub fn former(&self) -> Option<String> {
        let nonce = String::from_utf8_lossy(self.nonce());
        nonce
            .split_once("after")
            .map(|(_, former)| former.to_owned())
    }

    /// Has the marker no time yet, and has a majority of the group vouched for the reign?
    pub fn is_to_confirm(&self) -> bool {
        !self.is_timed() && self.vouched_at.is_some()
    }

    /// Is it known since when it lasts? In groups that vouch, not before a majority has done so.
    pub fn is_timed(&self) -> bool {
        self.age.is_some()
    }

    /// Has a person vouched for it? Then the marker says that it is known since 1970.
    pub fn is_adopted(&self) -> bool {
        self.marker.split(|byte| *byte == b' ').nth(4) == Some(b"0")
    }

    /// So many replicas, which are a majority of the group, have acknowledged a write that was sent
    /// at this time.
    pub fn acknowledged(&mut self, replicas: usize, wrote_at: Time) {
        self.vouched_at = self.vouched_at.max(Some(wrote_at));
        self.waited = Some((replicas, wrote_at));
    }

    /// How old the reign is at least.
    pub fn age(&self, now: Time) -> Duration {
        self.age.map_or(Duration::ZERO, |(age, at)| {
            age.saturating_add(now.since(at))
        })
    }

    /// Judges the votes before a check that was written at `sent_at`, and answered at `now`. The
    /// last of them that wrote was sent at `wrote_at`.
    ///
    /// # Errors
    ///
    /// Why they do not count.
    pub fn check(
        &mut self,
        options: &GroupOptions,
        (sent_at, now): (Time, Time),
        wrote_at: Option<Time>,
        answer: &Checked,
    ) -> Result<(), NodeError> {
        if !answer.is_master {
            return Err(not_master());
        }
        let is_same = answer.marker.as_ref() == Some(&self.marker) && answer.id == self.id;
        if !is_same || self.is_stale_in(options.max_ttl, sent_at) {
            return Err(NodeError::ReignChanged);
        }
        if let Some(majority) = options.majority() {
            self.vouch(options, majority, now, wrote_at, answer)?;
        }
        self.confirmed_at = self.confirmed_at.max(sent_at);
        Ok(())
    }

    /// A replica that has acknowledged an offset had this master after the write that made it.
    fn vouch(
        &mut self,
        options: &GroupOptions,
        majority: usize,
        now: Time,
        wrote_at: Option<Time>,
        answer: &Checked,
    ) -> Result<(), NodeError> {
        let grain = options.bound / WRITES;
        let next = self.writes.back().map(|(_, last)| last.after(grain));
        // An offset of zero is none: every replica has passed it.
        let is_offset = answer.offset > 0;
        let noted = wrote_at.filter(|at| is_offset && next.is_none_or(|next| *at >= next));
        self.writes.extend(noted.map(|at| (answer.offset, at)));
        let by = |offset: u64| answer.replicas.iter().filter(|it| **it >= offset).count();
        let vouched = self
            .writes
            .iter()
            .rev()
            .find(|(offset, _)| by(*offset) >= majority);
        self.vouched_at = self.vouched_at.max(vouched.map(|(_, at)| *at));
        while self
            .writes
            .front()
            .is_some_and(|(_, at)| now > at.after(options.bound))
        {
            self.writes.pop_front();
        }
        let waited = self.waited.filter(|(_, at)| now <= at.after(options.bound));
        let passed = self.writes.front().map(|(offset, _)| by(*offset));
        self.acknowledged = passed.max(waited.map(|(count, _)| count));
        if self
            .vouched_at
            .is_some_and(|at| now <= at.after(options.bound))
        {
            return Ok(());
        }
        let vouched_by = self.writes.back().map_or(0, |(offset, _)| by(*offset));
        Err(NodeError::NotVouched {
            wanted: majority,
            vouched_by,
        })
    }

    /// Must the group vouch again for votes that are written now?
    pub fn is_to_vouch(&self, options: &GroupOptions, now: Time) -> bool {
        let lasts_until = self.vouched_at.map(|at| at.after(options.bound / 2));
        options.replicas.is_some() && lasts_until.is_none_or(|until| now > until)
    }

    /// What a user sees of it.
    pub fn status(&self, now: Time) -> GroupStatus {
        let mut words = self.marker.split(|byte| *byte == b' ');
        let epoch = words.nth(3).map(String::from_utf8_lossy);
        GroupStatus {
            reign: String::from_utf8_lossy(&self.id).into_owned(),
            epoch: epoch.and_then(|digits| digits.parse().ok()).unwrap_or(0),
            former: self.former(),
            is_adopted: self.is_adopted(),
            age: self
                .age
                .filter(|_| !self.is_adopted())
                .map(|_| self.age(now)),
            acknowledged: self.acknowledged,
            vouched_ago: self.vouched_at.map(|at| now.since(at)),
        }
    }

    /// Is the last countable vote this old? After the longest ttl the server may have been replaced
    /// and elected again.
    pub fn is_stale_in(&self, time: Duration, now: Time) -> bool {
        now.since(self.confirmed_at) >= time
    }

    /// Was the server named so long ago that it may have been replaced, and elected again?
    pub fn is_named_too_long_ago(options: &GroupOptions, named_at: Time, now: Time) -> bool {
        now.since(named_at) >= options.bound
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
