//! The rule by which a client judges the votes of a replicated group, without connections: what a
//! greeting and a check have told, and what follows.
//!
//! The library is to have this rule; then it takes the place of this file.

use redlatch_protocol::resp::Reply;
use redlatch_protocol::time::Time;
use std::time::Duration;

/// The key of the marker.
pub(crate) const MARKER: &[u8] = b"redlatch:reign";

/// What a client assumes of a group.
#[derive(Clone, Debug)]
pub(crate) struct GroupOptions {
    /// How long after the first write of its successor a replaced master may still carry out a
    /// vote.
    pub(crate) bound: Duration,
    /// The longest ttl of any client.
    pub(crate) max_ttl: Duration,
    /// How many replicas the master has, if a majority of the group must vouch for it.
    pub(crate) replicas: Option<u32>,
}

/// Why votes do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    NotMaster,
    HidesReign,
    ReignChanged,
    NotVouched,
    Quarantined,
}

/// What a server has answered to a question about its reign.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ReignAnswer {
    NotMaster,
    /// It names no reign.
    Hidden,
    /// The marker as it is now, and the server's clock.
    Greeted {
        marker: Vec<u8>,
        now: Duration,
    },
    Checked(Checked),
}

/// In which reign the votes before a check were given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Checked {
    pub(crate) marker: Option<Vec<u8>>,
    pub(crate) is_master: bool,
    pub(crate) id: Vec<u8>,
    /// How far the server has written, and how far each replica has acknowledged that.
    pub(crate) offset: u64,
    pub(crate) replicas: Vec<u64>,
}

impl ReignAnswer {
    /// Reads the answer with this number to a check, or to a greeting or a confirmation.
    pub(crate) fn read(is_check: bool, number: i64, reply: &Reply<'_>) -> Option<Self> {
        let list = match reply {
            Reply::Integer(answer) if *answer == -number => return Some(Self::NotMaster),
            Reply::Array(list) => list,
            _ => return None,
        };
        let mut elements = list.iter();
        if elements.next()? != Reply::Integer(number) {
            return None;
        }
        if is_check {
            let marker = bytes(elements.next()?);
            let is_master = elements.next()? == Reply::Bulk(b"master");
            let id = bytes(elements.next()?).unwrap_or_default();
            let offset = number_of(&elements.next()?);
            let Reply::Array(replicas) = elements.next()? else { return None };
            let replicas = replicas.iter().map(|offset| number_of(&offset)).collect();
            return Some(Self::Checked(Checked { marker, is_master, id, offset, replicas }));
        }
        let Some(marker) = elements.next() else { return Some(Self::Hidden) };
        let (Reply::Bulk(_), Reply::Integer(now)) = (elements.next()?, elements.next()?) else {
            return None;
        };
        let now = Duration::from_millis(u64::try_from(now).ok()?);
        Some(Self::Greeted { marker: bytes(marker).unwrap_or_default(), now })
    }
}

fn bytes(element: Reply<'_>) -> Option<Vec<u8>> {
    if let Reply::Bulk(bytes) = element { Some(bytes.to_vec()) } else { None }
}

/// Zero for what is no offset: it vouches for nothing.
fn number_of(element: &Reply<'_>) -> u64 {
    if let Reply::Integer(number) = element { u64::try_from(*number).unwrap_or(0) } else { 0 }
}

/// A reign, as it was greeted on a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reign {
    marker: Vec<u8>,
    id: Vec<u8>,
    /// How old it was at least, at this time of the client. `None` as long as no majority of the
    /// group has vouched for it.
    age: Option<(Duration, Time)>,
    /// When the last command was written that certainly was carried out in it.
    confirmed_at: Time,
    /// Writes of this session that no majority has acknowledged: how far the server had written
    /// behind each, and when it was sent.
    writes: Vec<(u64, Time)>,
    /// When the last write was sent that a majority of the group has acknowledged.
    vouched_at: Option<Time>,
}

impl Reign {
    /// The reign that a server has answered to a greeting which was written at `sent_at`.
    pub(crate) fn greeted(now: Time, sent_at: Time, answer: &ReignAnswer) -> Result<Self, Problem> {
        let (marker, clock) = match answer {
            ReignAnswer::Greeted { marker, now } => (marker, *now),
            ReignAnswer::NotMaster => return Err(Problem::NotMaster),
            _ => return Err(Problem::HidesReign),
        };
        let words: Vec<&[u8]> = marker.split(|byte| *byte == b' ').collect();
        let [b"redlatch1", _, id, _, since, _] = words[..] else {
            return Err(Problem::HidesReign);
        };
        // The server's clock was read before this client's: the reign is at least that old now.
        let since = std::str::from_utf8(since).ok().and_then(|digits| digits.parse().ok());
        let age = since.map(|since| (clock.saturating_sub(Duration::from_millis(since)), now));
        let (marker, id, writes) = (marker.clone(), id.to_vec(), Vec::new());
        Ok(Self { marker, id, age, confirmed_at: sent_at, writes, vouched_at: None })
    }

    /// The answer to the confirmation of this reign.
    pub(crate) fn confirmed(&mut self, now: Time, answer: &ReignAnswer) -> Result<(), Problem> {
        let known = Self::greeted(now, self.confirmed_at, answer)?;
        if known.id != self.id {
            return Err(Problem::ReignChanged);
        }
        (self.marker, self.age) = (known.marker, known.age);
        Ok(())
    }

    pub(crate) fn marker(&self) -> &[u8] {
        &self.marker
    }

    pub(crate) fn id(&self) -> &[u8] {
        &self.id
    }

    /// The last word of the marker.
    pub(crate) fn nonce(&self) -> &[u8] {
        self.marker.rsplit(|byte| *byte == b' ').next().unwrap_or_default()
    }

    /// Has the marker no time yet, and has a majority of the group vouched for the reign?
    pub(crate) fn is_to_confirm(&self) -> bool {
        self.age.is_none() && self.vouched_at.is_some()
    }

    /// How old the reign is at least.
    pub(crate) fn age(&self, now: Time) -> Duration {
        self.age.map_or(Duration::ZERO, |(age, at)| age.saturating_add(now.since(at)))
    }

    /// Judges the votes before a check that was written at `sent_at`, and answered at `now`. The
    /// last of them that has certainly written was sent at `wrote_at`.
    pub(crate) fn check(
        &mut self,
        options: &GroupOptions,
        (sent_at, now): (Time, Time),
        wrote_at: Option<Time>,
        answer: &Checked,
    ) -> Result<(), Problem> {
        if !answer.is_master {
            return Err(Problem::NotMaster);
        }
        let is_same = answer.marker.as_ref() == Some(&self.marker) && answer.id == self.id;
        if !is_same || self.is_stale(options, sent_at) {
            return Err(Problem::ReignChanged);
        }
        if let Some(replicas) = options.replicas {
            self.vouch(replicas.div_ceil(2) as usize, wrote_at, answer);
            if self.vouched_at.is_none_or(|at| now > at.after(options.bound)) {
                return Err(Problem::NotVouched);
            }
        }
        self.confirmed_at = self.confirmed_at.max(sent_at);
        Ok(())
    }

    /// A replica that has acknowledged an offset had this master after the write that made it.
    fn vouch(&mut self, majority: usize, wrote_at: Option<Time>, answer: &Checked) {
        self.writes.extend(wrote_at.map(|at| (answer.offset, at)));
        let by = |offset: u64| answer.replicas.iter().filter(|it| **it >= offset).count();
        if let Some(last) = self.writes.iter().rposition(|(offset, _)| by(*offset) >= majority) {
            self.vouched_at = self.vouched_at.max(Some(self.writes[last].1));
            self.writes.drain(..=last);
        }
    }

    /// Is the last countable vote so old that the server may have been replaced and elected again?
    pub(crate) fn is_stale(&self, options: &GroupOptions, now: Time) -> bool {
        now.since(self.confirmed_at) >= options.max_ttl
    }

    /// Why an answer about a lock that is held does not count yet.
    pub(crate) fn grace(&self, options: &GroupOptions, now: Time) -> Option<Problem> {
        (self.age(now) < options.bound).then_some(Problem::Quarantined)
    }
}
