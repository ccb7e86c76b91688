//! Clients that always want a permit: each is a process with connections of its own, holds one of
//! eight permits for a while, releases it and waits for that, and asks again. There are twice as
//! many clients as permits. A permit that two hold at once ends the program.

use super::Context;
use crate::contender::{Contender, Order};
use crate::handoffs::{Handoffs, Record, nanos, now};
use crate::peers::{PERMITS, Peer};
use crate::report::{Figure, Findings, Table, Wanted, rate, seconds, time};
use crate::traffic::{Monitor, Usage};
use std::thread;
use std::time::Duration;

const CLIENTS: usize = 16;
const HOLD: Duration = Duration::from_millis(20);

/// Clients that ask within the time that a request takes have no order.
const MARGIN: Duration = Duration::from_millis(5);

const SECONDS: u64 = 15;
const SECONDS_QUICK: u64 = 4;
const RUNS: usize = 3;

/// Until all contend.
const WARM_UP: Duration = Duration::from_millis(1000);

struct Run {
    handoffs: Handoffs,
    /// Per grant and node.
    sent: f64,
    inner: f64,
    joins: f64,
    received: f64,
    evalsha: f64,
    eval: f64,
    /// Seconds of all servers together, per grant.
    servers_cpu: f64,
}

pub fn run(context: &Context) -> Vec<Findings> {
    let count = if context.is_quick { 1 } else { RUNS };
    let runs: Vec<_> = (0..count).map(|index| measure(context, index)).collect();
    vec![grants(context, &runs), costs(context, &runs)]
}

fn hold(context: &Context) -> Duration {
    context.handoff.hold.unwrap_or(HOLD)
}

fn clients(context: &Context) -> usize {
    context.handoff.clients.unwrap_or(CLIENTS)
}

fn measure(context: &Context, index: usize) -> Run {
    let servers = &context.servers;
    let mut contenders =
        Contender::start_all(clients(context), Peer::RedlatchPermits, &servers.urls());
    let length = if context.is_quick { SECONDS_QUICK } else { SECONDS };
    let duration = context.handoff.duration.unwrap_or(Duration::from_secs(length));
    let start = now() + nanos(Duration::from_millis(50));
    let opened = start + nanos(WARM_UP);
    let closed = opened + nanos(duration);
    let end = closed + nanos(duration / 4);
    let prefix = format!("versus-redlatch:permits{index}");
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
    let (before, cpu) = (Usage::of(servers), servers.cpu_time());
    sleep_until(closed);
    let (usage, cpu) = (Usage::since(servers, &before), servers.cpu_time() - cpu);
    let monitor = Monitor::start(servers.addresses()[context.nodes - 1]);
    let began = now();
    sleep_until(end);
    let (commands, counted) = (monitor.stop(), began..now());
    let records: Vec<Vec<Record>> = contenders.iter_mut().map(Contender::finish).collect();
    drop(contenders);
    servers.expect_gone(&prefix, context.nodes);
    let handoffs = Handoffs::new(&records, counted);
    let watched = handoffs.count().max(1) as f64;
    let handoffs = handoffs.within(opened..closed);
    assert!(handoffs.count() > 0, "no permit was granted at all");
    Run {
        sent: commands.sent as f64 / watched,
        inner: commands.inner as f64 / watched,
        joins: commands.joins as f64 / watched,
        received: usage.received / handoffs.count() as f64 / context.nodes as f64,
        evalsha: usage.evalsha.mean(),
        eval: usage.eval.mean(),
        servers_cpu: cpu.as_secs_f64() / handoffs.count() as f64,
        handoffs,
    }
}

fn sleep_until(end: u64) {
    thread::sleep(Duration::from_nanos(end.saturating_sub(now())));
}

fn grants(context: &Context, runs: &[Run]) -> Findings {
    let mut table = Table::new(&[
        "run",
        "grants/s",
        "slowest/fastest",
        "grants",
        "overtaken",
        "strictly",
        "failed turns",
        "lies free p50",
        "p99",
        "waited p50",
        "p99",
    ]);
    for (index, run) in runs.iter().enumerate() {
        let handoffs = &run.handoffs;
        let (fewest, most) = handoffs.fewest_and_most();
        let (waits, free) = (handoffs.waits(), handoffs.free());
        table.row([
            (index + 1).to_string(),
            rate(handoffs.rate()),
            format!("{:.2}", run.fairness()),
            format!("{fewest}/{most}"),
            format!("{:.2}", handoffs.overtaken(MARGIN)),
            format!("{:.2}", handoffs.overtaken(Duration::ZERO)),
            format!("{:.3}", handoffs.failed_turns()),
            time(free.quantile(0.5)),
            time(free.quantile(0.99)),
            time(waits.quantile(0.5)),
            time(waits.quantile(0.99)),
        ]);
    }
    Findings {
        title: title(context, "order"),
        about: format!(
            "{} processes, each a client of its own, always want one of {PERMITS} permits. No \
             permit had two holders at once, and none had a number above {}, or this would have \
             ended here. `overtaken`: how many other clients waited, per grant, that had asked \
             more than {} before the one that got a permit; `strictly`: that had asked earlier at \
             all. `failed turns`: turns of a waiter, per grant, that a majority refused. `lies \
             free`: from just before the call that releases a permit to the return of the call \
             that waits for it, of the next holder of the same permit.",
            clients(context),
            PERMITS - 1,
            time(MARGIN),
        ),
        table,
        figures: figures(context, runs),
        groups: Vec::new(),
    }
}

fn figures(context: &Context, runs: &[Run]) -> Vec<Figure> {
    let median =
        |figure: &dyn Fn(&Run) -> f64| crate::lane::median(runs.iter().map(figure).collect());
    let most = f64::from(PERMITS) / hold(context).as_secs_f64();
    let figures = [
        (
            "of the grants/s that the holds leave room for",
            median(&|run| run.handoffs.rate() / most),
        ),
        ("slowest client's share of the fastest's", median(&Run::fairness)),
    ];
    let figure = |(what, measured)| Figure {
        what: format!("permits, {what}"),
        measured,
        wanted: Wanted::AtLeast(0.9),
    };
    figures.map(figure).into()
}

impl Run {
    /// The grants of the client with the fewest, as a share of those of the one with the most.
    fn fairness(&self) -> f64 {
        let (fewest, most) = self.handoffs.fewest_and_most();
        fewest as f64 / most.max(1) as f64
    }
}

fn costs(context: &Context, runs: &[Run]) -> Findings {
    let mut table = Table::new(&[
        "run",
        "sent",
        "from scripts",
        "entries of the queue",
        "bytes",
        "EVALSHA",
        "EVAL",
        "servers' CPU/grant",
    ]);
    for (index, run) in runs.iter().enumerate() {
        table.row([
            (index + 1).to_string(),
            format!("{:.1}", run.sent),
            format!("{:.1}", run.inner),
            format!("{:.2}", run.joins),
            format!("{:.0}", run.received),
            seconds(run.evalsha),
            seconds(run.eval),
            seconds(run.servers_cpu),
        ]);
    }
    Findings {
        title: title(context, "commands"),
        about:
            "Per grant and node: `sent`, commands that clients sent, `from scripts`, calls that \
                scripts made, `entries of the queue`, made or renewed (all counted with MONITOR on \
                one node after the times were measured), and `bytes` that the node received. \
                `EVALSHA` and `EVAL`: the servers' own time for a script named by its digest, and \
                for one sent by its source. `servers' CPU`: of all nodes together."
                .to_owned(),
        table,
        figures: Vec::new(),
        groups: Vec::new(),
    }
}

fn title(context: &Context, what: &str) -> String {
    let (clients, hold) = (clients(context), time(hold(context)));
    context.title(&format!("permits, {clients} clients that hold for {hold}: {what}"))
}
