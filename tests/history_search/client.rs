//! Clients: what they send to a server, and what they make of its answers by the library's rule.
//! When they ask what, and what they keep, is a model.

use crate::node::{Answer, Command, Step, TICK, ticks};
use crate::scheme::{Mistake, Scheme};
use redlatch_protocol::node::history::{
    self, History, Marker, Proof, Replicas, Since, Standing, Testimony, Weight,
};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

/// Who makes these counts more replicas than there may be.
const MORE: [Mistake; 2] = [Mistake::MoreReplicas, Mistake::FewerThanAMajority];

/// A command that was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) command: Command,
    pub(crate) at: u8,
}

impl Sent {
    /// Does the server wait for its replicas before it?
    pub(crate) fn is_check(&self) -> bool {
        matches!(
            self.command,
            Command::Reign {
                step: Step::Check,
                ..
            }
        )
    }
}

/// The server is not the one that was greeted, or must be greeted again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GreetAgain;

/// A vote, and whether it counts.
pub(crate) struct Counted {
    pub(crate) sent: Sent,
    pub(crate) counts: bool,
    pub(crate) counter: u64,
}

/// A connection to a server, and what is known on it.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) server: usize,
    pub(crate) run: u8,
    /// What was written and is not carried out, and what was carried out and is not read.
    pub(crate) sent: VecDeque<Sent>,
    pub(crate) answered: VecDeque<(Sent, Answer)>,
    /// As it was told last, with the server's clock, and when that was; and its bytes.
    marker: Option<(Marker, Duration, u8)>,
    told: Vec<u8>,
    pub(crate) proof: Proof,
    /// Has it said that its reign is proven?
    pub(crate) has_proven: bool,
    /// Does its client ask for acknowledgements? And is it what it assumes of the group.
    asks: bool,
    /// The answer to the first question, and the votes in front of it.
    first: Option<Rc<Standing>>,
    unchecked: Vec<(Sent, bool, u64)>,
    /// The last question that was answered, of the mistake that asks none behind its votes.
    last: Option<Rc<Standing>>,
    confirmed_at: u8,
}

impl Session {
    pub(crate) fn new(server: usize, run: u8, asks: bool, now: u8) -> Self {
        Self {
            server,
            run,
            sent: VecDeque::new(),
            answered: VecDeque::new(),
            marker: None,
            told: Vec::new(),
            proof: Proof::default(),
            has_proven: false,
            asks,
            first: None,
            unchecked: Vec::new(),
            last: None,
            confirmed_at: now,
        }
    }

    /// What is left of the quarantine of its reign.
    fn quarantine(&self, scheme: &Scheme, now: u8) -> Duration {
        let Some((marker, clock, at)) = &self.marker else {
            return Duration::ZERO;
        };
        marker.quarantine_left(ticks(scheme.quarantine()), *clock + ticks(now - at))
    }

    /// Does every lock count in its reign, because that is proven?
    pub(crate) fn is_proven_reign(&self) -> bool {
        let marker = self.marker.as_ref();
        marker.is_some_and(|(it, ..)| it.since == Since::Proven && it.former.is_some())
    }

    /// After the longest ttl without a countable vote, it greets again.
    pub(crate) fn is_stale(&self, scheme: &Scheme, now: u8) -> bool {
        !scheme.has(Mistake::ConnectionsKept) && now >= self.confirmed_at + scheme.ttl
    }

    pub(crate) fn is_ready(&self, scheme: &Scheme, now: u8) -> bool {
        self.marker.is_some() && !self.is_stale(scheme, now)
    }

    /// Must it look for witnesses?
    pub(crate) fn is_to_prove(&self) -> bool {
        let marker = self.marker.as_ref();
        let is_open = |it: &Marker| it.since != Since::Proven && it.former.is_some();
        self.asks && !self.has_proven && marker.is_some_and(|(it, ..)| is_open(it))
    }

    /// Does an extension set a key that is gone?
    pub(crate) fn reclaims(&self, scheme: &Scheme, now: u8) -> bool {
        !self.quarantine(scheme, now).is_zero()
    }

    fn nonce(&self) -> u16 {
        let marker = self.marker.as_ref();
        marker.map_or(0, |(it, ..)| {
            it.nonce.parse().expect("a nonce of the search")
        })
    }

    pub(crate) fn write(&mut self, command: Command, now: u8) {
        self.sent.push_back(Sent { command, at: now });
    }

    /// A question with the nonce that was greeted.
    pub(crate) fn ask(&mut self, step: Step, scheme: &Scheme, now: u8) {
        let nonce = self.nonce();
        let command = Command::Reign {
            step,
            nonce,
            epoch: 0,
            replicas: self.replicas(scheme),
        };
        self.write(command, now);
    }

    fn replicas(&self, scheme: &Scheme) -> u32 {
        if self.asks { scheme.replicas } else { 0 }
    }

    /// Writes a vote, and the questions behind it.
    pub(crate) fn vote(&mut self, scheme: &Scheme, now: u8, command: Command) {
        if scheme.has(Mistake::AcknowledgedBefore) {
            self.ask(Step::Touch, scheme, now);
            self.write(command, now);
        } else {
            self.write(command, now);
            self.ask(Step::Touch, scheme, now);
        }
        self.ask(Step::Check, scheme, now);
    }

    /// Takes an answer. Returns the votes that are decided with it.
    pub(crate) fn told(
        &mut self,
        scheme: &Scheme,
        now: u8,
        sent: Sent,
        answer: Answer,
    ) -> Result<Vec<Counted>, GreetAgain> {
        let standing = match answer {
            Answer::Vote(granted, counter) => {
                self.unchecked.push((sent, granted, counter));
                return Ok(Vec::new());
            }
            Answer::Failed => {
                self.unchecked.push((sent, false, 0));
                return Ok(Vec::new());
            }
            Answer::Standing(standing) => standing,
        };
        let Command::Reign { step, .. } = sent.command else {
            unreachable!("{sent:?}")
        };
        match step {
            Step::Greet | Step::Confirm | Step::Prove => self.marked(&standing, step, now)?,
            Step::Touch => self.first = Some(standing),
            Step::Check => return self.checked(scheme, now, sent, &standing),
        }
        Ok(Vec::new())
    }

    fn marked(&mut self, standing: &Standing, step: Step, now: u8) -> Result<(), GreetAgain> {
        let Standing::Reigning(it) = standing else {
            return Err(GreetAgain);
        };
        let marker = Marker::parse(&it.marker).ok_or(GreetAgain)?;
        let before = self.marker.as_ref().map(|(before, ..)| before);
        let is_same = before.is_none_or(|it| it.id == marker.id && it.nonce == marker.nonce);
        if step != Step::Greet && !is_same || marker.id.as_bytes() != it.id {
            return Err(GreetAgain);
        }
        self.marker = Some((marker, it.now, now));
        self.told.clone_from(&it.marker);
        Ok(())
    }

    fn checked(
        &mut self,
        scheme: &Scheme,
        now: u8,
        sent: Sent,
        standing: &Rc<Standing>,
    ) -> Result<Vec<Counted>, GreetAgain> {
        let weight = self.weigh(scheme, standing);
        self.last = Some(Rc::clone(standing));
        let first = self.first.take();
        if first.is_none() || weight == Weight::OtherReign || self.is_stale(scheme, sent.at) {
            return Err(GreetAgain);
        }
        let is_acknowledged = weight == Weight::Acknowledged;
        let in_quarantine = !self.quarantine(scheme, now).is_zero();
        let mut counted = Vec::new();
        for (sent, granted, counter) in std::mem::take(&mut self.unchecked) {
            let is_extension = matches!(sent.command, Command::Keep { .. });
            let unweighed = is_extension && scheme.has(Mistake::ExtensionNotAcknowledged);
            let is_old = !in_quarantine || is_of_holder(scheme, sent);
            let counts = granted && is_old && (is_acknowledged || unweighed);
            counted.push(Counted {
                sent,
                counts,
                counter,
            });
        }
        if is_acknowledged {
            self.learn(standing, now);
            self.confirmed_at = self.confirmed_at.max(sent.at);
            let marker = self.marker.as_ref();
            if marker.is_some_and(|(it, ..)| it.since == Since::Unknown) {
                self.ask(Step::Confirm, scheme, now);
            }
        }
        Ok(counted)
    }

    /// Somebody else may have said meanwhile since when the reign is known.
    fn learn(&mut self, standing: &Standing, now: u8) {
        let Standing::Reigning(it) = standing else {
            return;
        };
        let told = Marker::parse(&it.marker);
        let known = self.marker.as_ref().map(|(known, ..)| known);
        if let Some(marker) = told.filter(|told| known.is_some_and(|it| it.is_same(told))) {
            self.marker = Some((marker, it.now, now));
            self.told.clone_from(&it.marker);
        }
    }

    /// The library's rule, or a wrong one.
    fn weigh(&self, scheme: &Scheme, second: &Rc<Standing>) -> Weight {
        let (Some((marker, ..)), Some(first)) = (&self.marker, &self.first) else {
            return Weight::OtherReign;
        };
        let told = &self.told;
        let group = match scheme.mistake {
            Some(Mistake::AllAcknowledgeAnyUptime) => Replicas(2 * scheme.replicas),
            Some(Mistake::FewerThanAMajority) => Replicas(scheme.replicas - 2),
            _ => scheme.group(),
        };
        let is_hasty = !self.asks || scheme.has(Mistake::NothingAcknowledged);
        let mistaken = |standing: &Standing| match standing {
            Standing::Reigning(it) => {
                let mut it = it.clone();
                if is_hasty {
                    it.acknowledged = vec![u64::MAX; group.majority()];
                }
                if is_hasty || MORE.iter().any(|mistake| scheme.has(*mistake)) {
                    it.listed = 0;
                }
                if scheme.has(Mistake::MarkerIgnored) {
                    it.marker.clone_from(told);
                }
                Standing::Reigning(it)
            }
            other => other.clone(),
        };
        let unseen = |standing: &Standing| match standing {
            Standing::Reigning(it) => {
                let mut it = it.clone();
                it.marker.clone_from(told);
                it.id = marker.id.clone().into_bytes();
                Standing::Reigning(it)
            }
            other => other.clone(),
        };
        let mut before = mistaken(first);
        let mut behind = mistaken(second);
        if scheme.has(Mistake::NoCheck) {
            before = unseen(&before);
            behind = unseen(&behind);
        }
        history::weigh(group, marker, &before, &behind)
    }

    /// Hears what a server says about its history, and what the master does.
    pub(crate) fn hear(
        &mut self,
        scheme: &Scheme,
        index: usize,
        server: &History,
        master: &History,
    ) {
        let Some((marker, ..)) = &self.marker else {
            return;
        };
        let mut said = server.clone();
        let mut master = master.clone();
        let mut marker = marker.clone();
        match scheme.mistake {
            Some(Mistake::CopyIsWitness) => said.former = master.former.clone(),
            Some(Mistake::AnyUptime | Mistake::AllAcknowledgeAnyUptime) => {
                said.uptime = Duration::MAX;
            }
            Some(Mistake::FormerByAddress) => {
                // The first master's address.
                if let Some(former) = marker.former.as_mut().filter(|it| it.run_id == "1") {
                    if index == 0 {
                        former.run_id.clone_from(&said.run_id);
                    }
                }
            }
            Some(Mistake::FormerNotCompared) if server.run_id == master.run_id => {
                let former = marker.former.as_ref().map(|former| former.id.clone());
                said.former = former.map(|id| (id, 0));
                master.former.clone_from(&said.former);
            }
            _ => {}
        }
        let max_ttl = Duration::from_millis(u64::from(scheme.ttl) * TICK);
        let skew = ticks(scheme.assumed_skew);
        let testimony = Testimony::of(&said, &master, &marker, max_ttl, skew);
        self.proof.hear(&said, testimony);
        if scheme.has(Mistake::WitnessCountsTwice) && testimony == Testimony::Own {
            said.run_id.push('b');
            self.proof.hear(&said, testimony);
        }
    }

    pub(crate) fn is_proven(&self, scheme: &Scheme) -> bool {
        let group = match scheme.mistake {
            // One witness is enough of a group without replicas, whatever the group.
            Some(Mistake::OneWitness | Mistake::AllAcknowledgeAnyUptime) => Replicas(1),
            _ => scheme.group(),
        };
        self.is_to_prove() && self.proof.is_complete(group)
    }
}

/// Does the vote count as that of who holds the lock by its clock? Who resumes it does not.
fn is_of_holder(scheme: &Scheme, sent: Sent) -> bool {
    match sent.command {
        Command::Keep { is_resumed, .. } => !is_resumed || scheme.has(Mistake::ResumedIsReclaimed),
        _ => false,
    }
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Lock,
    /// For longer, of the lock that it holds.
    Extend,
    /// For the lock that it held, by its token.
    Resume,
}

/// An attempt to get the lock, to extend it, or to resume it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub(crate) token: u8,
    pub(crate) at: u8,
    pub(crate) verb: Verb,
}

/// A lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) token: u8,
    pub(crate) until: u8,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    pub(crate) session: Option<Session>,
    pub(crate) attempt: Option<Attempt>,
    pub(crate) held: Option<Held>,
    /// The token of the lock that it held last.
    pub(crate) last: Option<u8>,
}

impl Client {
    /// A vote on the present attempt is decided. Returns the counter of a lock that is
    /// held with it.
    pub(crate) fn voted(&mut self, scheme: &Scheme, now: u8, vote: &Counted) -> Option<u64> {
        let attempt = self.attempt?;
        let (token, verb) = match vote.sent.command {
            Command::Claim { token, .. } => (token, Verb::Lock),
            Command::Keep {
                token,
                is_resumed: false,
                ..
            } => (token, Verb::Extend),
            Command::Keep { token, .. } => (token, Verb::Resume),
            _ => return None,
        };
        if (token, verb, vote.sent.at) != (attempt.token, attempt.verb, attempt.at) {
            return None;
        }
        self.attempt = None;
        let held = self.held.filter(|held| held.token == token);
        let is_valid = verb != Verb::Extend || held.is_some();
        if !vote.counts || !is_valid || now >= attempt.at + scheme.ttl {
            return None;
        }
        let until = (attempt.at + scheme.ttl).max(held.map_or(0, |held| held.until));
        self.held = Some(Held { token, until });
        self.last = Some(token);
        (verb == Verb::Lock).then_some(vote.counter)
    }
}
