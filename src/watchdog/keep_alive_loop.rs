//! What the thread does that renews: it sleeps until a lock is due, leaves its extension for the
//! nodes together with all that may be renewed by then, collects the answers as they come, and
//! leaves more.
//!
//! No more is under way at a time than [`SHARE_MAX`] allows. Of what waits for that, those come
//! first that end first: a lock of an hour does not cost one of a second its life.

use super::KeptLock;
use super::auto_extension::{AutoExtension, Settled};
use super::load::{Load, SHARE_MAX};
use super::notifier::{Notice, Notifier};
use super::plan::{Next, SLACK_MAX};
use super::schedule::Schedule;
use crate::clock::{self, Time};
use crate::engine::Rules;
use crate::net::{Delivery, Net, Requests};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// The thread's own state.
pub(super) struct KeepAliveLoop {
    inbox: Receiver<KeptLock>,
    rules: Arc<Rules>,
    requests: Requests,
    schedule: Schedule<KeptLock>,
    due: Due,
    /// By the numbers of their requests.
    under_way: HashMap<usize, AutoExtension>,
    /// How much of what may be under way these take.
    units: usize,
    load: Arc<Load>,
    notifier: Arc<Notifier>,
    /// Has the driver of the client's connections panicked? Then nothing can be renewed any more.
    is_cut_off: bool,
}

/// Locks that are to be renewed, those first that end first, then those that came first.
#[derive(Default)]
struct Due {
    renewals: BTreeMap<(Time, u64), AutoExtension>,
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
            requests: Requests::new(net),
            schedule: Schedule::new(),
            due: Due::default(),
            under_way: HashMap::new(),
            units: 0,
            load,
            notifier,
            is_cut_off: false,
        }
    }

    /// Goes on until the last clone of the client is gone, and with it the last guard.
    pub(super) fn run(mut self) {
        while !self.under_way.is_empty() || self.sleep() {
            while let Ok(kept) = self.inbox.try_recv() {
                self.file(kept);
            }
            for kept in self.schedule.take(clock::now(), SLACK_MAX) {
                self.file_due(kept);
            }
            self.renew();
        }
    }

    /// Sleeps until there is something to do. `false` when there will not be, ever.
    fn sleep(&mut self) -> bool {
        let received = match self.schedule.next() {
            Some(at) => self.inbox.recv_timeout(at.since(clock::now())),
            None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(kept) => {
                self.file(kept);
                true
            }
            Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }

    /// Files a lock under the time at which something is to be done with it. If that is now, it
    /// comes up at once.
    fn file(&mut self, kept: KeptLock) {
        let now = clock::now();
        let Some((next, _)) = self.next(now, &kept) else { return };
        match next {
            Next::Renew(_) => self.schedule.put(now, Duration::ZERO, kept),
            Next::Wait(at, slack) => self.schedule.put(at, slack, kept),
        }
    }

    /// Has a lock renewed if it still is to be.
    fn file_due(&mut self, kept: KeptLock) {
        let now = clock::now();
        let Some((next, valid_until)) = self.next(now, &kept) else { return };
        match next {
            Next::Renew(ttl) => self.due.add(AutoExtension::new(kept, ttl, valid_until)),
            Next::Wait(at, slack) => self.schedule.put(at, slack, kept),
        }
    }

    /// What is to be done with a lock, and until when it is held. `None` if it is not any more: it
    /// is the notifier that tells of that.
    fn next(&self, now: Time, kept: &KeptLock) -> Option<(Next, Time)> {
        let valid_until = kept.lease.held_until(now)?;
        let next = if self.is_cut_off {
            Next::Wait(valid_until, Duration::ZERO)
        } else {
            kept.plan.next(now, valid_until)
        };
        Some((next, valid_until))
    }

    /// Leaves for the nodes what there is room for, and takes in what they have answered: waits for
    /// that if anything is under way.
    fn renew(&mut self) {
        if self.is_cut_off {
            return;
        }
        let mut decided = Vec::new();
        let asked = catch_unwind(AssertUnwindSafe(|| self.ask(&mut decided)));
        for (number, delivery) in decided {
            self.settle(number, delivery);
        }
        if asked.is_err() {
            // A mistake in this crate, after which nothing can be asked of the nodes any more.
            // What is kept ends with its validity.
            self.is_cut_off = true;
            let due = std::mem::take(&mut self.due).renewals;
            let left = self.under_way.drain().map(|(_, renewal)| renewal).chain(due.into_values());
            let left: Vec<_> = left.map(AutoExtension::give_up).collect();
            left.into_iter().for_each(|kept| self.file(kept));
        }
    }

    fn ask(&mut self, decided: &mut Vec<(usize, Delivery)>) {
        while let Some(mut renewal) = self.due.take(SHARE_MAX - self.units) {
            let (mut number, requests) = (None, &mut self.requests);
            renewal.begin(&self.rules, |request| number = Some(requests.begin(request)));
            if let Some(number) = number {
                self.units += renewal.units;
                self.under_way.insert(number, renewal);
            } else {
                self.file(renewal.give_up());
            }
        }
        self.requests.collect(|number, delivery| decided.push((number, delivery)));
    }

    fn settle(&mut self, number: usize, delivery: Delivery) {
        let Some(renewal) = self.under_way.remove(&number) else { return };
        self.units -= renewal.units;
        let settled = renewal.conclude(delivery, &self.rules, self.notifier.has_listener());
        let Settled { kept, standing, round, news } = settled;
        round.into_iter().for_each(|round| self.load.took(round));
        // First: what was done with a lock is told before its loss.
        news.into_iter().for_each(|news| self.notifier.notify(Notice::Tell(news)));
        if standing.is_err() {
            self.notifier.notify(Notice::Look(Arc::clone(&kept.lease)));
        }
        self.file(kept);
    }
}

impl Due {
    fn add(&mut self, renewal: AutoExtension) {
        self.count += 1;
        self.renewals.insert((renewal.ends_at, self.count), renewal);
    }

    /// Takes the first, if it takes no more than so many units.
    fn take(&mut self, units: usize) -> Option<AutoExtension> {
        let first = self.renewals.first_entry()?;
        (first.get().units <= units).then(|| first.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Drift, Ttl};
    use crate::watchdog::fixture::{at, lease};
    use crate::watchdog::{Demand, MAX_HOLD, Plan};

    fn renewal(end: u64) -> AutoExtension {
        let rules = Rules::new(3, Drift::from_factor(0.01).unwrap());
        let ttl = Ttl::from_duration(Duration::from_secs(3)).unwrap();
        let demand = Demand::new(ttl.as_duration(), Duration::from_secs(1), 3);
        let kept = KeptLock {
            lease: lease(end),
            plan: Box::new(Plan::new(&rules, ttl, at(0), MAX_HOLD, 1)),
            share: Arc::new(Arc::<Load>::default().keep(demand).expect("it is alone")),
            tenure: None,
            is_told: false,
        };
        AutoExtension::new(kept, ttl, at(end))
    }

    #[test]
    fn those_that_end_first_are_renewed_first_and_no_more_than_there_is_room_for() {
        let mut due = Due::default();
        for end in [60_000, 500, 60_000, 3_000, 700] {
            due.add(renewal(end));
        }
        assert!(due.take(0).is_none(), "there is no room");
        let taken = std::iter::from_fn(|| due.take(1)).map(|renewal| renewal.ends_at);
        let expected = [500, 700, 3_000, 60_000, 60_000].map(at);
        assert_eq!(taken.collect::<Vec<_>>(), expected);
    }
}
