//! What the watchdog's thread does: it sleeps until a lock is to be renewed or has ended, sees to
//! all of which that is true, and sleeps again.

use super::Watched;
use super::bell::Bell;
use super::hold::Standing;
use super::plan::{Next, SLACK_MAX};
use super::schedule::Schedule;
use crate::clock::{self, Time};
use crate::engine::{Extend, Extended, Input, Operation, Request, Rules, Step, Ttl};
use crate::net::{Delivery, Net, Requests};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// The most renewals in one batch, in number and in the bytes of their keys: less than half of what
/// may be unanswered at a node, so that other threads' requests are not turned away meanwhile.
const BATCH_MAX: usize = 200;
const BATCH_BYTES_MAX: usize = 200 * 1024;

/// The thread's own state.
pub(super) struct Patrol {
    inbox: Receiver<Watched>,
    rules: Arc<Rules>,
    requests: Requests,
    schedule: Schedule,
    bell: Bell,
    /// Has the driver of the client's connections panicked? Then nothing can be renewed any more.
    is_cut_off: bool,
}

/// A renewal under way.
struct Renewal {
    watched: Watched,
    ttl: Ttl,
    began: Time,
    extend: Option<Extend>,
}

impl Patrol {
    pub(super) fn new(inbox: Receiver<Watched>, rules: Arc<Rules>, net: Arc<Net>) -> Self {
        Self {
            inbox,
            rules,
            requests: Requests::new(net),
            schedule: Schedule::default(),
            bell: Bell::new(),
            is_cut_off: false,
        }
    }

    /// Goes on until the last clone of the client is gone, and with it the last guard.
    pub(super) fn run(mut self) {
        while self.sleep() {
            self.bell.ring_again(clock::now());
            let mut renewals = Vec::new();
            let mut bytes = 0;
            for watched in self.schedule.take(clock::now(), SLACK_MAX, BATCH_MAX) {
                match self.look(watched) {
                    Some((watched, _)) if bytes > BATCH_BYTES_MAX => {
                        let now = clock::now();
                        self.schedule.put(now, Duration::ZERO, now, watched);
                    }
                    Some((watched, ttl)) => {
                        bytes += watched.hold.key_bytes();
                        renewals.push((watched, ttl));
                    }
                    None => {}
                }
            }
            if !renewals.is_empty() {
                self.renew(renewals);
            }
        }
    }

    /// Sleeps until there is something to do. `false` when there will not be, ever.
    fn sleep(&mut self) -> bool {
        let alarm = [self.schedule.next(), self.bell.next()].into_iter().flatten().min();
        let received = match alarm {
            Some(at) => self.inbox.recv_timeout(at.since(clock::now())),
            None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(watched) => {
                self.file(watched);
                while let Ok(watched) = self.inbox.try_recv() {
                    self.file(watched);
                }
                true
            }
            Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }

    /// Files a lock under the time at which something is to be done with it. If that is now, it
    /// comes up at once.
    fn file(&mut self, watched: Watched) {
        if let Some((watched, _)) = self.look(watched) {
            let now = clock::now();
            self.schedule.put(now, Duration::ZERO, now, watched);
        }
    }

    /// Looks after one lock, and hands it out if it is to be renewed.
    fn look(&mut self, watched: Watched) -> Option<(Watched, Ttl)> {
        let now = clock::now();
        match watched.hold.standing(now) {
            Standing::Released => {}
            Standing::Lost(lost, callbacks) => self.bell.ring(now, lost, callbacks),
            Standing::Held(valid_until) => {
                let next = match &watched.plan {
                    Some(plan) if !self.is_cut_off => plan.next(now, valid_until),
                    _ => Next::Wait(valid_until, Duration::ZERO),
                };
                match next {
                    Next::Renew(ttl) => return Some((watched, ttl)),
                    Next::Wait(at, slack) => self.schedule.put(at, slack, valid_until, watched),
                }
            }
        }
        None
    }

    /// Renews all of these in one batch of writes.
    fn renew(&mut self, due: Vec<(Watched, Ttl)>) {
        // No round outlasts the validity of any lock: a loss must not be noticed late because the
        // nodes are silent.
        let ends = due.iter().map(|(watched, _)| watched.hold.valid_until());
        let deadline = ends.min().unwrap_or(Time::MAX).min(self.schedule.first_end());
        let mut renewals: Vec<_> = due.into_iter().map(Renewal::new).collect();
        let round = catch_unwind(AssertUnwindSafe(|| self.ask(&mut renewals, deadline)));
        // A mistake in this crate, after which nothing can be asked of the nodes any more. The
        // locks are watched all the same, until they end.
        self.is_cut_off = round.is_err();
        for renewal in renewals {
            self.file(renewal.watched);
        }
    }

    fn ask(&mut self, renewals: &mut [Renewal], deadline: Time) {
        let Self { requests, rules, .. } = self;
        let mut asked = Vec::with_capacity(renewals.len());
        for (index, renewal) in renewals.iter_mut().enumerate() {
            if renewal.begin(rules, deadline, |request| requests.begin(request)) {
                asked.push(index);
            }
        }
        requests.finish(|number, delivery| renewals[asked[number]].conclude(&delivery, rules));
    }
}

impl Renewal {
    fn new((watched, ttl): (Watched, Ttl)) -> Self {
        Self { watched, ttl, began: Time::ZERO, extend: None }
    }

    /// Leaves the extension for the nodes, if the lock is still held.
    fn begin(&mut self, rules: &Arc<Rules>, deadline: Time, send: impl FnOnce(Request)) -> bool {
        // Before the first byte is written: the lock must not look longer than it is.
        let now = clock::now();
        self.began = now;
        let (ttl, extend) = (self.ttl, &mut self.extend);
        let begun = self.watched.hold.begin(now, ttl, |lease| {
            let mut operation = Extend::new(Arc::clone(rules), lease, ttl, now);
            match operation.poll() {
                Step::Send(request) => {
                    send(Request { deadline: request.deadline.min(deadline), ..request });
                    *extend = Some(operation);
                    true
                }
                Step::Done(_) => false,
                Step::Wait(_) => unreachable!("an extension is one attempt, and at once"),
            }
        });
        let is_sent = self.extend.is_some();
        if let (Some(plan), Ok(()), false) = (&mut self.watched.plan, begun, is_sent) {
            // It would be held for too long.
            plan.failed(now, Duration::ZERO, self.watched.hold.valid_until());
        }
        is_sent
    }

    fn conclude(&mut self, delivery: &Delivery, rules: &Rules) {
        let Some(mut extend) = self.extend.take() else { return };
        // After the answer that decided it.
        let now = clock::now();
        extend.handle(now, Input::Ballot(delivery.returns.ballot));
        if let Step::Done(outcome) = extend.poll() {
            self.settle(now, outcome, rules);
        }
    }

    fn settle(&mut self, now: Time, outcome: Extended, rules: &Rules) {
        let is_confirmed = matches!(outcome, Extended::Confirmed(_));
        let settled = self.watched.hold.settle(now, outcome);
        if let (Some(plan), Ok(valid_until)) = (&mut self.watched.plan, settled) {
            if is_confirmed {
                plan.confirmed();
            } else {
                plan.failed(now, now.since(self.began), valid_until);
            }
        }
        if let Some(tenure) = self.watched.tenure.as_ref().filter(|_| is_confirmed) {
            tenure.hold(self.watched.hold.expires_at(rules));
        } else if let Some(tenure) = self.watched.tenure.as_ref().filter(|_| settled.is_err()) {
            // Those in line need not wait for the guard.
            tenure.hold(self.watched.hold.valid_until());
        }
    }
}
