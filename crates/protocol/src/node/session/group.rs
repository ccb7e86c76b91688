//! What a group is asked about its reign, and when: at each greeting, and behind the votes that are
//! written. `trust::reign` judges the answers.

mod proof;
mod search;

use super::trust::LeastUptime;
use super::{Answer, Session};
use crate::engine::{Acknowledgements, Command, Question, ReignQuestion, ReignStep, Request};
use crate::node::command::{Form, NoReply};
use crate::node::flight::InFlight;
use crate::node::group::history::Standing;
use crate::node::group::{MARKER, Reign};
use crate::node::{GroupOptions, GroupStatus, NodeError, SharedRequest};
use crate::time::Time;
use proof::Inquiry;
use search::Search;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The reign of a connection to a replicated group. Empty for a plain node.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// As greeted on this connection.
    pub(super) reign: Option<Reign>,
    /// Was a vote written since the last question?
    pub(super) is_unchecked: bool,
    /// Votes that wait for the answer to the question behind them.
    pub(super) unchecked: VecDeque<(Answer, SharedRequest)>,
    /// What was answered to the question that replicas acknowledge, since the last check, or why
    /// there is no such answer.
    pub(super) first: Option<Result<Standing, NodeError>>,
    /// Votes that were checked, and wait until the clock is set from which the reign counts: when
    /// nobody waits, nobody writes the question or reads the answer.
    pub(super) unconfirmed: VecDeque<(Answer, SharedRequest)>,
    /// Why no vote of this connection counts, if it stays in use even so.
    pub(super) refusal: Option<NodeError>,
    /// Since when each server that was greeted was a replica, and heard its master.
    pub(super) replica_since: Option<Time>,
    /// Since when the master lists more replicas than are named.
    pub(super) crowded_since: Option<Time>,
    /// The reign that was greeted last, on whatever connection.
    pub(super) last: Option<Reign>,
    /// For how long it is known, and how long its grants do not count, if it is another one than
    /// before and that was not reported yet.
    pub(super) new_reign: Option<(Duration, Duration)>,
    pub(super) search: Search,
    pub(super) inquiry: Inquiry,
}

impl Group {
    /// A connection begins: what the last one had shown goes, and what is known of the group stays.
    pub(super) fn forget(&mut self) {
        let before = std::mem::take(self);
        self.replica_since = before.replica_since;
        self.crowded_since = before.crowded_since;
        self.last = before.last;
        self.search = before.search;
    }

    /// Keeps a vote until the question behind it is answered.
    pub(super) fn keep(&mut self, answer: Answer, request: SharedRequest) {
        self.unchecked.push_back((answer, request));
    }

    pub(super) fn status(&self, now: Time) -> Option<GroupStatus> {
        self.reign.as_ref().map(|reign| reign.status(now))
    }

    /// Takes for how long a reign is known that was greeted after another one, and how long its
    /// grants do not count.
    pub(super) fn take_new_reign(&mut self) -> Option<(Duration, Duration)> {
        self.new_reign.take()
    }

    /// The earlier reign that is known of the group.
    pub(super) fn former(&self) -> Option<String> {
        self.reign.as_ref().and_then(Reign::former)
    }

    /// How old the reign is at least, once it was greeted: no age as long as no vote of it was
    /// acknowledged, however long that takes.
    pub(super) fn age(&self, now: Time) -> Option<Duration> {
        self.reign.as_ref().map(|reign| reign.age(now))
    }
}

impl Session {
    /// Asks for the reign, on a connection that was just greeted. Votes that are written behind
    /// that are checked as all others are.
    pub(super) fn greet_group(&mut self, now: Time, options: &GroupOptions) {
        self.trust.group.forget();
        self.trust.uptime = LeastUptime::aged(now, Duration::ZERO);
        if self.trust.group.replica_since.is_some() {
            let question = Request::in_no_round(now, Command::Ask(Question::Replication));
            self.flight.push(now, None, question.into(), Form::Digest);
        }
        let nonce = format!("{:016x}{:x}", self.options.seed, self.flight.next_number());
        let marker = self
            .trust
            .group
            .last
            .as_ref()
            .map_or(&[][..], Reign::marker);
        let step = ReignStep::Greet {
            run_id: self.run(),
            epoch: self.trust.group.search.epoch,
            nonce: nonce.into(),
            last: String::from_utf8_lossy(marker).into(),
        };
        self.ask_reign(now, step);
        // Its quarantine can begin without a vote.
        self.trust.group.is_unchecked = options.waits_for_replicas();
    }

    /// What all clients of the group assume, if its replicas acknowledge each vote.
    pub(super) fn acknowledgements(&self) -> Option<Acknowledgements> {
        let options = self.options.group.as_ref();
        options.and_then(|options| options.acknowledgements())
    }

    /// The run of the server; of one that names none, a word in its place.
    pub(super) fn run(&self) -> Arc<str> {
        self.connection
            .run_id
            .clone()
            .unwrap_or_else(|| Arc::from("0"))
    }

    /// The nonce of the marker that was greeted.
    pub(super) fn nonce(&self) -> Option<Arc<str>> {
        self.trust
            .group
            .reign
            .as_ref()
            .map(|reign| String::from_utf8_lossy(reign.nonce()).into())
    }

    pub(super) fn ask_reign(&mut self, now: Time, step: ReignStep) {
        let command = Command::Reign(ReignQuestion {
            key: Arc::from(MARKER),
            acknowledged: self.acknowledgements(),
            step,
        });
        let request = Request::in_no_round(now, command).into();
        let form = self.connection.scripts.form(now, &request, false);
        self.flight.push(now, None, request, form);
    }

    /// Adapts what is written to a group, and notes that a question must follow it: behind other
    /// requests only so that the next vote need not begin with a greeting, or so that a quarantine
    /// can begin. An extension sets the key again while nobody else can have got the lock.
    pub(super) fn note_vote(
        &mut self,
        now: Time,
        request: &mut SharedRequest,
        is_awaited: bool,
        options: &GroupOptions,
    ) {
        let group = &mut self.trust.group;
        let reign = group.reign.as_ref();
        let is_open = reign
            .is_some_and(|reign| !reign.is_timed() || reign.is_stale_in(options.max_ttl / 2, now));
        group.is_unchecked |= is_awaited && (request.is_vote() || is_open);
        if matches!(request.command, Command::Keep(_)) {
            let is_reclaimed = reign.is_some_and(|reign| reign.grace(options, now).is_none());
            let reclaims = is_reclaimed && self.quarantine_left(now).is_some();
            request.change(|request| {
                if let Command::Keep(keep) = &mut request.command {
                    keep.reclaims = reclaims && !keep.is_resumed;
                }
            });
        }
    }

    /// Asks in whose reign the votes were given that are about to be written, if any are, behind
    /// them.
    pub(super) fn seal(&mut self, options: &GroupOptions) {
        if let Some(now) = self
            .flight
            .latest()
            .filter(|_| self.trust.group.is_unchecked)
        {
            self.trust.group.is_unchecked = false;
            self.question(now, options);
        }
    }

    /// Asks behind the votes that are written.
    pub(super) fn question(&mut self, now: Time, options: &GroupOptions) {
        // Not for as long as a round lasts: the votes wait for the answer behind it.
        for step in options.questions(self.options.node_timeout / 4) {
            self.ask_reign(now, step);
        }
    }

    /// The connection is over, and the votes fail whose reign will not be known.
    pub(super) fn lose_reign(&mut self, now: Time, problem: &NodeError) {
        self.trust.group.search.closed();
        self.lose_unchecked(now, problem);
    }

    /// Notes that a question must follow a vote that is sent again.
    pub(super) fn note_again(&mut self, command: &InFlight) {
        let is_vote = command.ticket.is_some() && command.request.is_vote();
        self.trust.group.is_unchecked |= is_vote;
    }

    /// What an error means in a group, where another server may be the master, now or soon.
    pub(super) fn of_group(&mut self, why: NoReply) -> NoReply {
        match why {
            NoReply::Failed(NodeError::Server(error)) => {
                self.trust.group.search.refused(&error);
                NoReply::Failed(NodeError::in_group(error))
            }
            why => why,
        }
    }

    /// Must an idle connection be greeted again before the next vote counts? One that is being made
    /// is greeted anyway.
    pub(super) fn greet_again(&mut self, now: Time, options: &GroupOptions) {
        let is_idle = self.is_ready() && self.flight.is_empty();
        let reign = self.trust.group.reign.as_ref();
        if is_idle && reign.is_some_and(|reign| reign.is_stale_in(options.max_ttl, now)) {
            self.closed(now, NodeError::ReignChanged);
        }
    }
}
