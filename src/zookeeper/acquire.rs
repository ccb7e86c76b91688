//! Acquiring a lock on a ZooKeeper ensemble.

use super::EnsembleBackend;
use crate::backend::{Blocking, Caller, EventRecorder, LockSpec, Started};
use crate::clock::{self, Time};
use crate::driver::Driven;
use crate::engine::{Backoff, Entropy, HeldLock, Jitter, NodeSet, Share, Token, Wait};
use crate::entropy::draw;
use crate::error::{Error, NoQuorum, TtlError};
use crate::event::AttemptOutcome;
use crate::net::{EnsembleNet, OrderKind, refusal};
use crate::node::{NodeAnswer, NodeError, NodeReport};
use crate::watchdog::MAX_HOLD;
use redlatch_zookeeper::contender::ContenderPlan;
use redlatch_zookeeper::lock_table::{Grant, Outcome};
use redlatch_zookeeper::message::{EnsembleError, Remedy};
use std::future::{Future, poll_fn, ready};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// The longest time for which a caller waits without a look around.
const LOOK_AROUND: Duration = Duration::from_secs(60);

/// A caller that asks an ensemble.
pub(super) trait EnsembleCaller: Caller {
    /// Waits for what becomes of an order, and until this time at most.
    fn outcome(&self, order: OrderKind, until: Time) -> impl Future<Output = Option<Outcome>>;
}

impl EnsembleCaller for Blocking<'_, EnsembleNet> {
    fn outcome(&self, order: OrderKind, until: Time) -> impl Future<Output = Option<Outcome>> {
        ready(self.net.submit(order, until))
    }
}

impl EnsembleCaller for Started<'_, EnsembleNet> {
    fn outcome(&self, order: OrderKind, until: Time) -> impl Future<Output = Option<Outcome>> {
        outcome(self.net, self.driven, order, until, || {
            self.call.is_cancelled()
        })
    }
}

/// What becomes of the order of a call that was started, as [`EnsembleCaller::outcome`].
pub(super) async fn outcome(
    net: &EnsembleNet,
    driven: &Driven,
    order: OrderKind,
    until: Time,
    is_cancelled: impl Fn() -> bool,
) -> Option<Outcome> {
    let waiter = order.waiter();
    let waker = poll_fn(|context| Poll::Ready(context.waker().clone())).await;
    let (mut begun, limit) = net.begin(order, until, waker);
    let mut is_ended = false;
    poll_fn(|_| {
        if let Some(outcome) = begun.take_outcome() {
            return Poll::Ready(Some(outcome));
        }
        if clock::now() >= limit {
            return Poll::Ready(None);
        }
        // A token ends the wait itself. Nobody else does where the call was dropped.
        if let Some(waiter) = waiter.filter(|_| !is_ended && is_cancelled()) {
            is_ended = true;
            net.end_waits(Some(waiter));
        }
        driven.sleep(Some(limit));
        Poll::Pending
    })
    .await
}

pub(super) struct ZooKeeperAcquire<'a, C> {
    ensemble: &'a EnsembleBackend,
    spec: &'a LockSpec<'a>,
    caller: C,
    /// For how long the lock is held if nothing happens: its ttl, or longer if it is kept alive.
    hold: Duration,
    wait: Wait,
}

/// How one attempt has ended, if the call goes on.
enum AttemptEnd {
    Over(Result<Option<HeldLock>, Error>),
    /// The session has ended, or the lock was lost before the caller had it.
    Again,
    /// A server refuses for now.
    Refused(EnsembleError),
}

impl<'a, C: EnsembleCaller> ZooKeeperAcquire<'a, C> {
    pub(super) fn new(ensemble: &'a EnsembleBackend, spec: &'a LockSpec<'a>, caller: C) -> Self {
        let hold = if spec.keep_alive {
            spec.max_hold.unwrap_or(MAX_HOLD)
        } else {
            spec.ttl.as_duration()
        };
        // A time that has come would end the greeting of a new client as well.
        let is_over = spec.wait.deadline().is_some_and(|end| end <= clock::now());
        let wait = if is_over { Wait::No } else { spec.wait };
        Self {
            ensemble,
            spec,
            caller,
            hold,
            wait,
        }
    }

    /// Takes over a lock that another thread of this client hands over, or contends for it.
    pub(super) async fn run(
        &self,
        held: Option<HeldLock>,
        not_before: Option<Time>,
        mut recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<HeldLock>, Error> {
        if let Some(time) = not_before {
            if self.caller.pause_until(time).await {
                return Ok(None);
            }
        }
        if let Some(held) = held {
            if let Some(held) = self.take_over(&held).await {
                return Ok(Some(held));
            }
        }
        let mut backoff: Option<Backoff> = None;
        let mut refusal = None;
        loop {
            let Some(entropy) = draw() else {
                return Err(Error::NoEntropy);
            };
            if let Some(recorder) = &mut recorder {
                recorder.count_attempt();
                recorder.begin_attempt(clock::now());
            }
            let result = match self.attempt(entropy, &mut recorder).await? {
                // What a server has said is more than that it then had no time to say it again.
                AttemptEnd::Over(Err(Error::NoQuorum(error))) => {
                    Err(refusal.map_or(Error::NoQuorum(error), |error| self.refused(error)))
                }
                AttemptEnd::Over(result) => result,
                AttemptEnd::Again if self.is_over() => Err(self.unanswered()),
                AttemptEnd::Again => continue,
                AttemptEnd::Refused(error) => {
                    refusal = Some(error);
                    let result = Err(self.refused(error));
                    let backoff = backoff.get_or_insert_with(|| self.backoff(entropy.seed));
                    // A caller that waits does so until its deadline, also if no attempt fits in.
                    let end = self.wait.deadline().unwrap_or(Time::MAX);
                    let next = clock::now()
                        .after(backoff.next_delay(Duration::ZERO))
                        .min(end);
                    let is_hopeless = error.remedy() == Remedy::Configure || self.is_over();
                    if !is_hopeless && !self.caller.pause_until(next).await && !self.is_over() {
                        continue;
                    }
                    result
                }
            };
            if let Some(recorder) = recorder {
                let outcome = match &result {
                    Ok(Some(_)) => AttemptOutcome::Granted,
                    Ok(None) => AttemptOutcome::Contended,
                    Err(_) => AttemptOutcome::NoQuorum,
                };
                if let Ok(Some(held)) = &result {
                    self.tell(held.token, || recorder.emit_woken());
                }
                recorder.end_attempt(clock::now(), outcome);
            }
            return result;
        }
    }

    async fn attempt(
        &self,
        entropy: Entropy,
        recorder: &mut Option<&mut EventRecorder<'_>>,
    ) -> Result<AttemptEnd, Error> {
        let token = entropy.token;
        let began = clock::now();
        let plan = Box::new(self.plan());
        let mut until = self.within(began, self.ensemble.patience());
        let mut order = OrderKind::Contend(token, plan, self.hold);
        self.spec.call.set_waiter(Some(token));
        loop {
            let outcome = self.caller.outcome(order, until).await;
            let now = clock::now();
            return Ok(AttemptEnd::Over(match outcome {
                Some(Outcome::Granted(grant)) => Ok(Some(self.held(token, &grant))),
                Some(Outcome::Waiting { place }) => {
                    if let Some((place, recorder)) = place.zip(recorder.as_mut()) {
                        self.tell(token, || {
                            recorder.emit_queued(place.saturating_sub(1) as u64);
                        });
                        // If the callback has forked, the call goes on in the parent only.
                        if self.ensemble.owner_process.is_known_forked() {
                            return Ok(AttemptEnd::Over(Ok(None)));
                        }
                    }
                    if let Some(over) = self.look_around(token, place, now)? {
                        return Ok(over);
                    }
                    order = OrderKind::Wait(token);
                    until = self.within(now, LOOK_AROUND);
                    continue;
                }
                Some(Outcome::Contended) => Ok(None),
                Some(Outcome::Refused(error)) => return Ok(AttemptEnd::Refused(error)),
                Some(Outcome::Gone) => return Ok(AttemptEnd::Again),
                Some(Outcome::TooLong) => Err(self.too_long()),
                Some(Outcome::NoRoom) => return Err(Error::TooManyHeld),
                Some(Outcome::NoEntropy) => Err(Error::NoEntropy),
                // The thread that drives the connection does not respond in time, or this process
                // was stopped and this thread goes on first.
                None if !self.is_over_at(now) => {
                    until = self.within(now, self.ensemble.patience());
                    order = OrderKind::Wait(token);
                    continue;
                }
                other => {
                    debug_assert!(other.is_none(), "{other:?}");
                    self.ensemble.abandon(token);
                    Err(self.unanswered())
                }
            }));
        }
    }

    /// Tells the listener. A callback that panics leaves neither a place in the queue nor a lock.
    fn tell(&self, token: Token, emit: impl FnOnce()) {
        if let Err(panic) = panic::catch_unwind(AssertUnwindSafe(emit)) {
            self.ensemble.abandon(token);
            panic::resume_unwind(panic);
        }
    }

    /// Is the attempt over, although the lock may still be waited for?
    fn look_around(
        &self,
        token: Token,
        place: Option<usize>,
        now: Time,
    ) -> Result<Option<AttemptEnd>, Error> {
        // The ensemble may have granted a shorter session than was asked for.
        let min_validity = self.spec.min_validity;
        let most = self.ensemble.longest_validity();
        if min_validity > most {
            self.ensemble.abandon(token);
            return Err(Error::Ttl(TtlError::BeyondSession { min_validity, most }));
        }
        let is_over = self.wait.deadline().is_some_and(|end| now >= end);
        if !(self.spec.call.is_cancelled() || is_over || self.is_hopeless()) {
            return Ok(None);
        }
        self.ensemble.abandon(token);
        // A place says nothing about others if nobody answers any more.
        Ok(Some(AttemptEnd::Over(match place {
            Some(_) if self.ensemble.net.is_answering() => Ok(None),
            _ => Err(self.unanswered()),
        })))
    }

    /// The lock that another thread hands over, if it is still held.
    async fn take_over(&self, held: &HeldLock) -> Option<HeldLock> {
        let token = held.token;
        let now = clock::now();
        let order = OrderKind::TakeOver(token, now.after(self.hold));
        // It is decided at once, by the thread alone that drives the connection.
        let until = now.after(Duration::from_secs(1));
        if let Some(Outcome::Granted(grant)) = self.caller.outcome(order, until).await {
            let left = grant.session.get().since(clock::now());
            if left > self.spec.min_validity {
                return Some(self.held(token, &grant));
            }
        }
        self.ensemble.abandon(token);
        None
    }

    fn held(&self, token: Token, grant: &Grant) -> HeldLock {
        let share = self.spec.share();
        let mut attributes = self.spec.attributes.clone();
        if let (Some(Share::Permit { of, .. }), Some(attributes)) = (share, &mut attributes) {
            Arc::make_mut(attributes).share = Some(Share::Permit {
                of,
                number: grant.slot,
            });
        }
        let is_fenced = attributes
            .as_ref()
            .is_some_and(|attributes| attributes.fence.is_some());
        let of_ttl = self.ensemble.rules.drift.validity(self.spec.ttl);
        let is_kept = self.hold != self.spec.ttl.as_duration();
        HeldLock {
            key: Arc::clone(&self.spec.key),
            token,
            attributes,
            fence: is_fenced.then(|| u64::try_from(grant.created_by).unwrap_or(0)),
            valid_until: grant.at.after(if is_kept { self.hold } else { of_ttl }),
            since: grant.at,
            ttl: self.spec.ttl,
            ttl_longest: self.spec.ttl,
            nodes: NodeSet::EMPTY,
            waiter: None,
            // Another client may wait at any time, and this one does not hear of it.
            is_awaited: true,
            session: Some(Arc::clone(&grant.session)),
        }
    }

    fn plan(&self) -> ContenderPlan {
        let directories = self.spec.keys().map(|key| {
            self.ensemble
                .directory(key)
                .expect("a key is checked when a request is made")
        });
        let mut plan = self.ensemble.plan(directories.collect());
        plan.share = self.spec.share();
        let attributes = self.spec.attributes.as_ref();
        plan.data = attributes.map_or_else(Arc::default, |it| it.owner.as_slice().into());
        plan.waits = self.wait != Wait::No;
        plan.min_validity = self.spec.min_validity;
        plan
    }

    fn is_over(&self) -> bool {
        self.is_over_at(clock::now())
    }

    fn is_over_at(&self, now: Time) -> bool {
        self.wait == Wait::No || self.wait.deadline().is_some_and(|end| now >= end)
    }

    /// So long after this time, or at the end of the wait, if there is one.
    fn within(&self, from: Time, most: Duration) -> Time {
        let end = self.wait.deadline().filter(|_| self.wait != Wait::No);
        end.unwrap_or(Time::MAX).min(from.after(most))
    }

    /// Is waiting no use, because all servers that were tried refuse the client?
    fn is_hopeless(&self) -> bool {
        let reports = self.ensemble.reports();
        reports.iter().any(is_permanent)
            && reports
                .iter()
                .all(|it| is_permanent(it) || it.answer == NodeAnswer::NotAsked)
    }

    fn backoff(&self, seed: u64) -> Backoff {
        let rules = &self.ensemble.rules;
        Backoff::new(rules.retry_base, rules.retry_cap, Jitter::from_seed(seed))
    }

    fn unanswered(&self) -> Error {
        Error::NoQuorum(NoQuorum::new(self.ensemble.reports()))
    }

    fn refused(&self, error: EnsembleError) -> Error {
        self.refused_with(refusal(error))
    }

    fn too_long(&self) -> Error {
        let text = "a request longer than servers accept".to_owned();
        self.refused_with(NodeError::Refused {
            text,
            is_permanent: true,
        })
    }

    fn refused_with(&self, refusal: NodeError) -> Error {
        let mut reports = self.ensemble.reports();
        // The one that answers is the one that has refused.
        let asked = reports
            .iter_mut()
            .find(|report| report.answer != NodeAnswer::NotAsked);
        if let Some(report) = asked {
            report.answer = NodeAnswer::Failed(refusal);
        }
        Error::NoQuorum(NoQuorum::new(reports))
    }
}

fn is_permanent(report: &NodeReport) -> bool {
    match &report.answer {
        NodeAnswer::Failed(error) => error.is_permanent(),
        _ => false,
    }
}
