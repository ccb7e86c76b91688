//! What a thread wants next: which lock, all of it or a share, for how long, and how long it waits.

use super::Worker;
use super::operation::Running;
use super::operator::Operator;
use crate::client::Client;
use crate::clock::SECONDS;
use crate::context::Context;
use redlatch_protocol::engine::{Acquire, LockAttributes, Request, Share, Ttl, Wait};
use std::sync::Arc;
use std::time::Duration;

/// The maximum number of rounds of an attempt: a fencing token may need a confirmation.
pub(super) const ROUNDS_MAX: u32 = 2;

/// How long counters live: longer than any history.
const COUNTER_LIFE: Duration = Duration::from_secs(3_600);

pub(super) fn key(resource: u64) -> Arc<[u8]> {
    format!("lock:{resource}").into_bytes().into()
}

impl Worker {
    pub(super) fn begin(&mut self, client: &mut Client, context: &mut Context) {
        let now = client.now(context);
        let round = client.rules.node_timeout;
        if context.is_over {
            return;
        }
        if context.options.queueing.abandons_waiters && self.called_at > 0 {
            return;
        }
        if client.is_cancelled && !context.has_faults_ended {
            return self.sleep(client, context, context.queue.now() + SECONDS / 5);
        }
        if context.options.registers.is_some() && self.use_register(client, context) {
            return;
        }
        if context.has_faults_ended {
            // No more locks, but requests are needed so that the event loop runs.
            let ping = Request::ping(&client.rules, now);
            self.start(client, context, Running::Ping(Some(ping)), None);
            return self.advance(client, context);
        }
        let examines = context.options.examine_permille;
        if examines > 0 && context.random.chance(examines) {
            let examination = Request::examination(&client.rules, now);
            self.start(client, context, Running::Ping(Some(examination)), None);
            return self.advance(client, context);
        }
        self.wanted = self.choose(context);
        self.called_at = context.queue.now();
        self.share = self.choose_share(context);
        if context.random.chance(context.options.operator_permille) {
            return self.look_at_lock(client, context);
        }
        let mut keys = self.wanted.iter().map(|resource| key(*resource));
        let first = keys.next().expect("at least one is wanted");
        let attributes = self.attributes(context, keys.collect());
        let ttl = self.ttl(context);
        let wait = Duration::from_millis(context.random.below(context.options.queueing.wait_max));
        let round = round * if attributes.is_some() { ROUNDS_MAX } else { 1 };
        let (wait, limit) = if context.random.chance(context.options.patient_permille) {
            (Wait::Forever, None)
        } else if context.random.chance(500) {
            (Wait::No, Some(now.after(round)))
        } else {
            (
                Wait::Until(now.after(wait)),
                Some(now.after(wait.max(round))),
            )
        };
        let acquire = Acquire::new(Arc::clone(&client.rules), first, ttl, wait).with(attributes);
        context.trace(|| {
            format!(
                "client {:?}.{} wants {:?}",
                client.name, self.index, self.wanted
            )
        });
        self.join(client, context, acquire, limit, wait);
    }

    /// The resources that it wants next: one, or several at once.
    fn choose(&self, context: &mut Context) -> Vec<u64> {
        let count = context.options.resources;
        if !context.random.chance(context.options.several_permille) {
            return vec![context.random.below(count)];
        }
        let wanted = context.random.between(1, count) as usize;
        context
            .random
            .subset(count as usize, wanted)
            .into_iter()
            .map(|it| it as u64)
            .collect()
    }

    /// The share that it wants, if not all of the lock.
    fn choose_share(&self, context: &mut Context) -> Option<Share> {
        let sharing = context.options.sharing;
        let may_share = self.wanted.len() == 1 && self.wanted[0] < sharing.resources;
        if !may_share || !context.random.chance(sharing.permille) {
            return None;
        }
        if context.random.chance(sharing.readers_permille) {
            return Some(Share::Reader);
        }
        Some(Share::Permit {
            of: context.random.pick(&sharing.permits),
            number: None,
        })
    }

    /// The parts of the lock besides one key and a token.
    fn attributes(
        &self,
        context: &mut Context,
        more_keys: Vec<Arc<[u8]>>,
    ) -> Option<Arc<LockAttributes>> {
        let is_fenced = context.random.chance(context.options.fence_permille);
        let fence = is_fenced.then(|| Ttl::from_duration(COUNTER_LIFE).expect("within limits"));
        let attributes = LockAttributes {
            fence,
            more_keys,
            share: self.share,
            ..LockAttributes::default()
        };
        (attributes != LockAttributes::default()).then(|| Arc::new(attributes))
    }

    /// Inspects a lock, and force-releases it.
    fn look_at_lock(&mut self, client: &mut Client, context: &mut Context) {
        let pause = Duration::from_millis(context.random.below(context.options.ttl.1 / 4));
        let rules = Arc::clone(&client.rules);
        let now = client.now(context);
        let operator = Operator::new(rules, key(self.wanted[0]), now, pause);
        context.tally.fault("operator looks");
        self.start(client, context, Running::Operator(operator), None);
        self.advance(client, context);
    }

    /// The ttl of a lock or an extension.
    pub(super) fn ttl(&self, context: &mut Context) -> Ttl {
        let (shortest, longest) = context.options.ttl;
        let shortest = shortest.min(longest);
        let millis = if !context.options.ttls_differ {
            context.random.between(shortest, longest)
        } else if self.held.is_some() {
            context
                .random
                .pick(&[shortest, shortest, longest / 2, longest])
        } else {
            shortest
        };
        Ttl::from_duration(Duration::from_millis(millis)).expect("within the limits")
    }
}
