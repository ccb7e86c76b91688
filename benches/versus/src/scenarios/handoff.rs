//! Clients that always want one lock: each is a process with connections of its own, holds the lock
//! for a while, releases it and waits for that, and asks again. Measured is in which order they are
//! served, and how long the lock lies free between two holders.

use super::Context;
use crate::contender::{Contender, Order};
use crate::figures::{Group, Unit};
use crate::handoffs::{Handoffs, Record, nanos, now};
use crate::peers::Peer;
use crate::report::{Findings, Table, rate, time};
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
        findings.extend([order(context, &case, &runs), costs(context, &case, &runs)]);
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
    let prefix = format!("versus:{}:handoff{}x{}", peer.word(), case.clients, nanos(case.hold));
    let mut order = Order {
        resource: format!("{prefix}:solo"),
        start: now(),
        end: now() + nanos(SOLO_LIMIT),
        hold: Duration::ZERO,
        pause: Duration::ZERO,
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
    if let Some((Commands { sent, inner }, counted)) = commands {
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

fn title(context: &Context, case: &Case, what: &str) -> String {
    let pause = match case.pause {
        Duration::ZERO => String::new(),
        pause => format!(", pauses of up to {}", time(pause)),
    };
    let (clients, hold) = (case.clients, time(case.hold));
    context.title(&format!("handoff, {clients} clients that hold for {hold}{pause}: {what}"))
}

/// Who is served when.
fn order(context: &Context, case: &Case, runs: &[Run]) -> Findings {
    let mut table = Table::new(&[
        "library",
        "grants/s",
        "of rslock's",
        "overtaken",
        "strictly",
        "slowest/fastest",
        "grants",
        "waited p50",
        "p99",
        "p99 in rounds",
    ]);
    let rslock = runs.iter().find(|run| run.peer == Peer::RslockSingle);
    let rslock = rslock.map_or(f64::NAN, |run| run.handoffs.rate());
    for Run { peer, handoffs, .. } in runs {
        let (fewest, most) = handoffs.fewest_and_most();
        let (waits, free) = (handoffs.waits(), handoffs.free().quantile(0.5));
        let round = (case.hold + free).as_secs_f64() * case.clients as f64;
        table.row([
            peer.name().to_owned(),
            rate(handoffs.rate()),
            format!("{:.2}", handoffs.rate() / rslock),
            format!("{:.2}", handoffs.overtaken(case.margin)),
            format!("{:.2}", handoffs.overtaken(Duration::ZERO)),
            format!("{:.2}", fewest as f64 / most.max(1) as f64),
            format!("{fewest}/{most}"),
            time(waits.quantile(0.5)),
            time(waits.quantile(0.99)),
            format!("{:.2}", waits.quantile(0.99).as_secs_f64() / round),
        ]);
    }
    Findings {
        title: title(context, case, "order"),
        about: format!(
            "{} processes, each a client of its own, always want one lock. `overtaken`: how many \
             other clients waited, per grant, that had asked more than {} before the one that got \
             the lock; `strictly`: that had asked earlier at all. `slowest/fastest`: grants of the \
             client with the fewest by those of the one with the most, in {:.0} s. `p99 in \
             rounds`: by clients x (time held + median time that the lock lies free). `of \
             rslock's`: of the one on tokio current-thread, with a retry delay of 5 ms.",
            case.clients,
            time(case.margin),
            case.duration.as_secs_f64(),
        ),
        table,
        figures: Vec::new(),
        groups: if case.is_charted { groups(case, runs) } else { Vec::new() },
    }
}

/// What a hand-over takes, in time and in commands.
fn costs(context: &Context, case: &Case, runs: &[Run]) -> Findings {
    let mut table = Table::new(&[
        "library",
        "lies free p50",
        "p99",
        "solo acquire p50",
        "free/solo p50",
        "p99",
        "sent",
        "from scripts",
        "calls by INFO",
    ]);
    for Run { peer, handoffs, solo, traffic } in runs {
        let free = handoffs.free();
        let (p50, p99) = (free.quantile(0.5), free.quantile(0.99));
        let times = |free: Duration| format!("{:.1}", free.as_secs_f64() / solo.as_secs_f64());
        let count = |count: fn(&Traffic) -> f64| match traffic {
            Some(traffic) => format!("{:.1}", count(traffic)),
            None => String::new(),
        };
        table.row([
            peer.name().to_owned(),
            time(p50),
            time(p99),
            time(*solo),
            times(p50),
            times(p99),
            count(|traffic| traffic.sent),
            count(|traffic| traffic.inner),
            count(|traffic| traffic.calls),
        ]);
    }
    Findings {
        title: title(context, case, "hand-over"),
        about: "`lies free`: from just before the call that releases the lock to the return of \
                the next holder's call that waits for it. `solo acquire`: the time to acquire a \
                free lock, by one of the same processes alone, just before. Per grant and node: \
                `sent`: commands that clients sent, and `from scripts`: calls that scripts made, \
                both counted with MONITOR on one node after the times were measured; `calls by \
                INFO`: total_commands_processed of all nodes while they were, which has both."
            .to_owned(),
        table,
        figures: Vec::new(),
        groups: Vec::new(),
    }
}

fn groups(case: &Case, runs: &[Run]) -> Vec<Group> {
    let [redlatch, rslock, ..] = runs else { return Vec::new() };
    let title = format!("{} processes, one lock held for {}", case.clients, time(case.hold));
    let share = |run: &Run| {
        let (fewest, most) = run.handoffs.fewest_and_most();
        fewest as f64 / most.max(1) as f64
    };
    let bars = |value: &dyn Fn(&Run) -> f64| {
        [("redlatch", value(redlatch)), ("rslock 0.10", value(rslock))]
    };
    let fair = format!("{title}: slowest client's share of the fastest's");
    let free = format!("{title}: median time that it lies free");
    vec![
        Group::new(&title, Unit::Pairs, bars(&|run| run.handoffs.rate())),
        Group::new(&fair, Unit::Share, bars(&share)),
        Group::new(&free, Unit::Time, bars(&|run| run.handoffs.free().quantile(0.5).as_secs_f64())),
    ]
}
