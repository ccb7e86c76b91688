//! The keep-alive loop, a thread: it sleeps until a lock is due, sends the extensions of all locks
//! that may be extended by then, collects the answers as they come, and sends more.
//!
//! No more than [`UNDER_WAY_MAX`] is under way at a time. Of the extensions that wait for that,
//! those of locks that expire first come first: a lock of an hour does not delay one of a second.

use super::KeptLock;
use super::load::{self, Load, UNDER_WAY_MAX};
use super::notifier::{BackgroundEvent, Notice, Notifier};
use super::plan::{NextExtension, SLACK_MAX};
use super::schedule::Schedule;
use crate::clock::{self, Time};
use crate::engine::{Extended, Extension, Request, Rules, Ttl};
use crate::error::{Error, LossReason, NoQuorum};
use crate::net::{Net, Order, Orders, RoundOutcome};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

pub(super) struct KeepAliveLoop {
    inbox: Receiver<KeptLock>,
    rules: Arc<Rules>,
    orders: Orders,
    schedule: Schedule<KeptLock>,
    due: Due,
    /// By the numbers of their requests.
    under_way: HashMap<usize, AutoExtension>,
    /// The sum of their units.
    units_under_way: usize,
    load: Arc<Load>,
    notifier: Arc<Notifier>,
    /// Has the driver of the client's connections panicked? Then no lock can be extended any more.
    is_cut_off: bool,
}

/// Extensions that are due, in the order of their locks' expiry, then in the order they came.
#[derive(Default)]
struct Due {
    extensions: BTreeMap<(Time, u64), AutoExtension>,
    count: u64,
}

impl KeepAliveLoop {
    pub(super) fn new(
        inbox: Receiver<KeptLock>,
        rules: Arc<Rules>,
        net: Arc<Net>,
        load: Arc<Load>,
        notifier: Arc<Notifier>,
    ) -> Self {
        Self {
            inbox,
            rules,
            orders: Orders::new(net),
            schedule: Schedule::new(),
            due: Due::default(),
            under_way: HashMap::new(),
            units_under_way: 0,
            load,
            notifier,
            is_cut_off: false,
        }
    }

    /// Runs until the last clone of the client and the last guard are dropped.
    pub(super) fn run(mut self) {
        while !self.under_way.is_empty() || self.sleep() {
            while let Ok(kept) = self.inbox.try_recv() {
                self.schedule_next(kept);
            }
            for kept in self.schedule.take_due(clock::now(), SLACK_MAX) {
                self.extend_or_schedule(kept);
            }
            self.extend_due();
        }
    }

    /// Sleeps until there is something to do. `false` when there never will be again.
    fn sleep(&mut self) -> bool {
        let received = match self.schedule.next_at() {
            Some(at) => self.inbox.recv_timeout(at.since(clock::now())),
            None => self
                .inbox
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(kept) => {
                self.schedule_next(kept);
                true
            }
            Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }

    /// Puts a lock into the schedule, at the time at which it is due. If that is now, it comes up
    /// at once.
    fn schedule_next(&mut self, kept: KeptLock) {
        let now = clock::now();
        let Some((next, _)) = self.next(now, &kept) else {
            return;
        };
        match next {
            NextExtension::Extend(_) => self.schedule.insert(now, Duration::ZERO, kept),
            NextExtension::Wait(at, slack) => self.schedule.insert(at, slack, kept),
        }
    }

    /// Adds the extension of a lock to those that are due, if it still is.
    fn extend_or_schedule(&mut self, kept: KeptLock) {
        let now = clock::now();
        let Some((next, valid_until)) = self.next(now, &kept) else {
            return;
        };
        match next {
            NextExtension::Extend(ttl) => self.due.add(AutoExtension::new(kept, ttl, valid_until)),
            NextExtension::Wait(at, slack) => self.schedule.insert(at, slack, kept),
        }
    }

    /// What to do next with a lock, and until when it is held. `None` if it is not held any more:
    /// the notifier reports that.
    fn next(&self, now: Time, kept: &KeptLock) -> Option<(NextExtension, Time)> {
        let valid_until = kept.held.held_until(now)?;
        let next = if self.is_cut_off {
            NextExtension::Wait(valid_until, Duration::ZERO)
        } else {
            kept.plan.next(now, valid_until)
        };
        Some((next, valid_until))
    }

    /// Sends the due extensions that there is room for, and handles answers: waits for those if
    /// anything is under way.
    fn extend_due(&mut self) {
        if self.is_cut_off {
            return;
        }
        let mut answered = Vec::new();
        let exchanged = catch_unwind(AssertUnwindSafe(|| self.send_and_collect(&mut answered)));
        for (number, delivery) in answered {
            self.finish(number, delivery);
        }
        if exchanged.is_err() {
            // A bug in this crate, after which no request can be sent any more. All locks end with
            // their validity.
            self.is_cut_off = true;
            let due = std::mem::take(&mut self.due).extensions.into_values();
            let under_way = std::mem::take(&mut self.under_way).into_values();
            for extension in under_way.chain(due) {
                self.schedule_next(extension.into_lock());
            }
        }
    }

    fn send_and_collect(&mut self, answered: &mut Vec<(usize, RoundOutcome)>) {
        while let Some(mut extension) = self.due.take(UNDER_WAY_MAX - self.units_under_way) {
            let mut number = None;
            let orders = &mut self.orders;
            extension.begin(&self.rules, |request| {
                number = Some(orders.begin(Order::Round(request)));
            });
            if let Some(number) = number {
                self.units_under_way += extension.units;
                self.under_way.insert(number, extension);
            } else {
                self.schedule_next(extension.into_lock());
            }
        }
        self.orders.collect(|number, ended| {
            // Only rounds are begun here.
            if let Some(outcome) = ended.into_round() {
                answered.push((number, outcome));
            }
        });
    }

    fn finish(&mut self, number: usize, votes: RoundOutcome) {
        let Some(extension) = self.under_way.remove(&number) else {
            return;
        };
        self.units_under_way -= extension.units;
        let finished = extension.finish(votes, &self.rules, self.notifier.has_listener());
        let FinishedExtension {
            kept,
            held_until,
            round,
            event,
        } = finished;
        if let Some(round) = round {
            self.load.record_round(round);
        }
        // First: the events of a lock come before its loss.
        if let Some(event) = event {
            self.notifier.notify(Notice::Emit(event));
        }
        if held_until.is_err() {
            let held = Arc::clone(&kept.held);
            self.notifier.notify(Notice::CheckLock(held));
        }
        self.schedule_next(kept);
    }
}

impl Due {
    fn add(&mut self, extension: AutoExtension) {
        self.count += 1;
        self.extensions
            .insert((extension.valid_until, self.count), extension);
    }

    /// Takes the first, if it counts no more than this many units.
    fn take(&mut self, units: usize) -> Option<AutoExtension> {
        let first = self.extensions.first_entry()?;
        (first.get().units <= units).then(|| first.remove())
    }
}

// One automatic extension: due, under way, finished.

struct AutoExtension {
    kept: KeptLock,
    ttl: Ttl,
    /// Until when the lock was held when this became due. Locks that expire first come first.
    valid_until: Time,
    /// How much it counts towards the limit of what is under way.
    units: usize,
    /// What is under way, if it has begun.
    extension: Option<Extension>,
}

struct FinishedExtension {
    kept: KeptLock,
    held_until: Result<Time, LossReason>,
    /// How long the round took, if it was confirmed.
    round: Option<Duration>,
    event: Option<BackgroundEvent>,
}

impl AutoExtension {
    fn new(kept: KeptLock, ttl: Ttl, valid_until: Time) -> Self {
        let units = load::units(kept.held.key_bytes());
        Self {
            kept,
            ttl,
            valid_until,
            units,
            extension: None,
        }
    }

    /// Posts the extension to the nodes, and says whether it has: not if the lock is not held any
    /// more, or would be held for too long.
    fn begin(&mut self, rules: &Rules, send: impl FnOnce(Request)) -> bool {
        // Before the first byte is written: the lock must not look longer than it is.
        let now = clock::now();
        let ttl = self.ttl;
        let begun = self.kept.held.begin_extension(now, ttl, |held| {
            let extension = Extension {
                held,
                ttl,
                began: now,
                is_resumed: false,
            };
            let Ok(request) = extension.request(rules) else {
                return false;
            };
            // An answer that comes after the validity has no effect.
            send(request.ending_by(extension.held.valid_until));
            self.extension = Some(extension);
            true
        });
        let is_sent = self.extension.is_some();
        if begun.is_ok() && !is_sent {
            // The lock would be held for too long.
            self.kept.plan.failed(now, Duration::ZERO, self.valid_until);
        }
        is_sent
    }

    fn into_lock(self) -> KeptLock {
        self.kept
    }

    /// Handles the answers of the nodes. With `has_listener` there may be an event to emit.
    fn finish(self, votes: RoundOutcome, rules: &Rules, has_listener: bool) -> FinishedExtension {
        // After the answer that decided it.
        let now = clock::now();
        let extension = self.extension.expect("an extension under way has begun");
        let took = now.since(extension.began);
        let outcome = extension.conclude(now, &votes.votes, rules);
        let mut kept = self.kept;
        let is_confirmed = matches!(outcome, Extended::Confirmed(_));
        let held_until = kept.held.finish_extension(now, outcome);
        if let Ok(valid_until) = held_until {
            if is_confirmed {
                kept.plan.confirmed();
            } else {
                kept.plan.failed(now, took, valid_until);
            }
        }
        if let Some(head) = kept.head.as_ref().filter(|_| is_confirmed) {
            head.set_key_expiry(kept.held.key_expires_at(rules));
        } else if let Some(head) = kept.head.as_ref().filter(|_| held_until.is_err()) {
            // The next waiter need not wait for the guard to be dropped.
            head.set_key_expiry(kept.held.valid_until());
        }
        let event = has_listener.then(|| {
            let unconfirmed = (!is_confirmed).then(|| NoQuorum::new(votes.reports));
            event(&mut kept, now, took, unconfirmed)
        });
        FinishedExtension {
            kept,
            held_until,
            round: is_confirmed.then_some(took),
            event,
        }
    }
}

/// What there is to emit of an extension that took this long. `unconfirmed` says why, if it was
/// not confirmed.
fn event(
    kept: &mut KeptLock,
    now: Time,
    took: Duration,
    unconfirmed: Option<NoQuorum>,
) -> BackgroundEvent {
    let valid_until = kept.held.held_until(now).filter(|_| kept.is_emitted);
    let Some(valid_until) = valid_until else {
        return BackgroundEvent::Nodes;
    };
    if unconfirmed.is_some() && !kept.plan.is_to_report(now) {
        return BackgroundEvent::Nodes;
    }
    BackgroundEvent::AutoExtension {
        key: Arc::clone(&kept.held.granted().key),
        took,
        validity: valid_until.since(now),
        error: unconfirmed.map(Error::NoQuorum),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Drift, NodeSet};
    use crate::watchdog::fixture::{at, held_lock};
    use crate::watchdog::{Demand, MAX_HOLD, Plan};

    fn extension(end: u64) -> AutoExtension {
        let rules = Rules::new(3, Drift::from_factor(0.01).unwrap());
        let ttl = Ttl::from_duration(Duration::from_secs(3)).unwrap();
        let demand = Demand::new(ttl.as_duration(), Duration::from_secs(1), 3);
        let kept = KeptLock {
            held: held_lock(end),
            plan: Box::new(Plan::new(&rules, ttl, at(0), MAX_HOLD, 1)),
            capacity: Arc::new(Arc::<Load>::default().reserve(demand).expect("it is alone")),
            head: None,
            is_emitted: false,
        };
        AutoExtension::new(kept, ttl, at(end))
    }

    #[test]
    fn locks_that_expire_first_are_extended_first_and_no_more_than_there_is_room_for() {
        let mut due = Due::default();
        for end in [60_000, 500, 60_000, 3_000, 700] {
            due.add(extension(end));
        }
        assert!(due.take(0).is_none(), "there is no room");
        let taken = std::iter::from_fn(|| due.take(1)).map(|extension| extension.valid_until);
        let expected = [500, 700, 3_000, 60_000, 60_000].map(at);
        assert_eq!(taken.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_extension_that_is_not_sent_changes_nothing() {
        let lock = held_lock(1_000);
        let longest = lock.granted().ttl_longest;
        let longer = Ttl::from_duration(2 * longest.as_duration()).unwrap();
        assert_eq!(lock.begin_extension(at(1), longer, |_| false), Ok(()));
        let held = lock.close(at(2), NodeSet::EMPTY);
        assert_eq!((held.ttl_longest, held.nodes), (longest, NodeSet::all(3)));
    }
}
