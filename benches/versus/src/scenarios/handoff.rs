//! Clients that always want one lock: each is a process with connections of its own, holds the lock
//! for a while, releases it and waits for that, and asks again. Measured is in which order they are
//! served, and how long the lock lies free between two holders.

mod tables;

use super::Context;
use crate::candidate::{Backend, Candidate};
use crate::contender::{Contender, Order};
use crate::ensemble::{self, Counts, Ensemble};
use crate::handoffs::{Handoffs, Record, nanos, now};
use crate::lane::median;
use crate::peers::Peer;
use crate::report::Findings;
use crate::services::Service;
use crate::traffic::{self, Commands, Monitor};
use std::ops::Range;
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
    /// How often each library is measured, in turns; tables have the medians.
    pub turns: Option<usize>,
    /// Words of the names of those that are measured, if not all.
    pub lanes: Option<Vec<String>>,
}

impl Options {
    /// Whether the library with this name in tables is measured.
    pub fn has_lane(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.lanes.as_ref().is_none_or(|words| words.iter().any(|word| name.contains(word)))
    }
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

const PEERS: [Peer; 2] = [Peer::Redlatch, Peer::RslockSingle];

const ON_ZOOKEEPER: [(&str, Peer); 2] = [("redlatch", Peer::Redlatch), ("kazoo", Peer::Kazoo)];

/// What was measured of a library, turn by turn.
struct Series {
    name: String,
    peer: Peer,
    runs: Vec<Run>,
}

struct Run {
    handoffs: Handoffs,
    /// The median time to acquire a free lock.
    solo: Duration,
    traffic: Traffic,
}

enum Traffic {
    /// Per grant and node.
    Redis {
        calls: f64,
        sent: f64,
        inner: f64,
    },
    /// Per grant.
    ZooKeeper(Counts),
    Unknown,
}

impl Series {
    fn median(&self, figure: impl Fn(&Run) -> f64) -> f64 {
        median(self.runs.iter().map(figure).collect())
    }

    fn median_time(&self, figure: impl Fn(&Run) -> Duration) -> Duration {
        Duration::from_secs_f64(self.median(|run| figure(run).as_secs_f64()))
    }
}

pub fn run(context: &Context) -> Vec<Findings> {
    let directory = context.servers.directory();
    let ensembles = ensemble::start_all(directory);
    let etcd = Service::etcd(directory);
    if let Err(why) = &etcd {
        println!("{} is not measured: {why}\n", Peer::Etcd.name());
    }
    let on_redis = |peer: Peer| Candidate::on_redis(&context.servers, peer.name(), peer);
    let mut lanes: Vec<_> = PEERS.map(on_redis).into();
    for ensemble in &ensembles {
        lanes.extend(Candidate::on_zookeeper(ensemble, ON_ZOOKEEPER));
    }
    lanes.extend(etcd.iter().map(Candidate::on_etcd));
    lanes.retain(|lane| context.handoff.has_lane(&lane.name));
    let mut findings = Vec::new();
    for case in cases(context) {
        let series = take_turns(context, &case, &lanes);
        findings.extend([
            tables::order(context, &case, &series),
            tables::costs(context, &case, &series),
        ]);
    }
    findings
}

fn take_turns(context: &Context, case: &Case, lanes: &[Candidate<'_>]) -> Vec<Series> {
    let series = |lane: &Candidate<'_>| Series {
        name: lane.name.clone(),
        peer: lane.peer,
        runs: Vec::new(),
    };
    let mut all: Vec<_> = lanes.iter().map(series).collect();
    for _ in 0..context.handoff.turns.unwrap_or(1) {
        for (lane, series) in lanes.iter().zip(&mut all) {
            series.runs.push(measure(context, case, lane));
        }
    }
    all
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
        // The chart has one of them: with many clients, waits and order differ the most.
        let is_charted = options.pause.is_zero() && clients == 64;
        case(clients, Duration::from_millis(hold), seconds, is_charted)
    };
    CASES.map(of_row).into()
}

fn measure(context: &Context, case: &Case, lane: &Candidate<'_>) -> Run {
    let servers = &context.servers;
    let peer = lane.peer;
    let mut contenders = Contender::start_all(case.clients, peer, &lane.urls);
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
    let before = match lane.backend {
        Backend::Redis => Before::Redis(traffic::calls(servers)),
        Backend::ZooKeeper(ensemble) => Before::ZooKeeper(ensemble, ensemble.counts()),
        Backend::Etcd => Before::Unknown,
    };
    sleep_until(closed);
    let counted = match before {
        Before::Redis(before) => {
            let calls = traffic::calls_since(servers, &before);
            let monitor = Monitor::start(servers.addresses()[context.nodes - 1]);
            let began = now();
            sleep_until(end);
            Counted::Redis { calls, commands: monitor.stop(), watched: began..now() }
        }
        Before::ZooKeeper(ensemble, before) => Counted::ZooKeeper(ensemble.counts_since(&before)),
        Before::Unknown => Counted::Unknown,
    };
    let records: Vec<Vec<Record>> = contenders.iter_mut().map(Contender::finish).collect();
    drop(contenders);
    if matches!(lane.backend, Backend::Redis) {
        servers.expect_gone(&prefix, context.nodes);
    }
    let handoffs = Handoffs::new(&records, opened..closed);
    assert!(handoffs.count() > 0, "{} took no lock at all", lane.name);
    let (traffic, handoffs) = counted.per_grant(handoffs, opened..closed);
    Run { handoffs, solo, traffic }
}

/// What servers had counted when the measured time began.
enum Before<'a> {
    Redis(Vec<i64>),
    ZooKeeper(&'a Ensemble, Counts),
    Unknown,
}

/// What they have counted since, and for Redis, in the time behind it that one was watched.
enum Counted {
    Redis { calls: f64, commands: Commands, watched: Range<u64> },
    ZooKeeper(Counts),
    Unknown,
}

impl Counted {
    fn per_grant(self, handoffs: Handoffs, window: Range<u64>) -> (Traffic, Handoffs) {
        let grants = handoffs.count() as f64;
        match self {
            Self::Redis { calls, commands: Commands { sent, inner, .. }, watched } => {
                let handoffs = handoffs.within(watched);
                let seen = handoffs.count().max(1) as f64;
                let (calls, sent, inner) =
                    (calls / grants, sent as f64 / seen, inner as f64 / seen);
                (Traffic::Redis { calls, sent, inner }, handoffs.within(window))
            }
            Self::ZooKeeper(counts) => (Traffic::ZooKeeper(counts.per(grants)), handoffs),
            Self::Unknown => (Traffic::Unknown, handoffs),
        }
    }
}

fn sleep_until(end: u64) {
    thread::sleep(Duration::from_nanos(end.saturating_sub(now())));
}
