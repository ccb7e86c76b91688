//! What a thread does with locks: acquires one, holds it, extends it, releases it, as in
//! `src/guard.rs`.

use super::operator::Operator;
use super::{Outcome, Running, State, Worker};
use crate::checker::{Grant, name};
use crate::client::Client;
use crate::clock::{MILLIS, SECONDS};
use crate::sabotage::Sabotage;
use crate::stage::Stage;
use redlatch::internal::engine::{
    Acquire, Acquired, Extend, Extended, Extras, Lease, Patience, Release, Request, Ttl,
};
use std::sync::Arc;
use std::time::Duration;

/// The maximum number of rounds of an attempt: a fencing token may need a confirmation.
pub(super) const ROUNDS_MAX: u32 = 2;

/// How long counters live: longer than any history.
const COUNTER_LIFE: Duration = Duration::from_secs(3_600);

fn key(resource: u64) -> Arc<[u8]> {
    format!("lock:{resource}").into_bytes().into()
}

impl Worker {
    pub(super) fn begin(&mut self, client: &mut Client, stage: &mut Stage) {
        let now = client.now(stage);
        let round = client.rules.node_timeout;
        if stage.is_over {
            return;
        }
        if stage.is_calm {
            // No more locks, but requests are needed so that the event loop runs.
            let ping = Request::ping(&client.rules, now);
            self.start(client, stage, Running::Ping(Some(ping)), None);
            return self.advance(client, stage);
        }
        self.wanted = self.choose(stage);
        if stage.random.chance(stage.options.operator_permille) {
            return self.look_at_lock(client, stage);
        }
        let mut keys = self.wanted.iter().map(|resource| key(*resource));
        let first = keys.next().expect("at least one is wanted");
        let extras = self.extras(stage, keys.collect());
        let ttl = self.ttl(stage);
        let wait = Duration::from_millis(stage.random.below(stage.options.ttl.1));
        let round = round * if extras.is_some() { ROUNDS_MAX } else { 1 };
        let (patience, limit) = if stage.random.chance(stage.options.patient_permille) {
            (Patience::Forever, None)
        } else if stage.random.chance(500) {
            (Patience::Once, Some(now.after(round)))
        } else {
            (Patience::Until(now.after(wait)), Some(now.after(wait.max(round))))
        };
        let acquire = Acquire::new(Arc::clone(&client.rules), first, ttl, patience).with(extras);
        stage.say(|| format!("client {:?}.{} wants {:?}", client.name, self.index, self.wanted));
        self.join(client, stage, acquire, limit, patience != Patience::Once);
    }

    /// The resources that it wants next: one, or several at once.
    fn choose(&self, stage: &mut Stage) -> Vec<u64> {
        let count = stage.options.resources;
        if !stage.random.chance(stage.options.several_permille) {
            return vec![stage.random.below(count)];
        }
        let wanted = stage.random.between(1, count) as usize;
        stage.random.subset(count as usize, wanted).into_iter().map(|it| it as u64).collect()
    }

    /// The parts of the lock besides one key and a token.
    fn extras(&self, stage: &mut Stage, more_keys: Vec<Arc<[u8]>>) -> Option<Arc<Extras>> {
        let is_fenced = stage.random.chance(stage.options.fence_permille);
        let mut extras = Extras::default();
        extras.fence = is_fenced.then(|| Ttl::from_duration(COUNTER_LIFE).expect("within limits"));
        extras.more_keys = more_keys;
        (extras != Extras::default()).then(|| Arc::new(extras))
    }

    /// Inspects a lock, and force-releases it.
    fn look_at_lock(&mut self, client: &mut Client, stage: &mut Stage) {
        let pause = Duration::from_millis(stage.random.below(stage.options.ttl.1 / 4));
        let (rules, now) = (Arc::clone(&client.rules), client.now(stage));
        let operator = Operator::new(rules, key(self.wanted[0]), now, pause);
        stage.tally.fault("operator looks");
        self.start(client, stage, Running::Operator(operator), None);
        self.advance(client, stage);
    }

    /// The ttl of a lock or an extension.
    pub(super) fn ttl(&self, stage: &mut Stage) -> Ttl {
        let (shortest, longest) = stage.options.ttl;
        let shortest = shortest.min(longest);
        let millis = if !stage.options.ttls_differ {
            stage.random.between(shortest, longest)
        } else if self.lease.is_some() {
            stage.random.pick(&[shortest, shortest, longest / 2, longest])
        } else {
            shortest
        };
        Ttl::from_duration(Duration::from_millis(millis)).expect("within the limits")
    }

    pub(super) fn finish(&mut self, client: &mut Client, stage: &mut Stage, outcome: Outcome) {
        match outcome {
            Outcome::Acquired(Acquired::Held(mut lease)) => {
                if stage.options.sabotage == Some(Sabotage::ValidityFromReply) {
                    let ttl = client.rules.drift.validity(lease.ttl);
                    lease.valid_until = client.now(stage).after(ttl);
                }
                if stage.options.sabotage == Some(Sabotage::DriftIgnored) {
                    lease.valid_until = lease.valid_until.after(Duration::from_millis(2));
                }
                self.take(client, stage, lease);
            }
            Outcome::Extended(extended) => self.extended(client, stage, extended),
            other => {
                stage.say(|| format!("client {:?}.{}: {other:?}", client.name, self.index));
                self.bear(stage, &other);
                self.pass_on(client, stage, None);
                self.rest(client, stage);
            }
        }
    }

    /// Holds a lock from now on.
    pub(super) fn take(&mut self, client: &Client, stage: &mut Stage, lease: Lease) {
        let until = client.clock.when(lease.valid_until);
        let token = name(lease.token.as_bytes());
        let (who, what, fence) = (client.name, &self.wanted, lease.fence);
        stage.say(|| format!("client {who:?} holds {what:?} by {token:?} {fence:?} until {until}"));
        let (asked, now) = (client.clock.when(lease.since), stage.queue.now());
        stage.checker.granted(&self.wanted, &Grant { token, asked, now, until, fence });
        stage.tally.grants += 1;
        stage.tally.fenced += u64::from(lease.fence.is_some());
        stage.tally.of_several += u64::from(self.wanted.len() > 1);
        self.lease = Some(lease);
        self.hold(client, stage);
    }

    fn extended(&mut self, client: &mut Client, stage: &mut Stage, extended: Extended) {
        stage.say(|| format!("client {:?}.{}: {extended:?}", client.name, self.index));
        let now = stage.queue.now();
        let Some(held) = &mut self.lease else { return };
        match extended {
            Extended::Confirmed(lease) => {
                let until = client.clock.when(lease.valid_until);
                stage.checker.extended(name(lease.token.as_bytes()), until);
                stage.tally.extensions += 1;
                *held = lease;
            }
            Extended::Unanswered(lease) => *held = lease,
            Extended::Lost(mut lease) => {
                lease.valid_until = held.valid_until.min(client.clock.read(now));
                stage.checker.left(name(held.token.as_bytes()), now);
                *held = lease;
            }
            Extended::HeldTooLong(_) => {}
        }
        if stage.options.sabotage == Some(Sabotage::ExtensionAssumed) {
            held.valid_until = self.began.after(client.rules.drift.validity(held.ttl));
            let until = client.clock.when(held.valid_until);
            stage.checker.extended(name(held.token.as_bytes()), until);
        }
        self.hold(client, stage);
    }

    /// Holds the lock for a while.
    pub(super) fn hold(&mut self, client: &Client, stage: &mut Stage) {
        let now = stage.queue.now();
        let Some(lease) = &self.lease else { return };
        let valid = client.clock.when(lease.valid_until).saturating_sub(now);
        let work = if stage.is_calm {
            stage.random.below(5 * MILLIS)
        } else if stage.random.chance(stage.options.greedy_permille) {
            valid + stage.random.below(20 * MILLIS)
        } else if stage.options.ttls_differ && stage.random.chance(700) {
            // Extends it again soon, so that several extensions are in flight.
            stage.random.below(valid / 4 + MILLIS)
        } else {
            stage.random.below(valid + MILLIS)
        };
        self.state = State::Holding;
        self.sleep(client, stage, now + work);
    }

    /// Extends or releases the lock after holding it for a while.
    pub(super) fn go_on(&mut self, client: &mut Client, stage: &mut Stage) {
        let now = client.now(stage);
        let Some(lease) = self.lease.clone() else { return };
        if !stage.is_calm && stage.random.chance(stage.options.extend_permille) {
            let ttl = self.ttl(stage);
            let extend = Extend::new(Arc::clone(&client.rules), lease, ttl, now);
            let limit = now.after(client.rules.node_timeout);
            self.start(client, stage, Running::Extend(extend), Some(limit));
            return self.advance(client, stage);
        }
        stage.checker.left(name(lease.token.as_bytes()), stage.queue.now());
        stage.checker.over(name(lease.token.as_bytes()));
        self.lease = None;
        if self.pass_on(client, stage, Some(&lease)) {
            return self.rest(client, stage);
        }
        if stage.random.chance(500) {
            let release = Release::new(&client.rules, &lease, now);
            let limit = now.after(client.rules.node_timeout);
            self.start(client, stage, Running::Release(release), Some(limit));
            self.advance(client, stage);
        } else {
            // Dropped.
            client.post(stage, &lease.undo(now, &client.rules));
            self.pass_on(client, stage, None);
            self.rest(client, stage);
        }
    }

    pub(super) fn rest(&mut self, client: &Client, stage: &mut Stage) {
        self.state = State::Idle;
        let pause = match (stage.is_calm, self.index) {
            (false, _) => stage.random.below(stage.options.rest),
            // One thread is enough to keep the event loop running.
            (true, 0) => stage.random.below(SECONDS),
            (true, _) => return,
        };
        self.sleep(client, stage, stage.queue.now() + pause);
    }
}
