//! The clients: what they send, and which votes they count. What an answer about a reign means, the
//! library's own rule decides (`Reign`), or one that is changed by a mistake.

use crate::node::{Answer, Command, Held, at, ticks};
use crate::scheme::{Mistake, Scheme};
use redlatch_protocol::node::{Checked, GroupOptions, NodeError, Reign, ReignAnswer};
use std::collections::VecDeque;
use std::time::Duration;

/// A command that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sent {
    pub(crate) command: Command,
    pub(crate) at: u8,
}

/// A connection to a server, and what is known on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Session {
    pub(crate) server: usize,
    pub(crate) run: u8,
    /// When the failover authority was asked.
    named_at: u8,
    /// What was written and is not carried out, and what was carried out and is not read.
    pub(crate) sent: VecDeque<Sent>,
    pub(crate) answered: VecDeque<(Sent, Answer)>,
    pub(crate) reign: Option<Reign>,
    /// The marker that was told last, for mistakes.
    marker: Vec<u8>,
    /// Votes that wait for the answer to the check behind them.
    unchecked: Vec<(Sent, bool)>,
    /// Since when the reign is known by the mistakes that know no marker.
    known_since: Option<u8>,
    /// The last check was answered well, of the mistake that checks first.
    is_checked: bool,
}

impl Session {
    pub(crate) fn new(server: usize, run: u8, named_at: u8) -> Self {
        Self {
            server,
            run,
            named_at,
            sent: VecDeque::new(),
            answered: VecDeque::new(),
            reign: None,
            marker: Vec::new(),
            unchecked: Vec::new(),
            known_since: None,
            is_checked: false,
        }
    }

    /// Do new grants count, or extensions?
    pub(crate) fn is_old(&self, scheme: &Scheme, now: u8, is_extension: bool) -> bool {
        let Some(reign) = &self.reign else {
            return false;
        };
        let options = options(scheme);
        let is_hasty = scheme.has(Mistake::ExtensionAtOnce) || scheme.has(Mistake::ReclaimAtOnce);
        match scheme.mistake {
            Some(Mistake::NoQuarantine) => true,
            Some(Mistake::CountedByWitness | Mistake::CountedFromLastHeard) => {
                let wanted = scheme.bound + if is_extension { 0 } else { scheme.ttl };
                self.known_since.is_none_or(|since| now >= since + wanted)
            }
            _ if is_extension => is_hasty || reign.grace(&options, at(now)).is_none(),
            _ => reign.age(at(now)) >= options.max_ttl + options.bound,
        }
    }

    /// Must it be greeted again before the next vote counts?
    pub(crate) fn is_stale(&self, scheme: &Scheme, now: u8) -> bool {
        let reign = self.reign.as_ref();
        reign.is_some_and(|reign| reign.is_stale_in(session_options(scheme).max_ttl, at(now)))
    }

    /// Does an extension set a key that is gone?
    pub(crate) fn reclaims(&self, scheme: &Scheme, now: u8) -> bool {
        let may = self.is_old(scheme, now, true) && !self.is_old(scheme, now, false);
        may && !scheme.has(Mistake::ExtensionAtOnce)
    }

    /// Writes a vote, and the question behind it.
    pub(crate) fn vote(&mut self, scheme: &Scheme, now: u8, command: Command) {
        let commands = match scheme.mistake {
            Some(Mistake::NoCheck) => vec![command],
            Some(Mistake::CheckBefore) => vec![Command::Check, command],
            _ => vec![command, Command::Check],
        };
        self.sent.extend(
            commands
                .into_iter()
                .map(|command| Sent { command, at: now }),
        );
    }

    /// Takes an answer. Returns the votes that are decided with it. An error closes the session.
    pub(crate) fn told(
        &mut self,
        scheme: &Scheme,
        now: u8,
        sent: Sent,
        answer: &Answer,
        known: &mut Known,
    ) -> Result<Vec<(Sent, bool)>, NodeError> {
        let mut counted = Vec::new();
        match (sent.command, answer) {
            (Command::Greet { .. }, Answer::Reign(answer)) => {
                let is_late = scheme.has(Mistake::NamedBeforeTheBound);
                let used_for = if is_late { scheme.ttl } else { scheme.bound };
                let options = GroupOptions {
                    named_within: ticks(used_for),
                    ..options(scheme)
                };
                let is_old = Reign::is_named_too_long_ago(&options, at(self.named_at), at(now));
                if is_old && !scheme.has(Mistake::NamedLongAgo) {
                    return Err(NodeError::ReignChanged);
                }
                let reign = Reign::greeted(&options, at(now), at(sent.at), answer)?;
                self.marker = marker_of(answer);
                self.known_since = known.greeted(scheme, now, self.run, id_of(&self.marker));
                self.reign = Some(reign);
            }
            (Command::Claim { .. } | Command::Keep { .. }, Answer::Vote(granted)) => {
                let counts = *granted && self.is_old(scheme, now, is_of_holder(scheme, sent));
                match scheme.mistake {
                    Some(Mistake::NoCheck) => counted.push((sent, counts)),
                    Some(Mistake::CheckBefore) => {
                        counted.push((sent, counts && self.is_checked));
                    }
                    _ => self.unchecked.push((sent, counts)),
                }
            }
            (Command::Check, Answer::Reign(answer)) => {
                known.heard_at = now;
                counted = self.checked(scheme, sent, answer)?;
            }
            (Command::Release { .. }, _) => {}
            _ if sent.command.is_vote() => self.unchecked.push((sent, false)),
            _ => return Err(NodeError::ReignChanged),
        }
        Ok(counted)
    }

    fn checked(
        &mut self,
        scheme: &Scheme,
        sent: Sent,
        answer: &ReignAnswer,
    ) -> Result<Vec<(Sent, bool)>, NodeError> {
        let reign = self.reign.as_mut().ok_or(NodeError::ReignChanged)?;
        let ReignAnswer::Checked(answer) = answer else {
            return Err(NodeError::HidesReign);
        };
        let answer = mistaken(scheme, &self.marker, answer);
        let unchecked = std::mem::take(&mut self.unchecked);
        reign.check(&session_options(scheme), at(sent.at), &answer)?;
        self.is_checked = true;
        Ok(unchecked)
    }
}

/// What a client remembers of a group beyond its connections, which only mistakes use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    reign: Option<(u8, Vec<u8>)>,
    heard_at: u8,
}

impl Known {
    /// Since when a reign is known that was just greeted, without a marker. `None`: for ever.
    fn greeted(&mut self, scheme: &Scheme, now: u8, run: u8, id: &[u8]) -> Option<u8> {
        let is_used =
            scheme.has(Mistake::CountedByWitness) || scheme.has(Mistake::CountedFromLastHeard);
        if !is_used {
            return None;
        }
        let reign = Some((run, id.to_vec()));
        let has_changed = self.reign.is_some() && self.reign != reign;
        let heard_at = std::mem::replace(&mut self.heard_at, now);
        self.reign = reign;
        let is_last = scheme.has(Mistake::CountedFromLastHeard);
        has_changed.then_some(if is_last { heard_at } else { now })
    }
}

fn marker_of(answer: &ReignAnswer) -> Vec<u8> {
    if let ReignAnswer::Greeted { marker, .. } = answer {
        marker.clone()
    } else {
        Vec::new()
    }
}

/// The id of the reign that a marker is of.
fn id_of(marker: &[u8]) -> &[u8] {
    marker
        .split(|byte| *byte == b' ')
        .nth(2)
        .expect("a marker has six words")
}

pub(crate) fn nonce_of(reign: &Reign) -> u8 {
    let digits = std::str::from_utf8(reign.nonce()).expect("digits");
    digits.parse().expect("a nonce of the search")
}

/// What clients assume of a group.
fn options(scheme: &Scheme) -> GroupOptions {
    let bound = if scheme.has(Mistake::NoBound) {
        0
    } else {
        scheme.bound
    };
    GroupOptions {
        tag: Default::default(),
        bound: ticks(bound),
        named_within: ticks(bound),
        max_ttl: ticks(scheme.ttl),
        replicas: None,
        skew: Duration::ZERO,
    }
}

/// The same for what concerns idle sessions.
fn session_options(scheme: &Scheme) -> GroupOptions {
    let options = options(scheme);
    let is_patient = scheme.has(Mistake::NotGreetedAgain);
    GroupOptions {
        max_ttl: if is_patient {
            Duration::MAX
        } else {
            options.max_ttl
        },
        ..options
    }
}

/// What a client with this mistake takes an answer for.
fn mistaken(scheme: &Scheme, marker: &[u8], answer: &Checked) -> Checked {
    let mut answer = answer.clone();
    match scheme.mistake {
        Some(
            Mistake::MarkerIgnored
            | Mistake::NoQuarantine
            | Mistake::CountedByWitness
            | Mistake::CountedFromLastHeard,
        ) => answer.marker = Some(marker.to_vec()),
        Some(Mistake::MarkerByRun) => answer.id = id_of(marker).to_vec(),
        _ => {}
    }
    answer
}

/// Does the vote count as that of who holds the lock by its clock? Who resumes it does not.
fn is_of_holder(scheme: &Scheme, sent: Sent) -> bool {
    match sent.command {
        Command::Keep {
            is_resumed: true, ..
        } => scheme.has(Mistake::ResumedIsReclaimed) || scheme.has(Mistake::ResumedInQuarantine),
        Command::Keep { .. } => true,
        _ => false,
    }
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    Lock,
    /// For longer, of the lock that it holds.
    Extend,
    /// For the lock that it held, by its token.
    Resume,
}

/// An attempt to get the lock, to extend it, or to resume it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Attempt {
    pub(crate) token: u8,
    pub(crate) at: u8,
    pub(crate) verb: Verb,
    /// By group: no vote was asked for, or it is waited for, or does not count, or counts.
    pub(crate) votes: Vec<Vote>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Vote {
    None,
    Open,
    No,
    Yes,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    /// By group.
    pub(crate) sessions: Vec<Option<Session>>,
    /// The epoch that the failover authority has told before the connection is made, and when.
    pub(crate) named: Vec<Option<(u8, u8)>>,
    pub(crate) known: Vec<Known>,
    pub(crate) attempt: Option<Attempt>,
    pub(crate) held: Option<Held>,
    /// The lock that it held last, where it resumes locks.
    pub(crate) last: Option<Held>,
}

impl Client {
    pub(crate) fn new(groups: usize) -> Self {
        let sessions = vec![None; groups];
        let known = vec![Known::default(); groups];
        Self {
            sessions,
            named: vec![None; groups],
            known,
            attempt: None,
            held: None,
            last: None,
        }
    }

    /// A vote of this group on the present attempt.
    pub(crate) fn voted(&mut self, group: usize, sent: Sent, counts: bool) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        let (token, verb) = match sent.command {
            Command::Claim { token } => (token, Verb::Lock),
            Command::Keep {
                token,
                is_resumed: false,
                ..
            } => (token, Verb::Extend),
            Command::Keep { token, .. } => (token, Verb::Resume),
            _ => return,
        };
        let is_this = (token, verb, sent.at) == (attempt.token, attempt.verb, attempt.at);
        if is_this && attempt.votes[group] == Vote::Open {
            attempt.votes[group] = if counts { Vote::Yes } else { Vote::No };
        }
    }

    /// A connection has ended: what it has not answered does not count.
    pub(crate) fn close(&mut self, group: usize) -> Option<Session> {
        if let Some(attempt) = &mut self.attempt {
            if attempt.votes[group] == Vote::Open {
                attempt.votes[group] = Vote::No;
            }
        }
        self.sessions[group].take()
    }

    /// Ends the attempt if it is decided.
    pub(crate) fn decide(&mut self, scheme: &Scheme, now: u8) {
        let Some(attempt) = &self.attempt else { return };
        let count = |wanted| attempt.votes.iter().filter(|vote| **vote == wanted).count();
        let is_granted = count(Vote::Yes) * 2 > scheme.groups;
        let in_time = now <= attempt.at + scheme.attempt && now < attempt.at + scheme.ttl;
        let Attempt {
            token, at, verb, ..
        } = *attempt;
        let held = self.held.filter(|held| held.token == token);
        if is_granted && in_time && (verb != Verb::Extend || held.is_some()) {
            let ttl = match verb {
                Verb::Lock => scheme.ttl,
                Verb::Extend | Verb::Resume => scheme.ttl,
            };
            let until = (at + ttl).max(held.map_or(0, |held| held.until));
            self.held = (until > now).then_some(Held { token, until });
            if scheme.faults.resumptions > 0 {
                self.last = self.held.or(self.last);
            }
        }
        if is_granted || count(Vote::Open) == 0 {
            self.attempt = None;
        }
    }
}
