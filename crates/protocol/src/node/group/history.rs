//! Groups whose replicas acknowledge each vote: by this rule a failover costs no pause where
//! servers can prove that nothing is missing. The arithmetic alone: who asks, and when, is not
//! here.
//!
//! A group has a master and R replicas; a majority of it is the master and K of them.
//!
//! 1. **A vote counts only if K replicas have acknowledged it**, in the reign that was greeted
//!    ([`weigh`]). Behind the votes, the client asks how far the master has written, waits for K
//!    replicas (`WAIT`), and asks again how far each of them has come.
//! 2. **A reign is proven** if the histories of its servers show that it has all that ever counted
//!    in the reign before ([`Proof`]). A *witness* is a server that was a part of that reign, and
//!    was continued in this one and not copied anew: then this reign begins no earlier than what
//!    the witness had acknowledged. R - K + 1 witnesses leave out fewer than K replicas, so every
//!    vote that counted was acknowledged by one of them. The master of the reign before is enough
//!    alone: all that counted stood in its own history.
//! 3. What a witness had acknowledged, it must still have had when it was continued. It has, if it
//!    is the same process: if it has been up for longer than any lock lives.
//! 4. In a proven reign, new locks count at once. In any other, they count when the reign is as old
//!    as the longest ttl, counted from the first vote that K replicas have acknowledged: from then
//!    on, fewer than K are left to the reign before.
//! 5. Extensions count in any reign as soon as they are acknowledged.
//! 6. The end of a key is a time that its next master's clock judges. So a key lives longer than
//!    its lock, by as much as two clocks of the group may differ.
//!
//! It is Raft's rule of elections, verified afterwards from outside: the one who was elected must
//! be at least as advanced as enough of the others.

use crate::resp::Reply;
use std::collections::BTreeSet;
use std::time::Duration;

/// What a reported uptime may be too long by: servers report whole seconds.
const UPTIME_GRAIN: Duration = Duration::from_secs(1);

/// The id that a server reports that has followed no other reign.
const NO_REIGN: char = '0';

/// How many replicas a group has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Replicas(pub u32);

impl Replicas {
    /// How many replicas are a majority of the group, with its master.
    pub fn majority(self) -> usize {
        self.0.div_ceil(2) as usize
    }

    /// How many witnesses prove a reign.
    pub fn witnesses(self) -> usize {
        self.0 as usize - self.majority() + 1
    }
}

/// The marker of a reign, as `reign_acknowledged.lua` tells it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Marker {
    pub run_id: String,
    pub id: String,
    pub epoch: u64,
    pub since: Since,
    pub nonce: String,
    pub replicas: u32,
    /// The reign before, if its history can be proven from here on.
    pub former: Option<Former>,
}

/// Since when a reign is known, by its server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Since {
    /// No vote of it was acknowledged.
    Unknown,
    Clock(Duration),
    /// Nothing that ever counted is missing.
    Proven,
}

/// A reign that was replaced, and the run of its master.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Former {
    pub id: String,
    pub run_id: String,
}

impl Marker {
    /// Reads it. `None` for what is not one, or fits no reign.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let words: Vec<&str> = text.split(' ').collect();
        let [
            "redlatch2",
            run,
            id,
            epoch,
            since,
            nonce,
            replicas,
            former,
            former_run,
        ] = words[..]
        else {
            return None;
        };
        let since = match since {
            "-" => Since::Unknown,
            "0" => Since::Proven,
            millis => Since::Clock(Duration::from_millis(millis.parse().ok()?)),
        };
        let is_known = former != "0";
        Some(Self {
            run_id: run.to_owned(),
            id: id.to_owned(),
            epoch: epoch.parse().ok()?,
            since,
            nonce: nonce.to_owned(),
            replicas: replicas.parse().ok()?,
            former: is_known.then(|| Former {
                id: former.to_owned(),
                run_id: former_run.to_owned(),
            }),
        })
    }

    /// Is it the same but for since when the reign is known? Whoever was greeted with another one
    /// gets no vote. That a reign is timed, or proven, which others say meanwhile, makes new locks
    /// count sooner, and never later.
    pub fn is_same(&self, other: &Self) -> bool {
        let since = other.since;
        Self {
            since,
            ..self.clone()
        } == *other
    }

    /// Rule 4: how long it takes at this time of the server's clock until new locks count, if they
    /// do when the reign is as old as `quarantine`.
    pub fn quarantine_left(&self, quarantine: Duration, clock: Duration) -> Duration {
        match self.since {
            Since::Unknown => quarantine,
            Since::Clock(since) => quarantine.saturating_sub(clock.saturating_sub(since)),
            Since::Proven => Duration::ZERO,
        }
    }
}

/// What a server answers to a step of `reign_acknowledged.lua`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It is not a master.
    NotMaster,
    /// It names no reign.
    Hidden,
    /// Its marker is of another mode, or of another number of replicas.
    OtherMode(Vec<u8>),
    Reigning(Reigning),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reigning {
    pub marker: Vec<u8>,
    pub id: Vec<u8>,
    /// The server's clock.
    pub now: Duration,
    /// How far it had written before the question.
    pub offset: u64,
    /// How many replicas it lists, and how far each has come that is online.
    pub listed: usize,
    pub acknowledged: Vec<u64>,
    /// The first digits of any earlier reign that is known.
    pub after: Option<String>,
}

impl Reigning {
    /// How many replicas have acknowledged what was written up to this offset.
    pub fn count_passed(&self, offset: u64) -> usize {
        let passed = self.acknowledged.iter().filter(|it| **it >= offset);
        passed.count()
    }
}

impl Standing {
    /// Reads an answer, if it is one with this number.
    pub fn read(number: i64, reply: &Reply<'_>) -> Option<Self> {
        if *reply == Reply::Integer(-number) {
            return Some(Self::NotMaster);
        }
        let Reply::Array(list) = reply else {
            return None;
        };
        let elements: Vec<Reply<'_>> = list.iter().collect();
        let (first, rest) = elements.split_first()?;
        if *first != Reply::Integer(number) {
            return None;
        }
        match rest {
            [] => Some(Self::Hidden),
            [Reply::Bulk(marker)] => Some(Self::OtherMode(marker.to_vec())),
            [
                marker,
                Reply::Bulk(id),
                now,
                offset,
                listed,
                Reply::Array(acknowledged),
                Reply::Bulk(after),
            ] => {
                let marker = match marker {
                    Reply::Bulk(marker) => marker.to_vec(),
                    _ => Vec::new(),
                };
                let offsets: Option<Vec<u64>> =
                    acknowledged.iter().map(|offset| count(&offset)).collect();
                Some(Self::Reigning(Reigning {
                    marker,
                    id: id.to_vec(),
                    now: Duration::from_millis(count(now)?),
                    offset: count(offset)?,
                    listed: usize::try_from(count(listed)?).ok()?,
                    acknowledged: offsets?,
                    after: (*after != b"0").then(|| String::from_utf8_lossy(after).into_owned()),
                }))
            }
            _ => None,
        }
    }
}

fn count(element: &Reply<'_>) -> Option<u64> {
    if let Reply::Integer(number) = element {
        u64::try_from(*number).ok()
    } else {
        None
    }
}

/// What votes are worth that stand before two questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// They count, as far as the age of the reign allows.
    Acknowledged,
    /// Only so many replicas have acknowledged them.
    TooFew { acknowledged: usize },
    /// The group has more replicas than all clients assume: a majority of them is another one.
    TooManyReplicas { listed: usize },
    /// They were given in another reign than the one that was greeted, or the group has lost its
    /// marker meanwhile, and locks with it.
    OtherReign,
}

/// Rule 1: weighs the votes in front of two questions, between which the server has waited for its
/// replicas. `marker` is the one that was greeted.
///
/// The first question is behind the votes, so how far the server had written then is behind them
/// too. A reign never comes back: what is the same in both answers was the same in between, so all
/// that was acknowledged is of this reign. The number that `WAIT` answers is not looked at: before
/// Redis 8 it counts for a question that wrote nothing, and it counts connections, of which a
/// replica that has connected again may have two.
pub fn weigh(replicas: Replicas, marker: &Marker, first: &Standing, second: &Standing) -> Weight {
    let is_same = |standing: &Standing| match standing {
        Standing::Reigning(it) => {
            let now = Marker::parse(&it.marker);
            now.is_some_and(|now| now.is_same(marker)) && it.id == marker.id.as_bytes()
        }
        _ => false,
    };
    let (Standing::Reigning(before), Standing::Reigning(behind)) = (first, second) else {
        return Weight::OtherReign;
    };
    if !is_same(first) || !is_same(second) {
        return Weight::OtherReign;
    }
    if behind.listed > replicas.0 as usize {
        return Weight::TooManyReplicas {
            listed: behind.listed,
        };
    }
    let acknowledged = behind.count_passed(before.offset);
    if acknowledged >= replicas.majority() {
        Weight::Acknowledged
    } else {
        Weight::TooFew { acknowledged }
    }
}

/// What a server says about where its data comes from: `INFO server` and `INFO replication`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct History {
    pub run_id: String,
    pub uptime: Duration,
    pub is_master: bool,
    /// The reign that it is a part of.
    pub id: String,
    /// The reign that it was a part of before, and from which offset on it was not.
    pub former: Option<(String, u64)>,
}

impl History {
    /// Reads it. `None` if a field is missing: a server that hides its history proves nothing.
    pub fn parse(info: &str) -> Option<Self> {
        let field = |name: &str| {
            let mut lines = info.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        };
        let former = field("master_replid2")?;
        // It is -1 where there is none.
        let forked_at = field("second_repl_offset")?.parse().ok();
        let is_known = former.contains(|digit| digit != NO_REIGN);
        Some(Self {
            run_id: field("run_id")?.to_owned(),
            uptime: Duration::from_secs(field("uptime_in_seconds")?.parse().ok()?),
            is_master: field("role")? == "master",
            id: field("master_replid")?.to_owned(),
            former: forked_at
                .filter(|_| is_known)
                .map(|at| (former.to_owned(), at)),
        })
    }
}

/// What a server proves about the reign before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Testimony {
    Nothing,
    /// That the present reign has all that this server had of it.
    Own,
    /// That the present reign has all of it: this server was its master.
    Whole,
}

impl Testimony {
    /// Rules 2 and 3: what a server proves about the reign before the one of this marker. `master`
    /// is what the master of that reign says about itself, and no lock has a longer ttl than
    /// `max_ttl`, by clocks that differ by `skew` at most.
    pub fn of(
        server: &History,
        master: &History,
        marker: &Marker,
        max_ttl: Duration,
        skew: Duration,
    ) -> Self {
        let Some(former) = &marker.former else {
            return Self::Nothing;
        };
        let is_here = |it: &History| it.id == marker.id;
        let fork = |it: &History| {
            let known = it.former.as_ref().filter(|(id, _)| *id == former.id);
            known.map(|(_, at)| *at)
        };
        let (Some(begins_at), Some(left_at)) = (fork(master), fork(server)) else {
            return Self::Nothing;
        };
        let is_master = server.run_id == master.run_id;
        let reigns = master.is_master && is_here(master) && master.run_id == marker.run_id;
        let follows = is_here(server) && (is_master || !server.is_master && left_at <= begins_at);
        if !reigns || !follows {
            return Self::Nothing;
        }
        if server.run_id == former.run_id {
            return Self::Whole;
        }
        let longest = max_ttl.saturating_add(skew).saturating_add(UPTIME_GRAIN);
        if server.uptime > longest {
            Self::Own
        } else {
            Self::Nothing
        }
    }
}

/// What the servers of a group have proven about one reign.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Proof {
    /// By their runs: a server that has two addresses is one.
    witnesses: BTreeSet<String>,
    is_whole: bool,
}

impl Proof {
    /// Hears what this server proves.
    pub fn hear(&mut self, server: &History, testimony: Testimony) {
        match testimony {
            Testimony::Nothing => {}
            Testimony::Own => {
                self.witnesses.insert(server.run_id.clone());
            }
            Testimony::Whole => self.is_whole = true,
        }
    }

    /// Is the reign proven, in a group of so many replicas?
    pub fn is_complete(&self, replicas: Replicas) -> bool {
        self.is_whole || self.witnesses.len() >= replicas.witnesses()
    }
}

#[cfg(test)]
mod tests;
