//! Readers of one client that take one share of a lock together.

use super::LockClient;
use super::acquire::{Terms, Wanted};
use super::enqueue::Place;
use super::event_recorder::EventRecorder;
use super::request::RequestSettings;
use crate::clock::{self, Time};
use crate::core::{Granted, Member};
use crate::engine::{Share, Ttl};
use crate::error::Error;
use crate::guard::LockGuard;
use crate::wait_queue::Joined;
use std::sync::Arc;

impl LockClient {
    /// Takes part in a share that another thread takes or has taken with the same settings, or
    /// takes one in which others can take part.
    pub(super) fn take_jointly(
        &self,
        wanted: &Wanted<'_>,
        terms: &Terms<'_>,
        kind: &Arc<[u8]>,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<LockGuard>, Error> {
        let began = clock::now();
        let member = Member::enter(&self.core, kind, began, wanted.least);
        if let Some(granted) = member.usable(began, wanted.least) {
            return self.guard_of_member(member, granted, terms, began);
        }
        let (queues, round) = (&self.core.joint_shares.queues, self.core.rules.node_timeout);
        let head = match queues.join(member.queue_name(), terms.wait, round, terms.call.own()) {
            Joined::Head(head, _) => head,
            Joined::NotQueued | Joined::HeldByThisThread => {
                drop(member);
                return self.take_alone(wanted, terms, Place::default(), recorder);
            }
            Joined::TimedOut => return Ok(None),
            Joined::Cancelled => return Err(Error::Cancelled),
        };
        if terms.call.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some(granted) = member.usable(clock::now(), wanted.least) {
            drop(head); // The next one has it too.
            return self.guard_of_member(member, granted, terms, began);
        }
        if member.is_granted() {
            // It was lost, or less of it is left than this thread needs.
            drop((member, head));
            return self.take_alone(wanted, terms, Place::default(), recorder);
        }
        let place = Place { head: Some(head), ..Place::default() };
        let (head, (outcome, last)) = self.ask(wanted, terms, place, recorder)?;
        let guard = self.settle(wanted, terms, None, outcome, last)?;
        let guard = guard.map(|mut guard| {
            guard.share_with(member);
            guard
        });
        drop(head);
        Ok(guard)
    }

    fn guard_of_member(
        &self,
        member: Member,
        granted: Granted,
        &Terms { settings, .. }: &Terms<'_>,
        began: Time,
    ) -> Result<Option<LockGuard>, Error> {
        let max_hold = self.core.max_hold(settings.max_hold);
        let guard = LockGuard::of_member(&self.core, member, granted, began, max_hold);
        if settings.keep_alive { guard.kept_with_others() } else { Ok(guard) }.map(Some)
    }
}

/// What two requests have in common that can take one share together: the lock, and all settings
/// that show on the nodes or in how it is extended. `None` for requests that take one alone:
/// permits have numbers, and a lock that stays taken after its release does so for its own reasons.
pub(super) fn kind_of_share(wanted: &Wanted<'_>, settings: &RequestSettings) -> Option<Arc<[u8]>> {
    let attributes = wanted.attributes?;
    if attributes.share != Some(Share::Reader) || !settings.hold_at_least.is_zero() {
        return None;
    }
    let max_hold = settings.max_hold.map_or([u8::MAX; 16], |it| it.as_nanos().to_le_bytes());
    let fence = attributes.fence.map_or(0, Ttl::as_millis).to_le_bytes();
    let ttl = wanted.ttl.as_millis().to_le_bytes();
    let key_length = wanted.key.len().to_le_bytes();
    let is_kept = [u8::from(settings.keep_alive)];
    // One that asks for much validity may ask the nodes for longer than others have to wait.
    let least = wanted.least.as_nanos().to_le_bytes();
    let parts: [&[u8]; 8] =
        [&max_hold, &fence, &ttl, &least, &is_kept, &key_length, wanted.key, &attributes.owner];
    Some(parts.concat().into())
}
