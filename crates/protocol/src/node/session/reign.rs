//! The votes of a replicated group: each waits until the question behind it is answered, and counts
//! if the group is in the reign that was greeted. `node::group` has the rule.

use super::server::LeastUptime;
use super::{Answer, Session};
use crate::engine::{Command, Question, Reign as Ask, ReignStep, Request, Vote};
use crate::node::command::{Form, NoReply, NodeReply};
use crate::node::flight::InFlight;
use crate::node::group::{Checked, MARKER, Reign, ReignAnswer};
use crate::node::wrong_server::WrongServer;
use crate::node::{GroupStatus, NodeError, Phase, SharedRequest};
use crate::time::Time;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

/// How long a name may lead to a former master after a failover: providers let resolvers keep the
/// address for a few seconds, and for a minute at most.
const NAME_MOVES_WITHIN: Duration = Duration::from_secs(60);

/// The reign of a connection to a replicated group. Empty for a plain node.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// As greeted on this connection.
    reign: Option<Reign>,
    /// Was a vote written since the last question?
    pub(super) is_unchecked: bool,
    /// Votes that wait for the answer to the question behind them.
    unchecked: VecDeque<(Answer, SharedRequest)>,
    /// Votes that were checked, and wait until the clock is set from which the reign counts. None
    /// counts before that; but when nobody waits, nobody writes the question or reads the answer.
    unconfirmed: VecDeque<(Answer, SharedRequest)>,
    /// When the last command was sent that has certainly written something, of those before the
    /// next answer.
    wrote_at: Option<Time>,
    /// The epoch of the failover authority that has named the address, and when it was asked last.
    pub(super) epoch: u64,
    pub(super) located_at: Option<Time>,
    /// The place that was named, and by whom, in words.
    announced: Option<Arc<str>>,
    /// Since when each server that was greeted was a replica, and heard its master.
    replica_since: Option<Time>,
    /// The reign that was greeted last, on whatever connection.
    last: Option<Reign>,
    /// Is it another one than before, and was that not reported yet?
    is_new: bool,
}

impl Group {
    pub(super) fn status(&self, now: Time) -> Option<GroupStatus> {
        self.reign.as_ref().map(|reign| reign.status(now))
    }

    /// The earlier reign that is known of the group.
    pub(super) fn former(&self) -> Option<String> {
        self.reign.as_ref().and_then(Reign::former)
    }

    /// How old the reign is at least, once it was greeted: no age as long as nobody has vouched for
    /// it, however long that takes.
    pub(super) fn age(&self, now: Time) -> Option<Duration> {
        self.reign.as_ref().map(|reign| reign.age(now))
    }
}

impl Request {
    /// Is the answer a vote on a lock, which counts in the reign that was greeted only? A removal
    /// may be carried out in any: what it does not reach ends before the quarantine does.
    fn is_vote(&self) -> bool {
        matches!(
            self.command,
            Command::Claim(_) | Command::Keep(_) | Command::Fence(_)
        )
    }
}

impl Session {
    /// Notes the epoch of the failover authority that has named the address, and since when it was
    /// asked. Call it before [`connected`](Self::connected).
    pub fn located(&mut self, epoch: u64, asked_at: Time) {
        self.group.epoch = self.group.epoch.max(epoch);
        self.group.located_at = Some(asked_at);
    }

    /// Notes which place was named, and by whom. Call it before [`connected`](Self::connected).
    pub fn announced(&mut self, place: Arc<str>) {
        self.group.announced = Some(place);
    }

    /// The error of a connection that is being made to a group, or was lost, with the place that
    /// was meant: the URL does not have it.
    pub(super) fn of_announced(&self, problem: NodeError) -> NodeError {
        if self.options.group.is_none() || !self.is_found() {
            return problem;
        }
        let announced = self.group.announced.as_ref();
        let place = announced
            .map(|place| format!("{place}: "))
            .unwrap_or_default();
        let awaited = if announced.is_some() {
            "; if it is down, its failover is awaited, else the announced address cannot be \
             reached from here"
        } else {
            "; if it is down, its failover is awaited"
        };
        match problem {
            NodeError::Unreachable { kind, text } => NodeError::Unreachable {
                kind,
                text: format!("{place}{text}{awaited}"),
            },
            NodeError::TimedOut(
                phase @ (Phase::Connecting | Phase::Securing | Phase::Greeting),
            ) => {
                let text = format!("{place}timed out {phase}{awaited}");
                NodeError::Unreachable {
                    kind: ErrorKind::TimedOut,
                    text,
                }
            }
            NodeError::Disconnected(text) => NodeError::Disconnected(format!("{place}{text}")),
            problem => problem,
        }
    }

    /// Asks for the reign, on a connection that was just greeted. Votes that are written behind
    /// that are checked as all others are.
    pub(super) fn greet_group(&mut self, now: Time) {
        let Some(options) = self.options.group.clone() else {
            return;
        };
        let before = std::mem::take(&mut self.group);
        self.group = Group {
            epoch: before.epoch,
            located_at: before.located_at,
            announced: before.announced,
            replica_since: before.replica_since,
            last: before.last,
            ..Group::default()
        };
        self.server.least_uptime = LeastUptime::aged(now, Duration::ZERO);
        if self.group.replica_since.is_some() {
            let question = Request::in_no_round(now, Command::Ask(Question::Replication));
            self.flight.push(now, None, question.into(), Form::Digest);
        }
        let nonce = format!("{:016x}{:x}", self.options.seed, self.flight.next_number());
        let marker = self.group.last.as_ref().map_or(&[][..], Reign::marker);
        let step = ReignStep::Greet {
            run_id: self.run(),
            epoch: self.group.epoch,
            nonce: nonce.into(),
            last: String::from_utf8_lossy(marker).into(),
            is_vouched: options.replicas.is_some(),
        };
        self.ask_reign(now, step);
        self.group.is_unchecked = options.replicas.is_some();
    }

    /// The run of the server; of one that names none, a word in its place.
    fn run(&self) -> Arc<str> {
        self.connection
            .run_id
            .clone()
            .unwrap_or_else(|| Arc::from("0"))
    }

    /// The nonce of the marker that was greeted.
    fn nonce(&self) -> Option<Arc<str>> {
        self.group
            .reign
            .as_ref()
            .map(|reign| String::from_utf8_lossy(reign.nonce()).into())
    }

    fn ask_reign(&mut self, now: Time, step: ReignStep) {
        let command = Command::Reign(Ask {
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
        let is_open =
            |reign: &Reign| !reign.is_timed() || reign.is_stale_in(options.max_ttl / 2, now);
        let is_due = request.is_vote() || self.group.reign.as_ref().is_some_and(is_open);
        self.group.is_unchecked |= is_awaited && is_due;
        let is_reclaimed = |reign: &Reign| reign.grace(options, now).is_none();
        if matches!(request.command, Command::Keep(_)) {
            let is_reclaimed = self.group.reign.as_ref().is_some_and(is_reclaimed);
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
            self.group.is_unchecked = false;
            self.question(now);
        }
    }

    fn question(&mut self, now: Time) {
        let Some(options) = self.options.group.clone() else {
            return;
        };
        let is_due = |reign: &Reign| reign.is_to_vouch(&options, now);
        let replicas = options
            .majority()
            .filter(|_| self.group.reign.as_ref().is_none_or(is_due));
        if let Some(replicas) = replicas {
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

    /// For how long a reign is known, and how long its grants do not count, if it was greeted after
    /// another one, and that was not reported yet.
    pub(in crate::node) fn take_new_reign(&mut self, now: Time) -> Option<(Duration, Duration)> {
        let reign = self.group.reign.as_ref().filter(|_| self.group.is_new)?;
        let age = if reign.is_adopted() {
            Duration::ZERO
        } else {
            reign.age(now)
        };
        self.group.is_new = false;
        Some((age, self.quarantine_left(now).unwrap_or_default()))
    }

    /// What the answer to a vote of a group is worth at this time.
    pub(super) fn count_in_reign(
        &mut self,
        now: Time,
        request: &Request,
        sent_at: Time,
        reply: &mut NodeReply,
    ) {
        let Some(options) = &self.options.group else {
            return;
        };
        if reply.vote == Vote::Granted && matches!(request.command, Command::Claim(_)) {
            self.group.wrote_at = Some(sent_at);
        }
        let Some(reign) = &self.group.reign else {
            return;
        };
        let is_held = matches!(request.command, Command::Keep(_) | Command::Remove(_));
        // In the quarantine, who holds a lock may not find it, and nobody else can have got it.
        let is_missing = is_held && reply.vote == Vote::Refused;
        let grace = reign.grace(options, now).filter(|_| request.is_vote());
        // A new lock counts only at the end of the quarantine, whatever else is in its way.
        let left = match grace {
            Some(grace) if is_held => Some(grace),
            Some(grace) => Some(self.quarantine_left(now).unwrap_or(grace)),
            None => self.quarantine_left(now).filter(|_| is_missing),
        };
        if let Some(left) = left {
            reply.vote = Vote::Failed;
            reply.problem = Some(NodeError::Quarantined { left });
        }
    }

    /// Notes that a question must follow a vote that is sent again.
    pub(super) fn note_again(&mut self, command: &InFlight) {
        let is_vote = command.ticket.is_some() && command.request.is_vote();
        self.group.is_unchecked |= self.options.group.is_some() && is_vote;
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

    /// Delivers an answer, or keeps it until the question behind it is answered.
    pub(super) fn deliver(&mut self, answer: Answer, request: &SharedRequest) {
        if self.options.group.is_some() && request.is_vote() {
            self.group.unchecked.push_back((answer, request.clone()));
        } else {
            self.answers.push_back(answer);
        }
    }

    /// Takes the answer to a question about the reign. An error means that the connection must be
    /// closed: the node is greeted again.
    pub(super) fn reigned(
        &mut self,
        now: Time,
        command: &InFlight,
        step: &ReignStep,
        read: Result<NodeReply, NoReply>,
    ) -> Result<(), NodeError> {
        let said = match read {
            Ok(read) => read.said,
            Err(NoReply::UnknownScript) if self.other_form(now, command).is_some() => {
                self.ask_reign(now, step.clone());
                return Ok(());
            }
            // It says nothing itself: the question behind it does.
            Err(NoReply::Failed(_))
                if matches!(step, ReignStep::Touch { .. } | ReignStep::Wait { .. }) =>
            {
                return Ok(());
            }
            Err(why) => match self.of_group(why) {
                NoReply::Failed(problem) | NoReply::Nonsense(problem) => return Err(problem),
                NoReply::UnknownScript => return Err(NodeError::HidesReign),
            },
        };
        let Some(answer) = said.as_ref().and_then(|said| said.get::<ReignAnswer>()) else {
            return Ok(());
        };
        self.connection
            .scripts
            .learn(&command.request, command.form, command.sent_at);
        if let ReignAnswer::Checked(answer) = answer {
            return self.checked((command.sent_at, now), answer);
        }
        if let (ReignStep::Wait { replicas, .. }, ReignAnswer::Acknowledged(count)) = (step, answer)
        {
            // The check behind it cannot tell: for `WAIT` the server writes a question into its
            // replication, so it is ahead of what it was waiting for.
            let wrote_at = self.group.wrote_at.filter(|_| count >= replicas);
            if let (Some(reign), Some(wrote_at)) = (&mut self.group.reign, wrote_at) {
                reign.acknowledged(*count, wrote_at);
            }
            return Ok(());
        }
        if let ReignStep::Touch { nonce, .. } = step {
            // Of another marker, nothing was written.
            let touched = Reign::greeted(now, command.sent_at, answer)?;
            if touched.nonce() == nonce.as_bytes() {
                self.group.wrote_at = Some(command.sent_at);
            }
            return Ok(());
        }
        let reign = match (step, self.group.reign.take()) {
            (ReignStep::Confirm { .. }, Some(known)) => known.confirmed(now, answer)?,
            _ => {
                self.expect_named_lately(now)?;
                self.expect_master_in_time(now, answer)?;
                Reign::greeted(now, command.sent_at, answer)?
            }
        };
        if let ReignStep::Greet {
            is_vouched: true, ..
        } = step
        {
            // It writes in any case.
            self.group.wrote_at = Some(command.sent_at);
        }
        let unconfirmed = self.group.unconfirmed.drain(..).map(|(answer, _)| answer);
        self.answers.extend(unconfirmed);
        self.server.least_uptime = LeastUptime::aged(now, reign.age(now));
        let before = self.group.last.replace(reign.clone());
        self.group.is_new |= before.is_some_and(|before| before.id() != reign.id());
        self.group.reign = Some(reign);
        Ok(())
    }

    /// A replica may be where the master is to be for as long as a failover takes: the name still
    /// leads to the former master, or the replica is about to be promoted. Waiting is in vain if it
    /// goes on beyond that, and the replica hears its master all the time: a failover that is still
    /// to come would have to begin with that master's loss.
    fn expect_master_in_time(&mut self, now: Time, answer: &ReignAnswer) -> Result<(), NodeError> {
        if *answer != ReignAnswer::NotMaster {
            self.group.replica_since = None;
            return Ok(());
        }
        let hears_master = self.connection.examination.hears_master == Some(true);
        let since = self
            .group
            .replica_since
            .filter(|_| hears_master)
            .unwrap_or(now);
        self.group.replica_since = Some(since);
        let longest = self
            .options
            .quarantine
            .unwrap_or_default()
            .max(NAME_MOVES_WITHIN);
        if now.since(since) >= longest {
            return Err(NodeError::WrongServer(WrongServer::Replica));
        }
        Ok(())
    }

    /// Since it was named, the server may have been replaced, and elected again.
    fn expect_named_lately(&self, now: Time) -> Result<(), NodeError> {
        let (Some(options), Some(at)) = (&self.options.group, self.group.located_at) else {
            return Ok(());
        };
        let is_old = Reign::is_named_too_long_ago(options, at, now);
        if is_old {
            Err(NodeError::ReignChanged)
        } else {
            Ok(())
        }
    }

    /// Releases the votes before this check, or fails them.
    fn checked(&mut self, between: (Time, Time), answer: &Checked) -> Result<(), NodeError> {
        let (Some(options), Some(reign)) = (&self.options.group, &mut self.group.reign) else {
            return Ok(());
        };
        match reign.check(options, between, self.group.wrote_at.take(), answer) {
            Ok(()) => {}
            Err(problem @ NodeError::NotVouched { .. }) => {
                self.doubt();
                self.lose_unchecked(between.1, &problem);
                return Ok(());
            }
            Err(problem) => return Err(problem),
        }
        let is_to_confirm = reign.is_to_confirm();
        if let Some(nonce) = self.nonce().filter(|_| is_to_confirm) {
            self.group.unconfirmed.append(&mut self.group.unchecked);
            let step = ReignStep::Confirm {
                run_id: self.run(),
                nonce,
            };
            self.ask_reign(between.1, step);
        } else {
            self.answers
                .extend(self.group.unchecked.drain(..).map(|(answer, _)| answer));
        }
        Ok(())
    }

    /// Fails the votes whose reign is not known, and will not be.
    pub(super) fn lose_unchecked(&mut self, now: Time, problem: &NodeError) {
        let unconfirmed = std::mem::take(&mut self.group.unconfirmed);
        let unchecked = std::mem::take(&mut self.group.unchecked);
        for (answer, request) in unconfirmed.into_iter().chain(unchecked) {
            self.lose(now, Some(answer.ticket), request, problem, true);
        }
    }

    /// Must an idle connection be greeted again before the next vote counts? One that is being made
    /// is greeted anyway.
    pub(super) fn greet_again(&mut self, now: Time) {
        let Some(options) = self.options.group.clone() else {
            return;
        };
        let is_stale = |reign: &Reign| reign.is_stale_in(options.max_ttl, now);
        let is_idle = self.is_ready() && self.flight.is_empty();
        if is_idle && self.group.reign.as_ref().is_some_and(is_stale) {
            self.closed(now, NodeError::ReignChanged);
        }
    }
}
