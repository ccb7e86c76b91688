//! Readers of one client that take one share of a lock together.

use super::Acquisition;
use crate::backend::{EventRecorder, Start};
use crate::clock::{self, Time};
use crate::core::{Granted, ShareMember};
use crate::engine::{HeldLock, Share, Ttl};
use crate::error::Error;
use crate::guard::LockGuard;
use crate::wait_queue::Joined;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A reader that has entered a share, and may have to wait for it.
pub(super) struct Reader {
    pub(super) member: ShareMember,
    began: Time,
}

/// A reader that asks the nodes.
pub(super) struct AskingReader {
    pub(super) start: Start,
    /// Others have the share with it. `None` if it takes one that no other reader of this client
    /// has.
    member: Option<ShareMember>,
}

impl Acquisition<'_> {
    /// Takes part in a share that another thread takes or has taken with the same settings, or
    /// takes one in which others can take part.
    pub(super) fn acquire_joint(
        &self,
        kind: &Arc<[u8]>,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<LockGuard>, Error> {
        let reader = match self.enter_share(kind)? {
            ControlFlow::Continue(reader) => reader,
            ControlFlow::Break(guard) => return Ok(Some(guard)),
        };
        let queues = &self.core.joint_shares.queues;
        let joined = self.join(queues, reader.member.queue_name());
        let mut reader = match self.start_reader(reader, joined)? {
            ControlFlow::Continue(reader) => reader,
            ControlFlow::Break(guard) => return Ok(guard),
        };
        let backend = &self.core.backend;
        let result = backend.acquire(&self.spec, &mut reader.start, recorder);
        self.conclude_reader(reader, result)
    }

    /// Enters the latest share of this kind. Breaks with a guard if the nodes have granted it.
    pub(super) fn enter_share(
        &self,
        kind: &Arc<[u8]>,
    ) -> Result<ControlFlow<LockGuard, Reader>, Error> {
        let began = clock::now();
        let least = self.spec.min_validity;
        let member = ShareMember::enter(self.core, kind, began, least);
        let granted = member.usable(began, least);
        let reader = Reader { member, began };
        match granted {
            Some(granted) => self
                .guard_of_reader(reader, granted)
                .map(ControlFlow::Break),
            None => Ok(ControlFlow::Continue(reader)),
        }
    }

    /// How a reader begins that has stood in the queue of its share. Breaks if it has the share, or
    /// if the deadline has passed.
    pub(super) fn start_reader(
        &self,
        reader: Reader,
        joined: Joined,
    ) -> Result<ControlFlow<Option<LockGuard>, AskingReader>, Error> {
        let head = match joined {
            Joined::Head(head, _) => head,
            Joined::NotQueued | Joined::HeldByThisThread => {
                return Ok(ControlFlow::Continue(AskingReader::alone()));
            }
            Joined::TimedOut => return Ok(ControlFlow::Break(None)),
            Joined::Cancelled => return Err(Error::Cancelled),
        };
        if self.spec.call.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let granted = reader.member.usable(clock::now(), self.spec.min_validity);
        if let Some(granted) = granted {
            drop(head); // The next one has it too.
            let guard = self.guard_of_reader(reader, granted)?;
            return Ok(ControlFlow::Break(Some(guard)));
        }
        if reader.member.is_granted() {
            // It was lost, or less of it is left than this thread needs.
            drop((reader, head));
            return Ok(ControlFlow::Continue(AskingReader::alone()));
        }
        let start = Start {
            head: Some(head),
            ..Start::default()
        };
        Ok(ControlFlow::Continue(AskingReader {
            start,
            member: Some(reader.member),
        }))
    }

    /// The result of a reader to which the backend has answered so. After it the next one in the
    /// queue of the share is its head, and finds the share with this guard.
    pub(super) fn conclude_reader(
        &self,
        reader: AskingReader,
        result: Result<Option<HeldLock>, Error>,
    ) -> Result<Option<LockGuard>, Error> {
        // In this order: a member that gets nothing leaves after the next one has become the head.
        let AskingReader { mut member, start } = reader;
        let mut guard = self.conclude(None, result)?;
        if let Some(guard) = &mut guard {
            if let Some(member) = member.take() {
                guard.share_with(member);
            }
        }
        drop(start);
        Ok(guard)
    }

    fn guard_of_reader(&self, reader: Reader, granted: Granted) -> Result<LockGuard, Error> {
        let Self { core, spec } = self;
        let Reader { member, began } = reader;
        let mut guard = LockGuard::of_member(core, member, granted, began, spec.max_hold);
        guard.note_taker(spec.thread);
        if spec.keep_alive {
            guard.kept_by_others()
        } else {
            Ok(guard)
        }
    }

    /// What two requests have in common that can take one share together: the lock, and all
    /// settings that show on the nodes or in how it is extended. `None` for requests that take one
    /// alone: permits have numbers, a lock that stays taken after its release does so for its own
    /// reasons, and the call that a callback belongs to may be the one that asks for the share.
    pub(super) fn kind_of_share(&self) -> Option<Arc<[u8]>> {
        let spec = &self.spec;
        let attributes = spec.attributes.as_ref()?;
        if attributes.share != Some(Share::Reader)
            || !spec.hold_at_least.is_zero()
            || self.core.events.is_in_callback()
        {
            return None;
        }
        let max_hold = spec
            .max_hold
            .map_or([u8::MAX; 16], |it| it.as_nanos().to_le_bytes());
        let fence = attributes.fence.map_or(0, Ttl::as_millis).to_le_bytes();
        let ttl = spec.ttl.as_millis().to_le_bytes();
        let key_length = spec.key.len().to_le_bytes();
        let is_kept = [u8::from(spec.keep_alive)];
        // One that asks for much validity may ask the nodes for longer than others have to wait.
        let least = spec.min_validity.as_nanos().to_le_bytes();
        // The key comes first: see `JointShares::waiting_since`.
        let parts: [&[u8]; 8] = [
            &key_length,
            &spec.key,
            &max_hold,
            &fence,
            &ttl,
            &least,
            &is_kept,
            &attributes.owner,
        ];
        Some(parts.concat().into())
    }
}

impl AskingReader {
    fn alone() -> Self {
        Self {
            start: Start::default(),
            member: None,
        }
    }
}
