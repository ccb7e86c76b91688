//! Holds a history to what is promised. It knows tokens, true times and what the nodes did; of the
//! code under test it knows nothing.
//!
//! | | |
//! |---|---|
//! | M | no two clients are inside `[granted, valid_until)` of one resource at one true time |
//! | L | once the faults are over, whoever waits gets the lock; no key outlives its ttl; nothing is left of a lock that was given back |
//! | D | an operation returns by its deadline |
//! | O | nobody deletes another's key |

use std::collections::{BTreeMap, BTreeSet};

/// Which promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Invariant {
    MutualExclusion,
    Liveness,
    Deadline,
    Ownership,
}

/// The bytes of a token.
pub(crate) type Token = Vec<u8>;

/// One lock that a client believed to hold.
#[derive(Debug)]
struct Hold {
    resource: u64,
    token: Token,
    from: u64,
    until: u64,
}

/// Who drew a token, and what has become of it.
#[derive(Debug)]
struct Owner {
    client: (usize, u64),
    /// Did it happen to it what no client can mend before the ttl has passed?
    is_excused: bool,
    /// Has it been given back, or was it never granted?
    is_over: bool,
}

/// What was seen, and what was wrong with it.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    owners: BTreeMap<Token, Owner>,
    holds: Vec<Hold>,
    /// Clients that died: what they held stays until its ttl has passed.
    dead: BTreeSet<(usize, u64)>,
    pub(crate) violations: Vec<(Invariant, String)>,
    pub(crate) grants: u64,
    pub(crate) extensions: u64,
}

impl Checker {
    pub(crate) fn accuse(&mut self, invariant: Invariant, text: String) {
        self.violations.push((invariant, text));
    }

    /// A client has drawn a token for an attempt.
    pub(crate) fn drawn(&mut self, client: (usize, u64), token: &[u8]) {
        let owner = Owner { client, is_excused: false, is_over: false };
        self.owners.insert(token.to_vec(), owner);
    }

    /// A client believes to hold a lock from now until then, unless it says otherwise.
    pub(crate) fn granted(&mut self, resource: u64, token: &[u8], now: u64, until: u64) {
        self.grants += 1;
        self.holds.push(Hold { resource, token: token.to_vec(), from: now, until });
    }

    /// A client believes to hold its lock until then.
    pub(crate) fn extended(&mut self, token: &[u8], until: u64) {
        self.extensions += 1;
        if let Some(hold) = self.holds.iter_mut().rev().find(|hold| hold.token == token) {
            hold.until = until;
        }
    }

    /// A client does not use its lock any more.
    pub(crate) fn left(&mut self, token: &[u8], now: u64) {
        if let Some(hold) = self.holds.iter_mut().rev().find(|hold| hold.token == token) {
            hold.until = hold.until.min(now);
        }
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
    pub(crate) fn over(&mut self, token: &[u8]) {
        if let Some(owner) = self.owners.get_mut(token) {
            owner.is_over = true;
        }
    }

    /// A request arrived behind what was to take it back, on a connection that its client had
    /// closed. Only the ttl can help.
    pub(crate) fn excuse(&mut self, token: &[u8]) {
        if let Some(owner) = self.owners.get_mut(token) {
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

    /// A node executed a client's command, and this is what the key held before and after.
    pub(crate) fn executed(
        &mut self,
        client: (usize, u64),
        before: Option<&[u8]>,
        after: Option<&[u8]>,
        what: &str,
    ) {
        let Some(token) = before.filter(|_| before != after) else { return };
        if self.owners.get(token).is_none_or(|owner| owner.client != client) {
            self.accuse(
                Invariant::Ownership,
                format!("client {client:?} deleted another's: {what}"),
            );
        }
    }

    /// A key that is there when everything has been given back and every node told.
    pub(crate) fn left_over(&mut self, node: usize, token: &[u8]) {
        let Some(owner) = self.owners.get(token) else {
            return self.accuse(Invariant::Liveness, format!("node {node} has a key of nobody's"));
        };
        if owner.is_over && !owner.is_excused && !self.dead.contains(&owner.client) {
            let text = format!("node {node} keeps {} of {:?}", hex(token), owner.client);
            self.accuse(Invariant::Liveness, text);
        }
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
                    found.push(format!(
                        "resource {}: {} until {} and {} from {}",
                        hold.resource,
                        hex(&other.token),
                        other.until,
                        hex(&hold.token),
                        hold.from
                    ));
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

/// The beginning of a token, as the trace shows it.
pub(crate) fn hex(token: &[u8]) -> String {
    token.iter().take(3).map(|byte| format!("{byte:02x}")).collect()
}
