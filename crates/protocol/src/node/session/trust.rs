//! When does a node's answer count?
//!
//! The lock's safety rests on this question, and it is answered here alone. Two clients never hold
//! one lock if each vote that counts is what the server says now, of data that it has kept, and if
//! each server has one vote: then any two majorities share a server that has both votes, and it
//! grants the lock to one. The rules, in the order in which an answer meets them:
//!
//! 1. **Order** ([`order`]). A reply belongs to a command by its place alone. It counts if that
//!    place is proven: no error, which may have come unasked, stands before it without a proof
//!    behind that.
//! 2. **Reign** ([`reign`]). The master of a replicated group may have been replaced, and its data
//!    with it. A vote waits for the answer to a question behind it, and counts if the group is
//!    still in the reign that was greeted on this connection. A new lock counts when that reign is
//!    older than any lock of the one before.
//! 3. **Restart**. A server that restarts without its data grants locks that are still held. Its
//!    grants count when it has been up for as long as the longest ttl: then every lock that it lost
//!    has expired on the other nodes too. So it is with a lock that is resumed by its token: whose
//!    it is now, the server may have forgotten. A restart breaks the connection, so each greeting
//!    checks the uptime.
//! 4. **Same server**. The answers of a node that is the same server as an earlier one are no
//!    votes. Either greeting may be the one that shows it, so this is asked when an answer is taken
//!    out of the session.
//! 5. **Withdrawn** (`rounds/withdrawn_votes.rs`). Until its round is decided, a vote is withdrawn
//!    if the connection is lost that it came on, or if its server turns out to be another node's.
//!
//! [`Session::weigh`] applies the first three to each reply to a command, and [`Session::deliver`]
//! has a vote wait for the answer that rule 2 needs; [`Session::weigh_server`] applies the fourth.
//! What then counts is added up in `engine/quorum.rs`, and `engine/validity.rs` says for how long a
//! majority is good. Nothing else decides about it: whoever adds a command gets this judgement with
//! it, and is asked by [`Request::is_vote`] which it is; whoever adds a reason not to count adds a
//! rule here.

mod order;
#[cfg(feature = "groups")]
mod reign;

pub(super) use order::ReplyOrder;

use super::group::Group;
use super::{Answer, Session};
use crate::engine::{Command, Request, Vote};
use crate::node::command::{NoReply, NodeReply};
use crate::node::flight::InFlight;
use crate::node::{Identity, NodeError, SharedRequest};
use crate::resp::Reply;
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// The error of a reported uptime: the time of the start is truncated to whole seconds. A server
/// that started at 10.9 and is asked at 20.0 reports 10.
const UPTIME_GRAIN: Duration = Duration::from_secs(1);

/// A lower bound of a node's uptime. The default is that of a node of which nothing is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LeastUptime {
    /// When the node answered the greeting.
    pub(super) greeted_at: Time,
    /// The lower bound at that time.
    uptime: Duration,
}

impl LeastUptime {
    /// The lower bound at this time.
    fn at(self, now: Time) -> Duration {
        self.uptime.saturating_add(now.since(self.greeted_at))
    }

    /// The lower bound after a greeting with this identity. `before` is the identity of the
    /// previous greeting, and `heard_at` the time of the last reply before this greeting.
    pub(super) fn of(
        now: Time,
        identity: &Identity,
        before: Option<&Identity>,
        heard_at: Time,
    ) -> Self {
        // Without a reported uptime, the bound counts from this greeting.
        let said = identity
            .uptime
            .unwrap_or_default()
            .saturating_sub(UPTIME_GRAIN);
        let is_another = before.is_some_and(|before| {
            before.run_id.is_some() && identity.run_id.is_some() && before.run_id != identity.run_id
        });
        // If this is another server, it replaced the previous one after that one's last reply, so
        // its own uptime counts no further back: its clock may have been set, or it was a replica.
        let most = if is_another {
            now.since(heard_at)
        } else {
            Duration::MAX
        };
        Self {
            greeted_at: now,
            uptime: said.min(most),
        }
    }
}

/// What is known about a node for that question.
#[derive(Debug, Default)]
pub(super) struct Trust {
    /// Of the present connection.
    pub(super) order: ReplyOrder,
    pub(super) uptime: LeastUptime,
    /// Of a replicated group.
    pub(super) group: Group,
    /// The URL of an earlier node that is the same server.
    same_server: Option<Arc<str>>,
}

impl Trust {
    /// A connection begins: no reply on it has proven anything.
    pub(super) fn connected(&mut self) {
        self.order = ReplyOrder::default();
    }

    /// A server has introduced itself. The one before was heard last at `heard_at`.
    pub(super) fn greeted(
        &mut self,
        now: Time,
        identity: &Identity,
        before: Option<&Identity>,
        heard_at: Time,
    ) {
        let heard_at = heard_at.max(self.uptime.greeted_at);
        self.uptime = LeastUptime::of(now, identity, before, heard_at);
    }
}

impl Request {
    /// Is the answer a vote on a lock, which counts in the reign that was greeted only? A removal
    /// may be carried out in any: what it does not reach ends before the quarantine does.
    pub(super) fn is_vote(&self) -> bool {
        match &self.command {
            Command::Claim(_) | Command::Keep(_) | Command::Fence(_) => true,
            Command::Remove(_) | Command::Queue(_) | Command::Ping(_) | Command::Listen(_) => false,
            // Registers are refused on groups, and what only looks gives nothing away.
            Command::Custom(_) => false,
            #[cfg(feature = "diagnostics")]
            Command::Ask(_) => false,
            #[cfg(feature = "groups")]
            Command::Reign(_) => false,
        }
    }
}

impl Session {
    /// Says what the reply to this command is worth when it arrives. Each reply to a command passes
    /// here once, before anything is made of it.
    pub(super) fn weigh(
        &mut self,
        now: Time,
        command: &InFlight,
        reply: &Reply<'_>,
        read: Result<NodeReply, NoReply>,
    ) -> Result<NodeReply, NoReply> {
        let request = &command.request;
        let mut answer = self.weigh_order(request, reply, read)?;
        if let Some(group) = self.options.group.clone() {
            self.weigh_in_reign(now, request, &mut answer, &group);
        }
        self.weigh_restart(now, request, &mut answer);
        Ok(answer)
    }

    /// Delivers an answer at once; a vote of a group when the question behind it is answered.
    pub(super) fn deliver(&mut self, answer: Answer, request: &SharedRequest) {
        if self.options.group.is_some() && request.is_vote() {
            self.trust.group.keep(answer, request.clone());
        } else {
            self.answers.push_back(answer);
        }
    }

    /// Rule 3: a grant counts when the server has kept its data for as long as the longest ttl.
    fn weigh_restart(&self, now: Time, request: &Request, answer: &mut NodeReply) {
        // The key may be of a time to which the server went back: it was removed since, and another
        // client has the lock. Its holder knows by its clock, and who resumes it does not.
        let is_resumed = request.is_resumption() && answer.vote == Vote::Granted;
        if answer.view.is_some() {
            // A place in the queue is kept, and the lock reserved, but not granted.
            answer.problem = self.quarantine(now, request);
        } else if answer.is_new || is_resumed {
            // The counter is reported even if the vote does not count.
            if let Some(quarantine) = self.quarantine(now, request) {
                answer.vote = Vote::Failed;
                answer.problem = Some(quarantine);
            }
        } else if let Some(custom) = request.custom() {
            if let Some(left) = self.quarantine_left(now) {
                answer.said = answer
                    .said
                    .take()
                    .map(|said| custom.in_quarantine(said, left));
            }
        }
    }

    /// Rule 4: the answers of a node that is the same server as an earlier node are not votes.
    pub(super) fn weigh_server(&self, answer: &mut Answer) {
        if let Some(error) = self.same_server() {
            answer.reply.vote = Vote::Failed;
            answer.reply.problem = Some(error);
        }
    }

    /// How long until the node's grants count. `None` if they count now.
    pub(super) fn quarantine_left(&self, now: Time) -> Option<Duration> {
        let wanted = self.options.quarantine?;
        let group = self.options.group.as_ref();
        let reign = group.and_then(|_| self.trust.group.age(now));
        let kept = reign.unwrap_or_else(|| self.trust.uptime.at(now));
        let left = wanted.saturating_sub(kept);
        (!left.is_zero()).then_some(left)
    }

    /// The error of an answer to this request that does not count yet.
    pub(in crate::node) fn quarantine(&self, now: Time, request: &Request) -> Option<NodeError> {
        let left = self
            .quarantine_left(now)
            .filter(|_| !request.counts_in_quarantine());
        left.map(|left| NodeError::Quarantined { left })
    }

    /// Why the replies of this node do not count, if it is the same server as an earlier node.
    pub(in crate::node) fn same_server(&self) -> Option<NodeError> {
        self.trust
            .same_server
            .clone()
            .map(|url| NodeError::SameServer { url })
    }

    /// Does waiting not resolve this error? Two slots of a cluster that are on one server, and have
    /// one vote meanwhile, may part again.
    pub(in crate::node) fn is_lasting(&self, problem: &NodeError) -> bool {
        let may_part = self.options.is_slot() && matches!(problem, NodeError::SameServer { .. });
        problem.is_permanent() && !may_part
    }

    /// Is this node the same server as an earlier one, and stays it?
    pub(in crate::node) fn is_another_by_mistake(&self) -> bool {
        self.same_server()
            .is_some_and(|problem| self.is_lasting(&problem))
    }
}

/// What a greeting has shown about the server of a node that is, or was, the same as another's.
#[derive(Debug)]
pub(in crate::node) struct SameServer {
    pub(in crate::node) error: NodeError,
    /// Did this greeting change it?
    pub(in crate::node) is_news: bool,
    /// Is it over? Then the node's votes may count again, but not in the rounds that are open.
    pub(in crate::node) is_over: bool,
}

impl SameServer {
    /// Compares a node with those before it, after a greeting of any. The `run_id` of a node's last
    /// connection counts until there is a new one: that is the safe side.
    pub(in crate::node) fn find(sessions: &mut [Session], index: usize) -> Option<Self> {
        let run_id = sessions[index].run_id();
        let mut earlier = sessions[..index].iter().filter(|_| run_id.is_some());
        let first = earlier.find(|session| session.run_id() == run_id);
        let url = first.map(|first| Arc::clone(first.name()));
        let before = sessions[index].same_server();
        sessions[index].trust.same_server = url;
        match (before, sessions[index].same_server()) {
            (before, Some(error)) => Some(Self {
                error,
                is_news: before.is_none(),
                is_over: false,
            }),
            (Some(error), None) => Some(Self {
                error,
                is_news: true,
                is_over: true,
            }),
            (None, None) => None,
        }
    }

    /// Are two nodes certainly one server now? Both must be connected: after a lost connection only
    /// a new greeting proves it, and a connection is made only when there is a request to send.
    pub(in crate::node) fn is_certain(sessions: &[Session]) -> bool {
        sessions
            .iter()
            .any(|session| match &session.trust.same_server {
                Some(url) if session.is_another_by_mistake() && session.is_ready() => sessions
                    .iter()
                    .any(|other| other.name() == url && other.is_ready()),
                _ => false,
            })
    }
}
