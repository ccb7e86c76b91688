//! A lock that is held, and the requests about it.

use super::validity::TTL_LIMIT;
use super::{
    Action, LockAttributes, LockId, NodeSet, Removal, Request, Rules, Token, Ttl, attributes,
};
use crate::time::{SharedTime, Time};
use std::sync::Arc;
use std::time::Duration;

/// A lock that was granted.
#[derive(Clone, Debug)]
pub struct HeldLock {
    pub key: Arc<[u8]>,
    /// The token that identifies its holder.
    pub token: Token,
    pub attributes: Option<Arc<LockAttributes>>,
    /// The fencing token, if it is fenced.
    pub fence: Option<u64>,
    /// The end of its validity.
    pub valid_until: Time,
    /// When it was requested, before the first byte was written.
    pub since: Time,
    /// The latest ttl that was sent.
    pub ttl: Ttl,
    /// The longest ttl that was ever sent.
    pub ttl_longest: Ttl,
    /// The nodes that may hold the key.
    pub nodes: NodeSet,
    /// The waiter whose turn it was, if the lock was taken from the nodes' queue: it may still
    /// stand in the queue of some nodes.
    pub waiter: Option<Token>,
    /// Did another client wait for the lock when it was granted?
    pub is_awaited: bool,
    /// Until when the session lives that holds the lock, if one does: the lock ends with it.
    pub session: Option<Arc<SharedTime>>,
}

impl HeldLock {
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        attributes::keys(&self.key, &self.attributes)
    }

    /// The lock as the nodes know it.
    pub fn id(&self) -> LockId {
        LockId {
            key: Arc::clone(&self.key),
            token: self.token,
            attributes: self.attributes.clone(),
        }
    }

    /// The removal of its key, which is worth sending for as long as the key may exist.
    pub(super) fn removal(&self) -> Removal {
        Removal { lock: self.id(), ttl: self.ttl_longest, linger: None, waiter: self.waiter }
    }

    /// A request about this lock, to the nodes that may hold it.
    pub(super) fn request(&self, action: Action, now: Time, rules: &Rules) -> Request {
        Request { nodes: self.nodes, ..Request::to_all(rules, now, action) }
    }

    /// When its key will have expired on every node that applied the latest request in time.
    pub fn expires_at(&self, rules: &Rules) -> Time {
        let margin = self.ttl_longest.as_duration() - rules.drift.validity(self.ttl_longest);
        self.valid_until.after(margin)
    }

    /// A removal that no caller waits for.
    pub fn undo(&self, now: Time, rules: &Rules) -> Request {
        self.undo_after(None, now, rules)
    }

    /// As [`undo`](Self::undo), but the key stays for `linger` from now on, if that is given.
    pub fn undo_after(&self, linger: Option<Ttl>, now: Time, rules: &Rules) -> Request {
        self.request(Action::Undo(Removal { linger, ..self.removal() }), now, rules)
    }

    /// How long the key must stay from now on, so that the lock stays taken for `hold_at_least`
    /// since its request, rounded up to whole milliseconds. `None` if that time has passed.
    pub fn linger(&self, hold_at_least: Duration, now: Time) -> Option<Ttl> {
        let left = hold_at_least.checked_sub(now.since(self.since)).filter(|left| !left.is_zero());
        let rounded_up = left?.saturating_add(Duration::from_nanos(999_999));
        Ttl::from_duration(rounded_up.min(TTL_LIMIT))
    }
}
