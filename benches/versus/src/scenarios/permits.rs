//! Clients that always want a permit: each is a process with connections of its own, holds one of
//! eight permits for a while, releases it and waits for that, and asks again. There are twice as
//! many clients as permits. A permit that two hold at once ends the program.

mod tables;

use super::Context;
use crate::candidate::{Backend, Candidate};
use crate::contender::{Contender, Order};
use crate::ensemble::{Counts, Ensemble};
use crate::handoffs::{Handoffs, Record, nanos, now};
use crate::peers::Peer;
use crate::report::Findings;
use crate::traffic::{self, Monitor, Usage};
use std::ops::Range;
use std::thread;
use std::time::Duration;

const CLIENTS: usize = 16;
const HOLD: Duration = Duration::from_millis(20);

const SECONDS: u64 = 15;
const SECONDS_QUICK: u64 = 4;
const RUNS: usize = 3;

/// Until all contend.
const WARM_UP: Duration = Duration::from_millis(1000);

/// One run of each library after the other, several times.
struct Series {
    name: String,
    runs: Vec<Run>,
}

struct Run {
    handoffs: Handoffs,
    traffic: Traffic,
}

enum Traffic {
    Redis(Commands),
    /// Per grant.
    ZooKeeper(Counts),
}

/// What nodes of Redis did for a grant.
struct Commands {
    /// Per grant and node.
    sent: f64,
    inner: f64,
    joins: f64,
    received: f64,
    /// Seconds.
    evalsha: f64,
    eval: f64,
    /// Seconds of all servers together, per grant.
    servers_cpu: f64,
}

pub fn run(context: &Context) -> Vec<Findings> {
    let mut lanes = vec![Candidate::on_redis(&context.servers, "redlatch", Peer::RedlatchPermits)];
    lanes.retain(|lane| context.handoff.has_lane(&lane.name));
    let series = |lane: &Candidate<'_>| Series { name: lane.name.clone(), runs: Vec::new() };
    let mut all: Vec<_> = lanes.iter().map(series).collect();
    let count = if context.is_quick { 1 } else { RUNS };
    for index in 0..context.handoff.turns.unwrap_or(count) {
        for (lane, series) in lanes.iter().zip(&mut all) {
            series.runs.push(measure(context, lane, index));
        }
    }
    vec![tables::grants(context, &all), tables::costs(context, &all)]
}

fn hold(context: &Context) -> Duration {
    context.handoff.hold.unwrap_or(HOLD)
}

fn clients(context: &Context) -> usize {
    context.handoff.clients.unwrap_or(CLIENTS)
}

fn measure(context: &Context, lane: &Candidate<'_>, index: usize) -> Run {
    let mut contenders = Contender::start_all(clients(context), lane.peer, &lane.urls);
    let length = if context.is_quick { SECONDS_QUICK } else { SECONDS };
    let duration = context.handoff.duration.unwrap_or(Duration::from_secs(length));
    let start = now() + nanos(Duration::from_millis(50));
    let opened = start + nanos(WARM_UP);
    let closed = opened + nanos(duration);
    let end = closed + nanos(duration / 4);
    let prefix = format!("versus-{}:permits{index}", lane.peer.word());
    let order = Order {
        resource: format!("{prefix}:same"),
        start,
        end,
        hold: hold(context),
        pause: context.handoff.pause,
        every: Duration::ZERO,
        asks: usize::MAX,
    };
    contenders.iter_mut().for_each(|contender| contender.begin(&order));
    sleep_until(opened);
    let counter = Counter::start(context, lane);
    sleep_until(closed);
    let counted = counter.stop(context, end);
    let records: Vec<Vec<Record>> = contenders.iter_mut().map(Contender::finish).collect();
    drop(contenders);
    if matches!(lane.backend, Backend::Redis) {
        context.servers.expect_gone(&prefix, context.nodes);
    }
    let handoffs = Handoffs::new(&records, opened..closed);
    assert!(handoffs.count() > 0, "no permit was granted at all");
    let (traffic, handoffs) = counted.per_grant(context, handoffs, opened..closed);
    Run { handoffs, traffic }
}

/// Counts what servers do in the measured time.
enum Counter<'a> {
    Redis { before: Usage, cpu: Duration },
    ZooKeeper(&'a Ensemble, Counts),
}

/// What they did, and for Redis, what one of them did in the time behind it.
enum Counted {
    Redis { usage: Usage, cpu: Duration, commands: traffic::Commands, watched: Range<u64> },
    ZooKeeper(Counts),
}

impl<'a> Counter<'a> {
    fn start(context: &Context, lane: &Candidate<'a>) -> Self {
        let servers = &context.servers;
        match lane.backend {
            Backend::ZooKeeper(ensemble) => Self::ZooKeeper(ensemble, ensemble.counts()),
            Backend::Redis | Backend::Etcd => {
                Self::Redis { before: Usage::of(servers), cpu: servers.cpu_time() }
            }
        }
    }

    fn stop(self, context: &Context, end: u64) -> Counted {
        let servers = &context.servers;
        match self {
            Self::ZooKeeper(ensemble, before) => Counted::ZooKeeper(ensemble.counts_since(&before)),
            Self::Redis { before, cpu } => {
                let usage = Usage::since(servers, &before);
                let cpu = servers.cpu_time() - cpu;
                let monitor = Monitor::start(servers.addresses()[context.nodes - 1]);
                let began = now();
                sleep_until(end);
                Counted::Redis { usage, cpu, commands: monitor.stop(), watched: began..now() }
            }
        }
    }
}

impl Counted {
    fn per_grant(
        self,
        context: &Context,
        handoffs: Handoffs,
        window: Range<u64>,
    ) -> (Traffic, Handoffs) {
        let grants = handoffs.count() as f64;
        match self {
            Self::ZooKeeper(counts) => (Traffic::ZooKeeper(counts.per(grants)), handoffs),
            Self::Redis { usage, cpu, commands, watched } => {
                let handoffs = handoffs.within(watched);
                let seen = handoffs.count().max(1) as f64;
                let commands = Commands {
                    sent: commands.sent as f64 / seen,
                    inner: commands.inner as f64 / seen,
                    joins: commands.joins as f64 / seen,
                    received: usage.received / grants / context.nodes as f64,
                    evalsha: usage.evalsha.mean(),
                    eval: usage.eval.mean(),
                    servers_cpu: cpu.as_secs_f64() / grants,
                };
                (Traffic::Redis(commands), handoffs.within(window))
            }
        }
    }
}

fn sleep_until(end: u64) {
    thread::sleep(Duration::from_nanos(end.saturating_sub(now())));
}
