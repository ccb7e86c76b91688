//! What a group is asked about its reign, and when: at each greeting, and behind the votes that are
//! written. `trust::reign` judges the answers.

use super::Session;
use super::trust::LeastUptime;
use crate::engine::{Command, Question, ReignQuestion, ReignStep, Request};
use crate::node::command::{Form, NoReply};
use crate::node::flight::InFlight;
use crate::node::group::{MARKER, Reign};
use crate::node::{NodeError, SharedRequest};
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

impl Session {
    /// Asks for the reign, on a connection that was just greeted. Votes that are written behind
    /// that are checked as all others are.
    pub(super) fn greet_group(&mut self, now: Time) {
        let Some(options) = self.options.group.clone() else {
            return;
        };
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
            epoch: self.search.epoch,
            nonce: nonce.into(),
            last: String::from_utf8_lossy(marker).into(),
            is_vouched: options.replicas.is_some(),
        };
        self.ask_reign(now, step);
        self.trust.group.is_unchecked = options.replicas.is_some();
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
            step,
        });
        let request = Request::in_no_round(now, command).into();
        let form = self.connection.scripts.form(now, &request, false);
        self.flight.push(now, None, request, form);
    }

    /// Adapts what is written to a group, and notes that a question must follow it: behind other
    /// requests only so that the next vote need not begin with a greeting, or so that a quarantine
    /// can begin. An extension sets the key again while nobody else can have got the lock.
    pub(super) fn note_vote(&mut self, now: Time, request: &mut SharedRequest, is_awaited: bool) {
        let Some(options) = &self.options.group else {
            return;
        };
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
                    keep.reclaims = reclaims;
                }
            });
        }
    }

    /// Asks in whose reign the votes were given that are about to be written, behind them.
    pub(super) fn seal(&mut self) {
        if let Some(now) = self.flight.latest() {
            self.trust.group.is_unchecked = false;
            self.question(now);
        }
    }

    fn question(&mut self, now: Time) {
        let Some(options) = self.options.group.clone() else {
            return;
        };
        let reign = self.trust.group.reign.as_ref();
        let is_due = reign.is_none_or(|reign| reign.is_to_vouch(&options, now));
        if let Some(replicas) = options.majority().filter(|_| is_due) {
            // An extension may write nothing, because the key lives longer anyway.
            if let Some(nonce) = self.nonce() {
                self.ask_reign(
                    now,
                    ReignStep::Touch {
                        run_id: self.run(),
                        nonce,
                    },
                );
            }
            // Not for as long as a round lasts: the votes wait for the answer behind it.
            let millis = (self.options.node_timeout.as_millis() as u64 / 4).max(1);
            self.ask_reign(now, ReignStep::Wait { replicas, millis });
        }
        self.ask_reign(now, ReignStep::Check);
    }

    /// Notes that a question must follow a vote that is sent again.
    pub(super) fn note_again(&mut self, command: &InFlight) {
        let is_vote = command.ticket.is_some() && command.request.is_vote();
        self.trust.group.is_unchecked |= self.options.group.is_some() && is_vote;
    }

    /// In a group, another server may be the master, now or soon: the node is looked for anew.
    pub(super) fn of_group(&self, why: NoReply) -> NoReply {
        match why {
            NoReply::Failed(NodeError::Server(error)) if self.options.group.is_some() => {
                NoReply::Failed(NodeError::in_group(error))
            }
            why => why,
        }
    }

    /// Must an idle connection be greeted again before the next vote counts? One that is being made
    /// is greeted anyway.
    pub(super) fn greet_again(&mut self, now: Time) {
        let Some(options) = self.options.group.clone() else {
            return;
        };
        let is_idle = self.is_ready() && self.flight.is_empty();
        let reign = self.trust.group.reign.as_ref();
        if is_idle && reign.is_some_and(|reign| reign.is_stale_in(options.max_ttl, now)) {
            self.closed(now, NodeError::ReignChanged);
        }
    }
}
