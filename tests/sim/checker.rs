//! Holds a history to what is promised. It knows tokens, true times and what the nodes did; of the
//! code under test it knows nothing.
//!
//! | | |
//! |---|---|
//! | M | no two clients are inside `[granted, valid_until)` of one resource at one true time |
//! | F | a grant asked for after another was given has the larger fencing token; no two are equal |
//! | V | a majority of servers has promised to keep the key for as long as it is believed valid |
//! | O | no key is changed but by a command that names its token, from the client that drew it |
//! | O | or by force, from a client that has seen the lock; its holder is promised nothing then |
//! | C | every vote that is counted is an answer that this node gave to this question, once |
//! | D | an operation returns by its deadline |
//! | L | when the faults are over, whoever waits gets the lock |
//! | L | no key outlives its ttl; of a lock that was given back, reachable nodes keep nothing |
//! | L | nothing takes a lock that is over, if its client could have kept it from arriving |
//! | R | what is unanswered or owed is bounded, and in the end nothing is |
//! | P | nothing panics |

mod command;
mod conclusion;
mod owner;
mod witness;

pub(crate) use command::{Command, Execution, Keeping, Kind, Name, hex, name};

use owner::Owner;
use std::collections::{BTreeMap, BTreeSet};

/// Which promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Invariant {
    /// M.
    MutualExclusion,
    /// F.
    Fencing,
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

/// A lock that a client was granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub(crate) token: Name,
    /// When the client began to ask for it.
    pub(crate) asked: u64,
    pub(crate) now: u64,
    pub(crate) until: u64,
    /// The fencing token.
    pub(crate) fence: Option<u64>,
}

/// One resource that a client believed to hold.
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
    /// Grants with fencing tokens, by resource.
    fences: Vec<(u64, Grant)>,
    /// Which locks each client has looked at.
    seen: BTreeSet<((usize, u64), Name)>,
    /// Clients that were sent an error that answered nothing, and by which node.
    pardons: BTreeSet<((usize, u64), usize)>,
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
            fences: Vec::new(),
            seen: BTreeSet::new(),
            pardons: BTreeSet::new(),
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

    /// A client believes to hold a lock of these resources, unless it says otherwise.
    pub(crate) fn granted(&mut self, resources: &[u64], grant: &Grant) {
        let Grant { token, now, until, fence, .. } = *grant;
        for resource in resources {
            self.fences.extend(fence.map(|_| (*resource, *grant)));
            let Some(owner) = self.owners.get_mut(&token).filter(|owner| !owner.is_void) else {
                continue;
            };
            owner.holds.push(self.holds.len());
            self.holds.push(Hold { resource: *resource, token, from: now, until });
        }
        self.expect_kept(token, until);
    }

    /// A client believes to hold its lock until then.
    pub(crate) fn extended(&mut self, token: Name, until: u64) {
        if self.owners.get(&token).is_some_and(|owner| owner.is_void) {
            return;
        }
        self.change(token, |hold| hold.until = until);
        self.expect_kept(token, until);
    }

    fn change(&mut self, token: Name, change: impl Fn(&mut Hold)) {
        let Some(owner) = self.owners.get(&token) else { return };
        owner.holds.iter().for_each(|index| change(&mut self.holds[*index]));
    }

    /// A lock is believed to be held until then: that many nodes must keep it.
    fn expect_kept(&mut self, token: Name, until: u64) {
        let owner = self.owners.get(&token);
        let is_void = owner.is_some_and(|owner| owner.is_void);
        let keepers = owner.map_or(0, |owner| owner.keepers(until));
        if !is_void && keepers < self.quorum {
            let text = format!("{token:?} is valid until {until}, and {keepers} nodes keep it");
            self.accuse(Invariant::Validity, text);
        }
    }

    /// A client does not use its lock any more.
    pub(crate) fn left(&mut self, token: Name, now: u64) {
        self.change(token, |hold| hold.until = hold.until.min(now));
    }

    /// Until when is this lock believed to be held? Zero if nobody believes so.
    pub(crate) fn held_until(&self, token: Name) -> u64 {
        let hold = self.owners.get(&token).and_then(|owner| owner.holds.first());
        hold.map_or(0, |hold| self.holds[*hold].until)
    }

    /// The client's clock stood still: what it holds looks good to it for longer.
    pub(crate) fn stood_still(&mut self, client: (usize, u64), now: u64, pause: u64) {
        for hold in self.holds.iter_mut().filter(|hold| hold.until > now) {
            if self.owners.get(&hold.token).is_some_and(|owner| owner.client == client) {
                hold.until += pause;
            }
        }
    }

    /// A client is sent an error that it had not asked for. An error does not say which command it
    /// answers, so from now on refusals may be counted that are another command's, until a reply
    /// comes that does say so.
    pub(crate) fn pardon(&mut self, client: (usize, u64), node: usize) {
        self.pardons.insert((client, node));
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

    /// Should this key be gone, when everything has been given back and every node told?
    pub(crate) fn is_left_over(&self, token: Name) -> bool {
        self.owners.get(&token).is_none_or(|owner| {
            owner.is_over && !owner.is_excused && !self.dead.contains(&owner.client)
        })
    }
}
