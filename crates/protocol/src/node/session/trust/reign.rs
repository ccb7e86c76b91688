//! The reign of a replicated group: each vote waits until the question behind it is answered, and
//! counts if the group is in the reign that was greeted. `node::group` has the rule.

use super::LeastUptime;
use crate::engine::{Command, ReignStep, Request, Vote};
use crate::node::command::{NoReply, NodeReply};
use crate::node::flight::InFlight;
use crate::node::group::history::Standing;
use crate::node::group::{Reign, ReignAnswer};
use crate::node::session::Session;
use crate::node::wrong_server::WrongServer;
use crate::node::{GroupOptions, NodeError};
use crate::time::Time;
use std::time::Duration;

/// How long a name may lead to a former master after a failover: providers let resolvers keep the
/// address for a few seconds, and for a minute at most.
const NAME_MOVES_WITHIN: Duration = Duration::from_secs(60);

/// For how long a master may list a replica that has died, or that has come back from another
/// address: `repl-timeout`, a minute by default, and some more.
const LISTED_FOR: Duration = Duration::from_secs(90);

impl LeastUptime {
    /// The lower bound for what is this old now.
    pub(in crate::node::session) fn aged(now: Time, age: Duration) -> Self {
        Self {
            greeted_at: now,
            uptime: age,
        }
    }
}

impl Session {
    /// Rule 2: a vote of a group counts when the reign is old enough for it.
    pub(super) fn weigh_in_reign(
        &mut self,
        now: Time,
        request: &Request,
        reply: &mut NodeReply,
        options: &GroupOptions,
    ) {
        let Some(reign) = &self.trust.group.reign else {
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

    /// Takes the answer to a question about the reign. An error means that the connection must be
    /// closed: the node is greeted again.
    pub(in crate::node::session) fn reigned(
        &mut self,
        now: Time,
        command: &InFlight,
        step: &ReignStep,
        read: Result<NodeReply, NoReply>,
    ) -> Result<(), NodeError> {
        let said = match read {
            Ok(read) => read.said,
            Err(NoReply::UnknownScript) if self.other_form(now, command).is_some() => {
                self.ask_again(now, step);
                return Ok(());
            }
            Err(why) => match self.of_group(why) {
                NoReply::Failed(problem) => return self.not_reigned(step, problem),
                NoReply::Nonsense(problem) => return Err(problem),
                NoReply::UnknownScript => return Err(NodeError::HidesReign),
            },
        };
        let Some(answer) = said.as_ref().and_then(|said| said.get::<ReignAnswer>()) else {
            // The marker is not a text, as that of clients whose votes replicas acknowledge.
            let problem = NodeError::ModeDiffers {
                named: None,
                found: None,
            };
            self.refuse_votes(now, problem);
            return Ok(());
        };
        self.connection
            .scripts
            .learn(&command.request, command.form, command.sent_at);
        match (step, answer) {
            (ReignStep::Check, answer) => self.checked((command.sent_at, now), answer),
            (ReignStep::Wait { .. }, _) => Ok(()),
            (ReignStep::Touch, ReignAnswer::Standing(standing)) => {
                self.trust.group.first = Some(Ok(standing.clone()));
                Ok(())
            }
            _ => match self.greeted_in(now, command, step, answer) {
                Err(problem @ NodeError::ModeDiffers { .. }) => {
                    self.refuse_votes(now, problem);
                    Ok(())
                }
                result => result,
            },
        }
    }

    /// No vote counts on this connection, which stays in use for who may change that: the operator.
    fn refuse_votes(&mut self, now: Time, problem: NodeError) {
        self.lose_unchecked(now, &problem);
        self.problem = Some(problem.clone());
        self.trust.group.refusal = Some(problem);
    }

    /// The answer to a check on a connection on which no reign was greeted.
    fn checked_unseen(&mut self, now: Time, answer: &ReignAnswer) -> Result<(), NodeError> {
        let is_so_still = matches!(answer, ReignAnswer::Standing(Standing::OtherMode(_)));
        match self.trust.group.refusal.clone() {
            Some(problem) if is_so_still => self.refuse_votes(now, problem),
            // Somebody has renewed the marker.
            Some(_) => return Err(NodeError::ReignChanged),
            None => {}
        }
        Ok(())
    }

    /// A question whose script the server does not know is asked in another form. Of several behind
    /// votes, all are, in their order: with the last one.
    fn ask_again(&mut self, now: Time, step: &ReignStep) {
        let group = self.options.group.clone();
        match (step, group) {
            (ReignStep::Touch, _) => {}
            (ReignStep::Check, Some(options)) => self.question(now, &options),
            _ => self.ask_reign(now, step.clone()),
        }
    }

    /// The server has refused a question. An error means that the connection must be closed: what
    /// is in front of the last question behind votes says why those do not count.
    fn not_reigned(&mut self, step: &ReignStep, problem: NodeError) -> Result<(), NodeError> {
        match step {
            ReignStep::Touch => self.trust.group.first = Some(Err(problem)),
            // Without the right to wait. Otherwise the question behind it tells why it has ended.
            ReignStep::Wait { .. } if problem.is_permanent() => {
                self.trust.group.first = Some(Err(problem));
            }
            ReignStep::Wait { .. } => {}
            _ => return Err(problem),
        }
        Ok(())
    }

    /// The group has been greeted, or the time of its reign is known now.
    fn greeted_in(
        &mut self,
        now: Time,
        command: &InFlight,
        step: &ReignStep,
        answer: &ReignAnswer,
    ) -> Result<(), NodeError> {
        let known = self.trust.group.reign.take();
        let reign = match (step, known, answer) {
            (
                ReignStep::Confirm { .. } | ReignStep::Prove { .. },
                Some(mut known),
                ReignAnswer::Standing(standing),
            ) => {
                known.learn(now, standing)?;
                known
            }
            _ => {
                self.expect_named_lately(now)?;
                self.expect_master_in_time(now, answer)?;
                let options = self.options.group.as_ref().ok_or(NodeError::HidesReign)?;
                Reign::greeted(options, now, command.sent_at, answer)?
            }
        };
        let unconfirmed = self
            .trust
            .group
            .unconfirmed
            .drain(..)
            .map(|(answer, _)| answer);
        self.answers.extend(unconfirmed);
        self.trust.uptime = LeastUptime::aged(now, reign.age(now));
        let before = self.trust.group.last.replace(reign.clone());
        let is_new = before.is_some_and(|before| before.id() != reign.id());
        let has_all = reign.is_adopted() || reign.is_proven();
        let age = if has_all {
            Duration::ZERO
        } else {
            reign.age(now)
        };
        self.trust.group.reign = Some(reign);
        if is_new {
            let left = self.quarantine_left(now).unwrap_or_default();
            self.trust.group.new_reign = Some((age, left));
        }
        Ok(())
    }

    /// A replica may be where the master is to be for as long as a failover takes: the name still
    /// leads to the former master, or the replica is about to be promoted. Waiting is in vain if it
    /// goes on beyond that, and the replica hears its master all the time: a failover that is still
    /// to come would have to begin with that master's loss.
    fn expect_master_in_time(&mut self, now: Time, answer: &ReignAnswer) -> Result<(), NodeError> {
        if !answer.is_of_replica() {
            self.trust.group.replica_since = None;
            return Ok(());
        }
        let hears_master = self.connection.examination.hears_master == Some(true);
        let since = self
            .trust
            .group
            .replica_since
            .filter(|_| hears_master)
            .unwrap_or(now);
        self.trust.group.replica_since = Some(since);
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
        let (Some(options), Some(at)) = (&self.options.group, self.trust.group.search.located_at)
        else {
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
    fn checked(&mut self, between: (Time, Time), answer: &ReignAnswer) -> Result<(), NodeError> {
        let (sent_at, now) = between;
        let first = self.trust.group.first.take();
        let (Some(options), Some(reign)) = (&self.options.group, &mut self.trust.group.reign)
        else {
            return self.checked_unseen(now, answer);
        };
        let judged = match (answer, first) {
            (ReignAnswer::Checked(answer), _) => reign.check(options, sent_at, answer),
            (ReignAnswer::Standing(second), Some(Ok(first))) => {
                reign.check_acknowledged(options, between, &first, second)
            }
            (ReignAnswer::Standing(_), Some(Err(problem))) => {
                self.lose_unchecked(now, &problem);
                return Ok(());
            }
            // The one in front was not carried out.
            (ReignAnswer::Standing(_), None) => {
                self.ask_again(now, &ReignStep::Check);
                return Ok(());
            }
            // A check is answered with nothing else.
            _ => Err(NodeError::HidesReign),
        };
        match judged {
            Ok(()) => self.trust.group.crowded_since = None,
            Err(problem @ NodeError::NotAcknowledged { .. }) => {
                self.trust.group.search.doubt();
                self.lose_unchecked(now, &problem);
                return Ok(());
            }
            Err(NodeError::TooManyReplicas { named, listed, .. }) => {
                let since = *self.trust.group.crowded_since.get_or_insert(now);
                let problem = NodeError::TooManyReplicas {
                    named,
                    listed,
                    is_permanent: now.since(since) >= LISTED_FOR,
                };
                self.lose_unchecked(now, &problem);
                return Ok(());
            }
            Err(problem) => return Err(problem),
        }
        let is_to_confirm = reign.is_to_confirm();
        if let Some(nonce) = self.nonce().filter(|_| is_to_confirm) {
            let group = &mut self.trust.group;
            group.unconfirmed.append(&mut group.unchecked);
            let step = ReignStep::Confirm {
                run_id: self.run(),
                nonce,
            };
            self.ask_reign(now, step);
        } else {
            let unchecked = self.trust.group.unchecked.drain(..);
            self.answers.extend(unchecked.map(|(answer, _)| answer));
        }
        Ok(())
    }

    /// Fails the votes whose reign is not known, and will not be.
    pub(in crate::node::session) fn lose_unchecked(&mut self, now: Time, problem: &NodeError) {
        let unconfirmed = std::mem::take(&mut self.trust.group.unconfirmed);
        let unchecked = std::mem::take(&mut self.trust.group.unchecked);
        for (answer, request) in unconfirmed.into_iter().chain(unchecked) {
            self.lose(now, Some(answer.ticket), request, problem, true);
        }
    }
}
