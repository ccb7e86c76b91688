//! Holds a history to what is promised. It knows tokens, true times and what the nodes did; of the
//! code under test it knows nothing.
//!
//! | | |
//! |---|---|
//! | M | no two clients are inside `[granted, valid_until)` of one resource at one true time |
//! | V | a majority of servers has promised to keep the key for as long as it is believed valid |
//! | O | no key is changed but by a command that names its token, from the client that drew it |
//! | C | every vote that is counted is an answer that this node gave to this question, once |
//! | D | an operation returns by its deadline |
//! | L | when the faults are over, whoever waits gets the lock |
//! | L | no key outlives its ttl; of a lock that was given back, reachable nodes keep nothing |
//! | L | nothing takes a lock that is over, if its client could have kept it from arriving |
//! | R | what is unanswered or owed is bounded, and in the end nothing is |
//! | P | nothing panics |

mod command;
mod owner;

pub(crate) use command::{Command, Execution, Keeping, Kind, Name, hex, name};

use owner::Owner;
use std::collections::{BTreeMap, BTreeSet};

/// Which promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Invariant {
    /// M.
    MutualExclusion,
    /// V.
    Validity,
    /// O.
    Ownership,
    /// C.
    Attribution,
    /// D.
    Deadline,
    /// L, of clients that wait.
    Liveness,
    /// L, of keys that stay.
    Residue,
    /// R.
    Resources,
    /// P.
    Panic,
}

/// One lock that a client believed to hold.
#[derive(Debug)]
struct Hold {
    resource: u64,
    token: Name,
    from: u64,
    until: u64,
}

/// What was seen, and what was wrong with it.
#[derive(Debug)]
pub(crate) struct Checker {
    /// How many servers are a majority of the configured nodes.
    quorum: usize,
    owners: BTreeMap<Name, Owner>,
    holds: Vec<Hold>,
    /// Clients that died: what they held stays until its ttl has passed.
    dead: BTreeSet<(usize, u64)>,
    pub(crate) violations: Vec<(Invariant, String)>,
}

impl Checker {
    pub(crate) fn new(quorum: usize) -> Self {
        Self {
            quorum,
            owners: BTreeMap::new(),
            holds: Vec::new(),
            dead: BTreeSet::new(),
            violations: Vec::new(),
        }
    }

    pub(crate) fn accuse(&mut self, invariant: Invariant, text: String) {
        self.violations.push((invariant, text));
    }

    /// A client has drawn a token for an attempt.
    pub(crate) fn drawn(&mut self, client: (usize, u64), token: Name) {
        self.owners.insert(token, Owner::new(client));
    }

    /// A client believes to hold a lock from now until then, unless it says otherwise.
    pub(crate) fn granted(&mut self, resource: u64, token: Name, now: u64, until: u64) {
        self.holds.push(Hold { resource, token, from: now, until });
        if let Some(owner) = self.owners.get_mut(&token) {
            owner.hold = Some(self.holds.len() - 1);
        }
        self.expect_kept(token, until);
    }

    /// A client believes to hold its lock until then.
    pub(crate) fn extended(&mut self, token: Name, until: u64) {
        if let Some(hold) = self.hold(token) {
            hold.until = until;
        }
        self.expect_kept(token, until);
    }

    fn hold(&mut self, token: Name) -> Option<&mut Hold> {
        let index = self.owners.get(&token)?.hold?;
        self.holds.get_mut(index)
    }

    /// A lock is believed to be held until then: that many nodes must keep it.
    fn expect_kept(&mut self, token: Name, until: u64) {
        let keepers = self.owners.get(&token).map_or(0, |owner| owner.keepers(until));
        if keepers < self.quorum {
            let text = format!("{token:?} is valid until {until}, and {keepers} nodes keep it");
            self.accuse(Invariant::Validity, text);
        }
    }

    /// A client does not use its lock any more.
    pub(crate) fn left(&mut self, token: Name, now: u64) {
        if let Some(hold) = self.hold(token) {
            hold.until = hold.until.min(now);
        }
    }

    /// Until when is this lock believed to be held? Zero if nobody believes so.
    pub(crate) fn held_until(&self, token: Name) -> u64 {
        let hold = self.owners.get(&token).and_then(|owner| self.holds.get(owner.hold?));
        hold.map_or(0, |hold| hold.until)
    }

    /// The client's clock stood still: what it holds looks good to it for longer.
    pub(crate) fn stood_still(&mut self, client: (usize, u64), now: u64, pause: u64) {
        for hold in self.holds.iter_mut().filter(|hold| hold.until > now) {
            if self.owners.get(&hold.token).is_some_and(|owner| owner.client == client) {
                hold.until += pause;
            }
        }
    }

    /// An attempt failed, or a lock was given back: its key is to go.
    pub(crate) fn over(&mut self, token: Name) {
        if let Some(owner) = self.owners.get_mut(&token) {
            owner.is_over = true;
        }
    }

    /// What no client can mend: a request arrived behind what was to take it back, on a connection
    /// that its client had closed; or a node refuses for good to remove it, or has forgotten that
    /// it had. Only the ttl can help.
    pub(crate) fn excuse(&mut self, token: Name) {
        if let Some(owner) = self.owners.get_mut(&token) {
            owner.is_excused = true;
        }
    }

    pub(crate) fn died(&mut self, client: (usize, u64), now: u64) {
        for hold in &mut self.holds {
            if self.owners.get(&hold.token).is_some_and(|owner| owner.client == client) {
                hold.until = hold.until.min(now);
            }
        }
        self.dead.insert(client);
    }

    /// A node executed a client's command about a lock.
    pub(crate) fn executed(&mut self, it: &Execution<'_>) {
        for (before, after) in it.keys {
            let Some((token, kept_until)) = *before else { continue };
            match after {
                Some((now, until)) if *now == token && *until < kept_until => {
                    let text =
                        format!("{token:?} loses time, from {kept_until} to {until}: {it:?}");
                    self.accuse(Invariant::Validity, text);
                }
                Some((now, _)) if *now == token => {}
                _ => self.removed(token, it),
            }
        }
        self.kept(it);
        let owner = it.command.token.and_then(|token| self.owners.get_mut(&token));
        if let (Some(owner), Some(is_granted)) = (owner, it.is_granted) {
            owner.answered(it.node, it.command, is_granted, it.now);
        }
    }

    /// A command took a key away from a lock.
    fn removed(&mut self, token: Name, it: &Execution<'_>) {
        let owner = self.owners.get_mut(&token);
        let is_its = owner.as_ref().is_some_and(|owner| owner.client == it.client);
        if !is_its || it.command.removed() != Some(token) {
            let text = format!("{:?} removed {token:?}, another's: {it:?}", it.client);
            self.accuse(Invariant::Ownership, text);
        } else if let Some(owner) = owner {
            owner.remove(it.node);
            let until = self.held_until(token);
            if until > it.now {
                self.expect_kept(token, until);
            }
        }
    }

    /// A node that has all keys of a lock keeps it for as long as it keeps all of them.
    fn kept(&mut self, it: &Execution<'_>) {
        let first = it.keys.first().and_then(|(_, after)| *after);
        let Some((token, _)) = first else { return };
        let until = |(_, after): &(Keeping, Keeping)| match after {
            Some((other, until)) if *other == token => *until,
            _ => 0,
        };
        let until = it.keys.iter().map(until).min().unwrap_or_default();
        if let Some(owner) = self.owners.get_mut(&token) {
            owner.promise(it.node, until);
        }
    }

    /// A node has carried out what was to take a lock, on a connection that the lock's client could
    /// have had ended. If the lock is over, its key is there for nobody.
    pub(crate) fn expect_wanted(
        &mut self,
        node: usize,
        token: Option<Name>,
        keys: &[(Keeping, Keeping)],
    ) {
        let Some((token, owner)) = token.and_then(|it| Some((it, self.owners.get(&it)?))) else {
            return;
        };
        let has = |keeping: &Keeping| keeping.is_some_and(|(held, _)| held == token);
        let is_planted = keys.iter().any(|(before, after)| has(after) && !has(before));
        if is_planted && owner.is_over && !self.dead.contains(&owner.client) {
            let text = format!("node {node} has {token:?} again, after what took it back");
            self.accuse(Invariant::Residue, text);
        }
    }

    /// A client counts a node's answer to what it asked since then.
    pub(crate) fn credited(
        &mut self,
        (token, kind): (Name, Kind),
        (node, is_granted): (usize, bool),
        since: u64,
    ) {
        let owner = self.owners.get_mut(&token);
        if !owner.is_some_and(|owner| owner.credit(node, kind, is_granted, since)) {
            let text = format!(
                "node {node} never answered {is_granted} to the {kind:?} of {token:?} since {since}"
            );
            self.accuse(Invariant::Attribution, text);
        }
    }

    /// Should this key be gone, when everything has been given back and every node told?
    pub(crate) fn is_left_over(&self, token: Name) -> bool {
        self.owners.get(&token).is_none_or(|owner| {
            owner.is_over && !owner.is_excused && !self.dead.contains(&owner.client)
        })
    }

    /// Looks for two clients that held one lock at one time.
    pub(crate) fn conclude(&mut self) {
        self.holds.retain(|hold| hold.from < hold.until);
        self.holds.sort_by_key(|hold| (hold.resource, hold.from));
        let mut found = Vec::new();
        let mut last: Option<&Hold> = None;
        for hold in &self.holds {
            match last {
                Some(other) if other.resource == hold.resource && hold.from < other.until => {
                    found.push(format!("{other:?} and {hold:?}"));
                    if hold.until > other.until {
                        last = Some(hold);
                    }
                }
                _ => last = Some(hold),
            }
        }
        found.into_iter().for_each(|text| self.accuse(Invariant::MutualExclusion, text));
    }
}
