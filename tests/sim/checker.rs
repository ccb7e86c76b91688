//! Checks a history against the library's guarantees. It knows tokens, true times and the commands
//! that the nodes ran, and nothing of the code under test.
//!
//! | | |
//! |---|---|
//! | M | at no true time do two clients hold one resource, each in its `[granted, valid_until)`; |
//! | | readers hold it beside readers, and permits beside other permits |
//! | F | a grant requested after another grant has the larger fencing token; no two are equal |
//! | F | a reader's is at least that of any writer before it, and below that of any writer after |
//! | V | a majority of servers keeps the key for as long as the client believes it valid |
//! | O | only a command with its token, from the client that drew it, changes a key |
//! | O | or a forced release by a client that inspected the lock, which ends its guarantees |
//! | C | every counted vote is the reply of this node to this request, and counts once |
//! | Q | without faults, a waiter with a place is served before any call that began later |
//! | W | without faults, a released lock for which somebody waits is held again at once |
//! | S | without faults, readers are neither refused nor queued while there are only readers |
//! | D | an operation returns by its deadline |
//! | A | the operations of each register have an order: see `register/order.rs` |
//! | T | all sides of a transaction commit, once, or none does, and all come to their end |
//! | L | when the faults are over, every waiting thread gets the lock |
//! | L | and registers can be read, if a majority of the nodes has a vote |
//! | L | no key outlives its ttl; reachable nodes keep no key of a released lock |
//! | L | no late command sets the key of an ended lock, if its client could have prevented that |
//! | R | unanswered commands and pending releases are bounded, and none is left at the end |
//! | P | nothing panics |

mod command;
mod conclusion;
mod observation;
mod order;
mod owner;

pub(crate) use command::{Command, Execution, Keeping, Kept, Kind, Name, hex, name};
pub(crate) use order::{Place, Taking};
pub(crate) use owner::Credit;

use crate::register::{History, Ledger};
use order::Order;
use owner::Owner;
use redlatch_protocol::engine::{Share, quorum};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The guarantees. The letters are those of the table above.
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
    /// Q.
    Order,
    /// W.
    WakeUp,
    /// S.
    Sharing,
    /// A.
    Agreement,
    /// T.
    Atomicity,
    /// D.
    Deadline,
    /// L, of clients that wait, or read.
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
    /// When the client began to request it.
    pub(crate) asked: u64,
    pub(crate) now: u64,
    pub(crate) until: u64,
    /// The fencing token.
    pub(crate) fence: Option<u64>,
    /// The share of it, if not all of it is held.
    pub(crate) share: Option<Share>,
}

/// Can these not be held at the same time?
fn excludes(one: Option<Share>, other: Option<Share>) -> bool {
    match (one, other) {
        (Some(Share::Reader), Some(Share::Reader)) => false,
        (Some(Share::Permit { number: one, .. }), Some(Share::Permit { number: other, .. })) => {
            one == other
        }
        _ => true,
    }
}

/// One resource that a client believed to hold.
#[derive(Debug)]
struct Hold {
    resource: u64,
    token: Name,
    from: u64,
    until: u64,
    share: Option<Share>,
}

/// For how long a lock is held at least that should be on every node.
const LONG: u64 = 50_000_000;

/// The observations, and the violations.
#[derive(Debug)]
pub(crate) struct Checker {
    /// How many servers are a majority of the configured nodes.
    quorum: usize,
    nodes: usize,
    owners: BTreeMap<Name, Owner>,
    holds: Vec<Hold>,
    /// Grants with fencing tokens, by resource.
    fences: Vec<(u64, Grant)>,
    /// The locks that each client has inspected.
    seen: BTreeSet<((usize, u64), Name)>,
    /// Clients that got an unsolicited error, and from which node.
    unsolicited_errors: BTreeSet<((usize, u64), usize)>,
    /// Clients that died: their keys stay until the ttl has passed.
    dead: BTreeSet<(usize, u64)>,
    pub(crate) order: Order,
    /// The operations of registers.
    pub(crate) registers: History,
    /// What the disks of the sides of transactions have.
    pub(crate) transactions: Rc<RefCell<Ledger>>,
    /// For how many locks nodes have given different permits.
    pub(crate) split_permits: u64,
    /// How many exclusive locks were held for a while without faults, and how many of them were not
    /// on all nodes at the end.
    pub(crate) held: (u64, u64),
    pub(crate) violations: Vec<(Invariant, String)>,
}

impl Checker {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            quorum: quorum(nodes),
            nodes,
            owners: BTreeMap::new(),
            holds: Vec::new(),
            fences: Vec::new(),
            seen: BTreeSet::new(),
            unsolicited_errors: BTreeSet::new(),
            dead: BTreeSet::new(),
            order: Order::default(),
            registers: History::default(),
            transactions: Rc::default(),
            split_permits: 0,
            held: (0, 0),
            violations: Vec::new(),
        }
    }

    pub(crate) fn report_violation(&mut self, invariant: Invariant, text: String) {
        self.violations.push((invariant, text));
    }

    /// A client has drawn a token for an attempt.
    pub(crate) fn drawn(&mut self, client: (usize, u64), token: Name) {
        self.owners.insert(token, Owner::new(client));
    }

    /// A program of another kind holds a lock from now on.
    pub(crate) fn held_by_foreigner(&mut self, resource: u64, token: Name, now: u64, until: u64) {
        if let Some(owner) = self.owners.get_mut(&token) {
            owner.holds.push(self.holds.len());
            self.holds.push(Hold {
                resource,
                token,
                from: now,
                until,
                share: None,
            });
        }
    }

    /// A client believes from now on that it holds a lock of these resources.
    pub(crate) fn granted(&mut self, resources: &[u64], grant: &Grant) {
        let Grant {
            token,
            now,
            until,
            fence,
            share,
            ..
        } = *grant;
        if let Some(Share::Permit { of, number }) = share {
            if number.is_none_or(|number| number >= of) {
                let text = format!("{grant:?} is none of them");
                self.report_violation(Invariant::MutualExclusion, text);
            }
            self.owners
                .entry(token)
                .and_modify(|owner| owner.permit = number);
        }
        for resource in resources {
            self.fences.extend(fence.map(|_| (*resource, *grant)));
            let Some(owner) = self.owners.get_mut(&token).filter(|owner| !owner.is_void) else {
                continue;
            };
            owner.holds.push(self.holds.len());
            self.holds.push(Hold {
                resource: *resource,
                token,
                from: now,
                until,
                share,
            });
        }
        self.expect_kept(token, until);
    }

    /// A client believes that it holds its lock until then.
    pub(crate) fn extended(&mut self, token: Name, until: u64) {
        if self.owners.get(&token).is_some_and(|owner| owner.is_void) {
            return;
        }
        self.change(token, |hold| hold.until = until);
        self.expect_kept(token, until);
    }

    fn change(&mut self, token: Name, change: impl Fn(&mut Hold)) {
        let Some(owner) = self.owners.get(&token) else {
            return;
        };
        owner
            .holds
            .iter()
            .for_each(|index| change(&mut self.holds[*index]));
    }

    /// A client believes that it holds a lock until then: a majority of nodes must keep it.
    fn expect_kept(&mut self, token: Name, until: u64) {
        let owner = self.owners.get(&token);
        let is_void = owner.is_some_and(|owner| owner.is_void);
        let keepers = owner.map_or(0, |owner| owner.keepers(until));
        if !is_void && keepers < self.quorum {
            let text = format!("{token:?} is valid until {until}, and {keepers} nodes keep it");
            self.report_violation(Invariant::Validity, text);
        }
    }

    /// A client does not use its lock any more.
    pub(crate) fn left(&mut self, token: Name, now: u64) {
        let owner = self
            .owners
            .get(&token)
            .filter(|_| self.order.soon.is_some());
        let hold = owner.and_then(|owner| self.holds.get(*owner.holds.first()?));
        let is_long = |hold: &&Hold| hold.share.is_none() && now > hold.from + LONG;
        if let (Some(owner), Some(_)) = (owner, hold.filter(is_long)) {
            self.held.0 += 1;
            self.held.1 += u64::from(owner.keepers(now) < self.nodes);
        }
        self.change(token, |hold| hold.until = hold.until.min(now));
    }

    /// Until when does a client believe that it holds this lock? Zero if none does.
    pub(crate) fn held_until(&self, token: Name) -> u64 {
        let hold = self
            .owners
            .get(&token)
            .and_then(|owner| owner.holds.first());
        hold.map_or(0, |hold| self.holds[*hold].until)
    }

    /// The permit that a client was granted.
    pub(crate) fn permit(&self, token: Name) -> Option<u32> {
        self.owners.get(&token)?.permit
    }

    /// The client's clock stopped: it believes for longer that it holds its locks.
    pub(crate) fn client_clock_stopped(&mut self, client: (usize, u64), now: u64, pause: u64) {
        for hold in self.holds.iter_mut().filter(|hold| hold.until > now) {
            if self
                .owners
                .get(&hold.token)
                .is_some_and(|owner| owner.client == client)
            {
                hold.until += pause;
            }
        }
    }

    /// A client got an unsolicited error. An error does not say which command it is the reply to,
    /// so from now on refusals of other commands may be counted, until a reply comes that does say
    /// so.
    pub(crate) fn note_unsolicited_error(&mut self, client: (usize, u64), node: usize) {
        self.unsolicited_errors.insert((client, node));
    }

    /// An attempt failed, or a lock was released: its key must be removed.
    pub(crate) fn over(&mut self, token: Name) {
        if let Some(owner) = self.owners.get_mut(&token) {
            owner.is_over = true;
        }
    }

    /// A key that no client can remove before its ttl has passed: a request arrived after its
    /// removal, on a connection that its client had closed; or a node refuses permanently to remove
    /// the key, or has lost the removal in a crash.
    pub(crate) fn allow_leftover(&mut self, token: Name) {
        if let Some(owner) = self.owners.get_mut(&token) {
            owner.is_excused = true;
        }
    }

    pub(crate) fn died(&mut self, client: (usize, u64), now: u64) {
        for hold in &mut self.holds {
            if self
                .owners
                .get(&hold.token)
                .is_some_and(|owner| owner.client == client)
            {
                hold.until = hold.until.min(now);
            }
        }
        self.dead.insert(client);
    }

    /// Should this key be gone after all releases have reached all nodes?
    pub(crate) fn is_left_over(&self, token: Name) -> bool {
        self.owners.get(&token).is_none_or(|owner| {
            owner.is_over && !owner.is_excused && !self.dead.contains(&owner.client)
        })
    }
}
