//! The tables of the scenario: the order in which clients are served, and what a hand-over takes.

use super::super::Context;
use super::{Case, Run, Series, Traffic};
use crate::figures::{Group, Unit};
use crate::handoffs::Handoffs;
use crate::peers::Peer;
use crate::report::{Findings, Table, rate, time};
use std::time::Duration;

/// Who is served when.
pub fn order(context: &Context, case: &Case, all: &[Series]) -> Findings {
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
    let rslock = all.iter().find(|series| series.peer == Peer::RslockSingle);
    let rslock = rslock.map_or(f64::NAN, |series| series.median(|run| run.handoffs.rate()));
    for series in all {
        let figure = |figure: &dyn Fn(&Handoffs) -> f64| series.median(|run| figure(&run.handoffs));
        let wait = |share| series.median_time(|run| run.handoffs.waits().quantile(share));
        let free = series.median_time(|run| run.handoffs.free().quantile(0.5));
        let round = (case.hold + free).as_secs_f64() * case.clients as f64;
        let (fewest, most) = series.runs[0].handoffs.fewest_and_most();
        table.row([
            series.name.clone(),
            rate(figure(&Handoffs::rate)),
            format!("{:.2}", figure(&Handoffs::rate) / rslock),
            format!("{:.2}", figure(&|handoffs| handoffs.overtaken(case.margin))),
            format!("{:.2}", figure(&|handoffs| handoffs.overtaken(Duration::ZERO))),
            format!("{:.2}", figure(&fairness)),
            format!("{fewest}/{most}"),
            time(wait(0.5)),
            time(wait(0.99)),
            format!("{:.2}", wait(0.99).as_secs_f64() / round),
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
        groups: if case.is_charted { groups(case, all) } else { Vec::new() },
    }
}

/// What a hand-over takes, in time and in commands.
pub fn costs(context: &Context, case: &Case, all: &[Series]) -> Findings {
    let mut table = Table::new(&[
        "library",
        "lies free p50",
        "p99",
        "to another",
        "p50",
        "solo acquire p50",
        "free/solo p50",
        "p99",
        "sent",
        "from scripts",
        "calls by INFO",
        "requests",
        "writes",
        "watches",
    ]);
    for series in all {
        let moved = |run: &Run| run.handoffs.free_between_clients();
        let share = |run: &Run| moved(run).count() as f64 / run.handoffs.count() as f64;
        let free = |share| series.median_time(|run| run.handoffs.free().quantile(share));
        let solo = series.median_time(|run| run.solo);
        let times = |free: Duration| format!("{:.1}", free.as_secs_f64() / solo.as_secs_f64());
        let mut cells = vec![
            series.name.clone(),
            time(free(0.5)),
            time(free(0.99)),
            format!("{:.2}", series.median(share)),
            time(series.median_time(|run| moved(run).quantile(0.5))),
            time(solo),
            times(free(0.5)),
            times(free(0.99)),
        ];
        cells.extend((0..6).map(|column| {
            let value = series.median(|run| run.traffic.cells()[column]);
            if value.is_nan() { String::new() } else { format!("{value:.1}") }
        }));
        table.row(cells);
    }
    Findings {
        title: title(context, case, "hand-over"),
        about: "`lies free`: from just before the call that releases the lock to the return of \
                the next holder's call that waits for it. `to another`: the share of grants that \
                did not go to the client that had just released the lock, and how long it lay free \
                before these. `solo acquire`: the time to acquire a \
                free lock, by one of the same processes alone, just before. Per grant and node: \
                `sent`: commands that clients sent, and `from scripts`: calls that scripts made, \
                both counted with MONITOR on one node after the times were measured; `calls by \
                INFO`: total_commands_processed of all nodes while they were, which has both. Per \
                grant, from `mntr` of all servers of ZooKeeper: `requests` received, `writes` \
                among them, beats and pings included, and `watches` set."
            .to_owned(),
        table,
        figures: Vec::new(),
        groups: Vec::new(),
    }
}

fn title(context: &Context, case: &Case, what: &str) -> String {
    let pause = match case.pause {
        Duration::ZERO => String::new(),
        pause => format!(", pauses of up to {}", time(pause)),
    };
    let (clients, hold) = (case.clients, time(case.hold));
    context.title(&format!("handoff, {clients} clients that hold for {hold}{pause}: {what}"))
}

impl Traffic {
    /// The last cells of a row; no number where there is none.
    fn cells(&self) -> [f64; 6] {
        let none = f64::NAN;
        match self {
            Self::Redis { calls, sent, inner } => [*sent, *inner, *calls, none, none, none],
            Self::ZooKeeper(counts) => {
                [none, none, none, counts.received, counts.writes, counts.watches]
            }
            Self::Unknown => [none; 6],
        }
    }
}

/// The slowest client's share of the fastest one's grants.
fn fairness(handoffs: &Handoffs) -> f64 {
    let (fewest, most) = handoffs.fewest_and_most();
    fewest as f64 / most.max(1) as f64
}

fn groups(case: &Case, all: &[Series]) -> Vec<Group> {
    let of = |wanted: Peer| all.iter().find(|series| series.peer == wanted);
    let (Some(redlatch), Some(rslock)) = (of(Peer::Redlatch), of(Peer::RslockSingle)) else {
        return Vec::new();
    };
    let title = format!("{} processes, one lock held for {}", case.clients, time(case.hold));
    let bars = |value: &dyn Fn(&Run) -> f64| {
        [("redlatch", redlatch.median(value)), ("rslock 0.10", rslock.median(value))]
    };
    let fair = format!("{title}: slowest client's share of the fastest's");
    let free = format!("{title}: median time that it lies free");
    vec![
        Group::new(&title, Unit::Pairs, bars(&|run| run.handoffs.rate())),
        Group::new(&fair, Unit::Share, bars(&|run| fairness(&run.handoffs))),
        Group::new(&free, Unit::Time, bars(&|run| run.handoffs.free().quantile(0.5).as_secs_f64())),
    ]
}
