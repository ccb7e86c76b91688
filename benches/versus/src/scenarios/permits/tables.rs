//! The tables of the scenario: the order in which clients are served, and what a grant takes.

use super::super::Context;
use super::{Run, Series, Traffic, clients, hold};
use crate::ensemble::Counts;
use crate::peers::PERMITS;
use crate::report::{Figure, Findings, Table, Wanted, rate, seconds, time};
use std::time::Duration;

/// Clients that ask within the time that a request takes have no order.
const MARGIN: Duration = Duration::from_millis(5);

/// Who is served when.
pub fn grants(context: &Context, all: &[Series]) -> Findings {
    let mut table = Table::new(&[
        "library",
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
        "requests",
        "writes",
        "watches",
    ]);
    for (name, index, run) in rows(all) {
        let handoffs = &run.handoffs;
        let (fewest, most) = handoffs.fewest_and_most();
        let (waits, free) = (handoffs.waits(), handoffs.free());
        let count = |count: fn(&Counts) -> f64| match &run.traffic {
            Traffic::ZooKeeper(counts) => format!("{:.1}", count(counts)),
            Traffic::Redis(_) => String::new(),
        };
        table.row([
            name.to_owned(),
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
            count(|counts| counts.received),
            count(|counts| counts.writes),
            count(|counts| counts.watches),
        ]);
    }
    let is_redis = |series: &&Series| matches!(series.runs[0].traffic, Traffic::Redis(_));
    let redis = all.iter().find(is_redis);
    Findings {
        title: title(context, "order"),
        about: format!(
            "{} processes, each a client of its own, always want one of {PERMITS} permits. No \
             permit had two holders at once, and none had a number above {}, or this would have \
             ended here. `overtaken`: how many other clients waited, per grant, that had asked \
             more than {} before the one that got a permit; `strictly`: that had asked earlier at \
             all. `failed turns`: turns of a waiter, per grant, that a majority refused. `lies \
             free`: from just before the call that releases a permit to the return of the call \
             that waits for it, of the next holder of the same permit; permits of kazoo have no \
             number, and count as those that had lain free for longest. Per grant, from `mntr` of \
             all servers of ZooKeeper: `requests` received, `writes` among them, beats and pings \
             included, and `watches` set.",
            clients(context),
            PERMITS - 1,
            time(MARGIN),
        ),
        table,
        figures: redis.map_or_else(Vec::new, |series| figures(context, &series.runs)),
        groups: Vec::new(),
    }
}

/// Library, index and run.
fn rows(all: &[Series]) -> impl Iterator<Item = (&str, usize, &Run)> {
    all.iter().flat_map(|series| {
        let runs = series.runs.iter().enumerate();
        runs.map(|(index, run)| (series.name.as_str(), index, run))
    })
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

/// What a grant takes in commands.
pub fn costs(context: &Context, all: &[Series]) -> Findings {
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
    for (_, index, run) in rows(all) {
        let Traffic::Redis(commands) = &run.traffic else { continue };
        table.row([
            (index + 1).to_string(),
            format!("{:.1}", commands.sent),
            format!("{:.1}", commands.inner),
            format!("{:.2}", commands.joins),
            format!("{:.0}", commands.received),
            seconds(commands.evalsha),
            seconds(commands.eval),
            seconds(commands.servers_cpu),
        ]);
    }
    Findings {
        title: title(context, "commands"),
        about: "redlatch on Redis, per grant and node: `sent`, commands that clients sent, `from \
             scripts`, calls that scripts made, `entries of the queue`, made or renewed (all \
             counted with MONITOR on one node after the times were measured), and `bytes` that \
             the node received. `EVALSHA` and `EVAL`: the servers' own time for a script named by \
             its digest, and for one sent by its source. `servers' CPU`: of all nodes together."
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
