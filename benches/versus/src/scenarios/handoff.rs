//! Clients that always want one lock: each is a process with connections of its own, holds the lock
//! for a while, releases it and waits for that, and asks again. Measured is in which order they are
//! served, and how long the lock lies free between two holders.

mod tables;

use super::Context;
use crate::contender::{Contender, Order};
use crate::handoffs::{Handoffs, Record, nanos, now};
use crate::peers::Peer;
use crate::report::Findings;
use crate::services::Service;
use crate::traffic::{self, Commands, Monitor};
use std::thread;
use std::time::Duration;

/// The command line's word on this scenario.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub clients: Option<usize>,
    pub hold: Option<Duration>,
    /// The longest pause after a release.
    pub pause: Duration,
    /// How much earlier a client must have asked to count as overtaken.
    pub margin: Option<Duration>,
    pub duration: Option<Duration>,
}

/// One run of each peer.
#[derive(Clone, Copy)]
struct Case {
    clients: usize,
    hold: Duration,
    pause: Duration,
    margin: Duration,
    duration: Duration,
    /// Whether the figures are wanted for the chart.
    is_charted: bool,
}

/// Clients, milliseconds of holding, seconds of measuring, and the same with `--quick`.
const CASES: [(usize, u64, u64, u64); 3] = [(8, 20, 15, 4), (64, 20, 30, 10), (8, 1, 10, 3)];

const SECONDS: u64 = 15;

/// Clients that ask within the time that a request takes have no order. A lock that is held for
/// less than this time is asked for more often.
const MARGIN: Duration = Duration::from_millis(5);
const MARGIN_SHORT: Duration = Duration::from_millis(1);

/// Acquisitions of a free lock by one client, before the others begin.
const SOLO: usize = 300;

/// Fewer than that, if it takes longer.
const SOLO_LIMIT: Duration = Duration::from_secs(10);

/// Until all contend, at least.
const WARM_UP: Duration = Duration::from_millis(500);

const PEERS: [Peer; 3] = [Peer::Redlatch, Peer::RslockSingle, Peer::RslockDefaults];

/// What was measured of a peer.
struct Run {
    peer: Peer,
    handoffs: Handoffs,
    /// The median time to acquire a free lock.
    solo: Duration,
    /// Per grant and node.
    traffic: Option<Traffic>,
}

struct Traffic {
    calls: f64,
    sent: f64,
    inner: f64,
}

pub fn run(context: &Context) -> Vec<Findings> {
    let directory = context.servers.directory();
    let services =
        [(Peer::Zookeeper, Service::zookeeper(directory)), (Peer::Etcd, Service::etcd(directory))];
    let mut others = Vec::new();
    for (peer, service) in services {
        match service {
            Ok(service) => others.push((peer, service)),
            Err(why) => println!("{} is not measured: {why}\n", peer.name()),
        }
    }
    let mut findings = Vec::new();
    for case in cases(context) {
        let urls = context.servers.urls();
        let mut runs: Vec<_> =
            PEERS.iter().map(|&peer| measure(context, &case, peer, &urls)).collect();
        for (peer, service) in &others {
            runs.push(measure(context, &case, *peer, std::slice::from_ref(&service.url)));
        }
        findings
            .extend([tables::order(context, &case, &runs), tables::costs(context, &case, &runs)]);
    }
    findings
}

fn cases(context: &Context) -> Vec<Case> {
    let options = &context.handoff;
    let case = |clients, hold: Duration, seconds, is_charted| Case {
        clients,
        hold,
        pause: options.pause,
        margin: options.margin.unwrap_or(if hold < MARGIN { MARGIN_SHORT } else { MARGIN }),
        duration: options.duration.unwrap_or(Duration::from_secs(seconds)),
        is_charted,
    };
    if options.clients.is_some() || options.hold.is_some() {
        let seconds = if context.is_quick { SECONDS / 3 } else { SECONDS };
        let hold = options.hold.unwrap_or(Duration::from_millis(CASES[0].1));
        return vec![case(options.clients.unwrap_or(CASES[0].0), hold, seconds, false)];
    }
    let of_row = |(clients, hold, seconds, quick): (usize, u64, u64, u64)| {
        let seconds = if context.is_quick { quick } else { seconds };
        case(clients, Duration::from_millis(hold), seconds, options.pause.is_zero())
    };
    CASES.map(of_row).into()
}

fn measure(context: &Context, case: &Case, peer: Peer, urls: &[String]) -> Run {
    let servers = &context.servers;
    let is_redis = PEERS.contains(&peer);
    let mut contenders = Contender::start_all(case.clients, peer, urls);
    let prefix = format!("versus-{}:handoff{}x{}", peer.word(), case.clients, nanos(case.hold));
    let mut order = Order {
        resource: format!("{prefix}:solo"),
        start: now(),
        end: now() + nanos(SOLO_LIMIT),
        hold: Duration::ZERO,
        pause: Duration::ZERO,
        every: Duration::ZERO,
        asks: SOLO,
    };
    contenders[0].begin(&order);
    let solo = contenders[0].finish();
    let solo = Handoffs::new(&[solo], 0..u64::MAX).waits().quantile(0.5);

    // In the first part all come in, the second is measured, and in the third commands are counted.
    let start = now() + nanos(Duration::from_millis(50));
    let opened = start + nanos(WARM_UP.max(case.duration / 10));
    let closed = opened + nanos(case.duration);
    let end = closed + nanos(case.duration / 4);
    order.resource = format!("{prefix}:same");
    (order.start, order.end, order.asks) = (start, end, usize::MAX);
    (order.hold, order.pause) = (case.hold, case.pause);
    contenders.iter_mut().for_each(|contender| contender.begin(&order));
    sleep_until(opened);
    let before = traffic::calls(servers);
    sleep_until(closed);
    let calls = traffic::calls_since(servers, &before);
    let commands = is_redis.then(|| {
        let monitor = Monitor::start(servers.addresses()[context.nodes - 1]);
        let began = now();
        sleep_until(end);
        (monitor.stop(), began..now())
    });
    let records: Vec<Vec<Record>> = contenders.iter_mut().map(Contender::finish).collect();
    drop(contenders);
    if is_redis {
        servers.expect_gone(&prefix, context.nodes);
    }
    let mut handoffs = Handoffs::new(&records, 0..0);
    let mut traffic = None;
    if let Some((Commands { sent, inner, .. }, counted)) = commands {
        handoffs = handoffs.within(counted);
        let grants = handoffs.count().max(1) as f64;
        traffic = Some(Traffic { calls, sent: sent as f64 / grants, inner: inner as f64 / grants });
    }
    let handoffs = handoffs.within(opened..closed);
    assert!(handoffs.count() > 0, "{} took no lock at all", peer.name());
    if let Some(traffic) = &mut traffic {
        traffic.calls /= handoffs.count() as f64;
    }
    Run { peer, handoffs, solo, traffic }
}

fn sleep_until(end: u64) {
    thread::sleep(Duration::from_nanos(end.saturating_sub(now())));
}
