//! Acquiring a lock on a ZooKeeper ensemble.

use super::acquire::Acquisition;
use super::event_recorder::EventRecorder;
use crate::clock::{self, Time};
use crate::core::{Call, Ensemble, LastRound, draw};
use crate::engine::{Acquired, Backoff, Ballot, Entropy, HeldLock, Jitter, Node};
use crate::engine::{NodeSet, Rules, Share, Tally, Token, Wait};
use crate::error::{Error, TtlError};
use crate::net::{OrderKind, refusal};
use crate::node::{NodeAnswer, NodeError, NodeReport};
use crate::zookeeper::contender::Plan;
use crate::zookeeper::lock_table::{Grant, Outcome};
use crate::zookeeper::message::{Remedy, ServerError};
use std::sync::Arc;
use std::time::Duration;

/// The longest time for which a caller waits without a look around.
const LOOK_AROUND: Duration = Duration::from_secs(60);

pub(super) struct Contest<'a> {
    ensemble: &'a Ensemble,
    rules: &'a Rules,
    wanted: &'a Acquisition<'a>,
    /// For how long the lock is held if nothing happens: its ttl, or longer if it is kept alive.
    hold: Duration,
    wait: Wait,
    call: &'a Call<'a>,
}

/// How one attempt has ended, if the call goes on.
enum Attempt {
    Over((Acquired, LastRound)),
    /// The session has ended, or the lock was lost before the caller had it.
    Again,
    /// A server refuses for now.
    Refused(ServerError),
}

impl<'a> Contest<'a> {
    pub(super) fn new(ensemble: &'a Ensemble, wanted: &'a Acquisition<'a>) -> Self {
        let (core, settings, ttl) = (&wanted.client.core, wanted.settings, wanted.ttl);
        let hold =
            if settings.keep_alive { settings.longest_hold(core) } else { ttl.as_duration() };
        // A time that has come would end the greeting of a new client as well.
        let is_over = wanted.wait.deadline().is_some_and(|end| end <= clock::now());
        let wait = if is_over { Wait::No } else { wanted.wait };
        Self { ensemble, rules: &core.rules, wanted, hold, wait, call: wanted.call }
    }

    /// Takes over a lock that another thread of this client hands over, or contends for it.
    pub(super) fn run(
        &self,
        held: Option<HeldLock>,
        not_before: Option<Time>,
        mut recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<(Acquired, LastRound), Error> {
        if not_before.is_some_and(|time| self.call.pause_until(time)) {
            return Ok(without_reports(Acquired::Contended));
        }
        if let Some(held) = held.and_then(|held| self.take_over(&held)) {
            return Ok(without_reports(Acquired::Held(held)));
        }
        let mut backoff: Option<Backoff> = None;
        let mut refusal = None;
        loop {
            let Some(entropy) = draw() else { return Ok(without_reports(Acquired::NoEntropy)) };
            recorder.iter_mut().for_each(|recorder| recorder.begin_attempt());
            let attempt = self.attempt(entropy, &mut recorder)?;
            let (acquired, last) = match attempt {
                // What a server has said is more than that it then had no time to say it again.
                Attempt::Over((Acquired::Unanswered, last)) => {
                    refusal.map_or((Acquired::Unanswered, last), |error| self.refused(error))
                }
                Attempt::Over(over) => over,
                Attempt::Again if self.is_over() => self.unanswered(),
                Attempt::Again => continue,
                Attempt::Refused(error) => {
                    refusal = Some(error);
                    let (acquired, last) = self.refused(error);
                    let backoff = backoff.get_or_insert_with(|| self.backoff(entropy.seed));
                    let next = clock::now().after(backoff.next_delay(Duration::ZERO));
                    let is_hopeless = error.remedy() == Remedy::Configure;
                    let is_in_time = self.wait.deadline().is_none_or(|end| next < end);
                    if !is_hopeless && is_in_time && !self.call.pause_until(next) {
                        continue;
                    }
                    (acquired, last)
                }
            };
            recorder.iter_mut().for_each(|recorder| recorder.end_attempt(ballot_of(&acquired)));
            return Ok((acquired, last));
        }
    }

    fn attempt(
        &self,
        entropy: Entropy,
        recorder: &mut Option<&mut EventRecorder<'_>>,
    ) -> Result<Attempt, Error> {
        let (token, began) = (entropy.token, clock::now());
        let (plan, hold) = (Box::new(self.plan()), self.hold);
        let end = self.wait.deadline().filter(|_| self.wait != Wait::No);
        let within = |from: Time, most: Duration| end.unwrap_or(Time::MAX).min(from.after(most));
        let mut until = within(began, self.ensemble.patience());
        let mut order = OrderKind::Contend(token, plan, hold);
        self.call.set_waiter(Some(token));
        loop {
            let outcome = self.ensemble.net.submit(order, until);
            let now = clock::now();
            return Ok(Attempt::Over(match outcome {
                Some(Outcome::Granted(grant)) => {
                    without_reports(Acquired::Held(self.held(token, &grant)))
                }
                Some(Outcome::Waiting { place }) => {
                    if let Some((place, recorder)) = place.zip(recorder.as_mut()) {
                        recorder.emit_queued(place.saturating_sub(1));
                    }
                    if let Some(over) = self.look_around(token, place, now)? {
                        return Ok(over);
                    }
                    (order, until) = (OrderKind::Wait(token), within(now, LOOK_AROUND));
                    continue;
                }
                Some(Outcome::Contended) => without_reports(Acquired::Contended),
                Some(Outcome::Refused(error)) => return Ok(Attempt::Refused(error)),
                Some(Outcome::Gone) => return Ok(Attempt::Again),
                Some(Outcome::TooLong) => self.too_long(),
                Some(Outcome::NoRoom) => return Err(Error::TooManyHeld),
                Some(Outcome::NoEntropy) => without_reports(Acquired::NoEntropy),
                // The thread that drives the connection does not respond in time, or this process
                // was stopped and this thread goes on first.
                None if self.wait != Wait::No && end.is_none_or(|end| now < end) => {
                    until = within(now, self.ensemble.patience());
                    order = OrderKind::Wait(token);
                    continue;
                }
                other => {
                    debug_assert!(other.is_none(), "{other:?}");
                    self.ensemble.give_up(token);
                    self.unanswered()
                }
            }));
        }
    }

    /// Is the attempt over, although the lock may still be waited for?
    fn look_around(
        &self,
        token: Token,
        place: Option<usize>,
        now: Time,
    ) -> Result<Option<Attempt>, Error> {
        // The ensemble may have granted a shorter session than was asked for.
        let (min_validity, most) = (self.wanted.least, self.ensemble.longest_validity());
        if min_validity > most {
            self.ensemble.give_up(token);
            return Err(Error::Ttl(TtlError::BeyondSession { min_validity, most }));
        }
        let is_over = self.wait.deadline().is_some_and(|end| now >= end);
        if !(self.call.is_cancelled() || is_over || self.is_hopeless()) {
            return Ok(None);
        }
        self.ensemble.give_up(token);
        // A place says nothing about others if nobody answers any more.
        let acquired = match place {
            Some(_) if self.ensemble.net.is_answering() => Acquired::Contended,
            _ => Acquired::Unanswered,
        };
        Ok(Some(Attempt::Over((acquired, self.last_round()))))
    }

    /// The lock that another thread hands over, if it is still held.
    fn take_over(&self, held: &HeldLock) -> Option<HeldLock> {
        let (token, now) = (held.token, clock::now());
        let order = OrderKind::TakeOver(token, now.after(self.hold));
        // It is decided at once, by the thread alone that drives the connection.
        let until = now.after(Duration::from_secs(1));
        if let Some(Outcome::Granted(grant)) = self.ensemble.net.submit(order, until) {
            let left = grant.session.get().since(clock::now());
            if left > self.wanted.least {
                return Some(self.held(token, &grant));
            }
        }
        self.ensemble.give_up(token);
        None
    }

    fn held(&self, token: Token, grant: &Grant) -> HeldLock {
        let share = self.wanted.share();
        let mut attributes = self.wanted.attributes.cloned();
        if let (Some(Share::Permit { of, .. }), Some(attributes)) = (share, &mut attributes) {
            Arc::make_mut(attributes).share = Some(Share::Permit { of, number: grant.slot });
        }
        let is_fenced = attributes.as_ref().is_some_and(|attributes| attributes.fence.is_some());
        let of_ttl = self.rules.drift.validity(self.wanted.ttl);
        let is_kept = self.hold != self.wanted.ttl.as_duration();
        HeldLock {
            key: Arc::clone(self.wanted.key),
            token,
            attributes,
            fence: is_fenced.then(|| u64::try_from(grant.created_by).unwrap_or(0)),
            valid_until: grant.at.after(if is_kept { self.hold } else { of_ttl }),
            since: grant.at,
            ttl: self.wanted.ttl,
            ttl_longest: self.wanted.ttl,
            nodes: NodeSet::all(1),
            waiter: None,
            // Another client may wait at any time, and this one does not hear of it.
            is_awaited: true,
            session: Some(Arc::clone(&grant.session)),
        }
    }

    fn plan(&self) -> Plan {
        let directory = |key: &Arc<[u8]>| {
            self.ensemble.directory(key).expect("a key is checked when a request is made")
        };
        let mut plan = self.ensemble.plan(self.wanted.keys().map(directory).collect());
        plan.share = self.wanted.share();
        plan.data =
            self.wanted.attributes.map_or_else(Arc::default, |it| it.owner.as_slice().into());
        plan.waits = self.wait != Wait::No;
        plan.min_validity = self.wanted.least;
        plan
    }

    fn is_over(&self) -> bool {
        self.wait == Wait::No || self.wait.deadline().is_some_and(|end| clock::now() >= end)
    }

    /// Is waiting no use, because all servers that were tried refuse the client?
    fn is_hopeless(&self) -> bool {
        let reports = self.ensemble.reports();
        let is_permanent = |report: &NodeReport| match &report.answer {
            NodeAnswer::Failed(error) => error.is_permanent(),
            _ => false,
        };
        reports.iter().any(is_permanent)
            && reports.iter().all(|it| is_permanent(it) || it.answer == NodeAnswer::NotAsked)
    }

    fn backoff(&self, seed: u64) -> Backoff {
        let Rules { retry_base, retry_cap, .. } = self.rules;
        Backoff::new(*retry_base, *retry_cap, Jitter::from_seed(seed))
    }

    fn last_round(&self) -> LastRound {
        LastRound { reports: self.ensemble.reports() }
    }

    fn unanswered(&self) -> (Acquired, LastRound) {
        (Acquired::Unanswered, self.last_round())
    }

    fn refused(&self, error: ServerError) -> (Acquired, LastRound) {
        self.refused_with(refusal(error))
    }

    fn too_long(&self) -> (Acquired, LastRound) {
        let text = "a request longer than servers accept".to_owned();
        self.refused_with(NodeError::Refused { text, is_permanent: true })
    }

    fn refused_with(&self, refusal: NodeError) -> (Acquired, LastRound) {
        let mut last = self.last_round();
        // The one that answers is the one that has refused.
        let asked = |report: &&mut NodeReport| report.answer != NodeAnswer::NotAsked;
        if let Some(report) = last.reports.iter_mut().find(asked) {
            report.answer = NodeAnswer::Failed(refusal);
        }
        (Acquired::Unanswered, last)
    }
}

fn without_reports(acquired: Acquired) -> (Acquired, LastRound) {
    (acquired, LastRound::default())
}

/// The ballot of an ensemble's one vote, for the events.
fn ballot_of(acquired: &Acquired) -> Ballot {
    let (mut tally, node) = (Tally::new(1), Node::new(0));
    match acquired {
        Acquired::Held(_) => tally.granted.insert(node),
        Acquired::Contended => tally.refused.insert(node),
        _ => tally.failed.insert(node),
    }
    Ballot::new(tally)
}
