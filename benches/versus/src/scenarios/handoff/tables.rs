//! The tables of the scenario: the order in which clients are served, and what a hand-over takes.

use super::super::Context;
use super::{Case, Run, Traffic};
use crate::figures::{Group, Unit};
use crate::peers::Peer;
use crate::report::{Findings, Table, rate, time};
use std::time::Duration;

/// Who is served when.
pub fn order(context: &Context, case: &Case, runs: &[Run]) -> Findings {
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
pub fn costs(context: &Context, case: &Case, runs: &[Run]) -> Findings {
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
    ]);
    for Run { peer, handoffs, solo, traffic } in runs {
        let free = handoffs.free();
        let moved = handoffs.free_between_clients();
        let share = moved.count() as f64 / handoffs.count() as f64;
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
            format!("{share:.2}"),
            time(moved.quantile(0.5)),
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
                the next holder's call that waits for it. `to another`: the share of grants that \
                did not go to the client that had just released the lock, and how long it lay free \
                before these. `solo acquire`: the time to acquire a \
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

fn title(context: &Context, case: &Case, what: &str) -> String {
    let pause = match case.pause {
        Duration::ZERO => String::new(),
        pause => format!(", pauses of up to {}", time(pause)),
    };
    let (clients, hold) = (case.clients, time(case.hold));
    context.title(&format!("handoff, {clients} clients that hold for {hold}{pause}: {what}"))
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
