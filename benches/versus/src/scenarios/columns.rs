//! The columns of tables: what is shown of a lane, compared with the first lane of its table.

use crate::lane::{Lane, median, quantile, times};
use crate::report::{rate, seconds, time};
use crate::slice::Slice;
use crate::traffic::{Commands, Usage};

/// The head of a column, and its cell for a lane compared with the first one.
pub type Column = (&'static str, fn(&Lane, &Lane) -> String);

pub const RATE: Column = ("pairs/s", |lane, _| rate(lane.median(Slice::rate)));
pub const RATIO: Column = ("of the first's", |lane, first| {
    format!("{:.2}", lane.times(first, Slice::rate))
});
pub const P50: Column = ("acquire p50", |lane, _| time(lane.wait(0.5)));
pub const P50_RATIO: Column = ("of the first's p50", |lane, first| {
    format!("{:.2}", lane.times(first, Slice::p50))
});
pub const P99: Column = ("p99", |lane, _| time(lane.wait(0.99)));
pub const LONGEST: Column = ("longest", |lane, _| time(lane.wait(1.0)));
pub const CPU: Column = ("CPU/pair", |lane, _| {
    seconds(lane.median(Slice::cpu_per_pair))
});
pub const INSTRUCTIONS: Column = ("instructions/pair", |lane, _| {
    let each = lane.median(Slice::instructions_per_pair);
    if each.is_nan() {
        "-".to_owned()
    } else {
        rate(each)
    }
});
pub const SERVERS_CPU: Column = ("servers' CPU/pair", |lane, _| {
    seconds(lane.median(Slice::servers_cpu_per_pair))
});
pub const FAIRNESS: Column = ("slowest/fastest", |lane, _| {
    format!("{:.2}", lane.median(|slice| slice.fairness))
});
pub const WORST_FAIRNESS: Column = ("in the worst part", |lane, _| {
    let worst = lane
        .slices
        .iter()
        .map(|slice| slice.fairness)
        .fold(f64::INFINITY, f64::min);
    format!("{worst:.2}")
});
pub const FREE_P50: Column = ("lock is free p50", |lane, _| time(lane.free(0.5)));
pub const FREE_P99: Column = ("p99", |lane, _| time(lane.free(0.99)));
pub const MOVED: Column = ("to another", |lane, _| {
    format!("{:.2}", lane.median(|slice| slice.moved))
});
pub const OVERTAKEN: Column = ("overtaken", |lane, _| {
    format!("{:.2}", lane.median(|slice| slice.overtaken))
});
pub const ROUNDS: Column = ("p99 in rounds", |lane, _| {
    let round = (lane.plan.hold + lane.free(0.5)).as_secs_f64() * lane.clients() as f64;
    format!("{:.2}", lane.wait(0.99).as_secs_f64() / round)
});
pub const SENT: Column = ("commands", |lane, _| {
    watched(lane, |commands| commands.sent)
});
pub const BY_DIGEST: Column = ("scripts by digest", |lane, _| {
    watched(lane, |commands| commands.by_digest)
});
pub const BY_SOURCE: Column = ("by source", |lane, _| {
    watched(lane, |commands| commands.by_source)
});
pub const JOINS: Column = ("entries of the queue", |lane, _| {
    watched(lane, |commands| commands.joins)
});
pub const UNKNOWN: Column = ("unknown of 1000", |lane, _| {
    let sum = |count: fn(&Slice) -> u64| lane.slices.iter().map(count).sum::<u64>() as f64;
    format!(
        "{:.1}",
        1e3 * sum(|slice| slice.unknown) / sum(|slice| slice.pairs)
    )
});
pub const SCRIPTS: Column = ("scripts", |lane, _| {
    per_pair(
        lane,
        |usage| usage.scripts,
        |scripts| format!("{scripts:.1}"),
    )
});
pub const SCRIPT_TIME: Column = ("a script", |lane, _| {
    let sum = |of: fn(&Usage) -> f64| {
        lane.slices
            .iter()
            .map(|slice| of(&slice.usage))
            .sum::<f64>()
    };
    seconds(sum(|usage| usage.seconds) / sum(|usage| usage.scripts).max(1.0))
});
pub const RECEIVED: Column = ("bytes sent", |lane, _| {
    per_pair(lane, |usage| usage.received, |bytes| format!("{bytes:.0}"))
});
pub const REPLIED: Column = ("bytes back", |lane, _| {
    per_pair(lane, |usage| usage.replied, |bytes| format!("{bytes:.0}"))
});
pub const HEALTHY_P50: Column = ("healthy p50", |lane, _| {
    time(quantile(&lane.healthy, |slice| &slice.waits, 0.5))
});
pub const HEALTHY_RATIO: Column = ("ratio", |lane, _| {
    format!("{:.2}", times(&lane.slices, &lane.healthy, Slice::p50))
});

/// Per grant and node, as one node counted it.
fn watched(lane: &Lane, count: fn(&Commands) -> u64) -> String {
    let each = |(commands, grants): (Commands, u64)| count(&commands) as f64 / grants.max(1) as f64;
    lane.watched
        .map_or_else(String::new, |watched| format!("{:.3}", each(watched)))
}

/// Per pair and node.
fn per_pair(lane: &Lane, of: fn(&Usage) -> f64, show: fn(f64) -> String) -> String {
    let each = |slice: &Slice| of(&slice.usage) / (slice.pairs as f64 * lane.nodes);
    show(median(lane.slices.iter().map(each).collect()))
}
