//! This build beside another one of the same program, such as one with other features of redlatch:
//! one thread, a free lock. This build also runs against itself: that is how much ratios vary.

use super::Context;
use crate::lane::{Lane, Setup, median, take_turns};
use crate::peers::Peer;
use crate::report::{Figure, Findings, Table, Wanted, rate, time};
use crate::work::{Kind, Slice};
use std::time::Duration;

const TURNS: usize = 61;
const TURNS_QUICK: usize = 7;
const SLICE: Duration = Duration::from_millis(200);

pub fn run(context: &Context) -> Vec<Findings> {
    let Some(other) = &context.other_build else {
        println!("builds are not compared: --other-build names no other program\n");
        return Vec::new();
    };
    let servers = &context.servers;
    let urls = servers.urls();
    let setup = Setup { servers, urls: &urls, kind: Kind::Free, threads: 1, processes: 1 };
    let mut lanes = vec![
        setup.lane(Peer::Redlatch, "build").named("this build"),
        setup.lane(Peer::Redlatch, "again").named("this build again"),
        setup.lane_of_build(Some(other), Peer::Redlatch, "other").named("the other build"),
    ];
    let turns = if context.is_quick { TURNS_QUICK } else { TURNS };
    take_turns(&mut lanes, turns, SLICE, servers);
    vec![findings(context, &lanes)]
}

fn findings(context: &Context, lanes: &[Lane]) -> Findings {
    let [this, _, other] = lanes else { unreachable!("three were started") };
    let pair = |slice: &Slice| slice.wall.as_secs_f64() / slice.pairs as f64;
    let mut table = Table::new(&[
        "build",
        "pairs/s",
        "acquire p50",
        "this build's time by its",
        "quartiles",
        "acquire p50 by its",
        "CPU/pair by its",
    ]);
    for lane in lanes {
        let mut ratios = this.ratios(lane, pair);
        ratios.sort_by(f64::total_cmp);
        let (low, high) = (ratios[ratios.len() / 4], ratios[ratios.len() * 3 / 4]);
        table.row([
            lane.name.clone(),
            rate(lane.median(Slice::rate)),
            time(lane.quantile(0.5)),
            format!("{:.4}", median(ratios)),
            format!("{low:.3} to {high:.3}"),
            format!("{:.4}", this.times(lane, Slice::p50)),
            format!("{:.4}", this.times(lane, Slice::cpu_per_pair)),
        ]);
    }
    Findings {
        title: context.title("builds"),
        about: format!(
            "One thread acquires a free lock and releases it, in {} slices of {} for each build, \
             which take turns. Ratios are medians of those of slices that followed one another.",
            this.slices.len(),
            time(SLICE),
        ),
        table,
        figures: vec![Figure {
            what: "builds, time of acquire and release by the other build's".to_owned(),
            measured: this.times(other, pair),
            wanted: Wanted::AtMost(1.01),
        }],
        groups: Vec::new(),
    }
}
