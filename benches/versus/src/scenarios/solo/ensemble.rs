//! The same on ZooKeeper, beside the least that a lock can cost there: to make a node and delete
//! it. Each client is a process, and all take turns, a block of locks each.

use super::super::Context;
use crate::contender::{Contender, Order};
use crate::ensemble::{self, Counts, Ensemble};
use crate::handoffs::{Durations, Record, nanos, now};
use crate::lane::median;
use crate::peers::Peer;
use crate::report::{Figure, Findings, Table, Wanted, time};
use std::time::Duration;

const BLOCKS: usize = 61;
const BLOCKS_QUICK: usize = 21;

/// Locks of a block.
const LOCKS: usize = 50;

/// A block ends then in any case.
const LIMIT: Duration = Duration::from_secs(10);

/// The first one is what the others are compared with.
const PEERS: [(&str, Peer); 3] = [
    ("two bare writes", Peer::TwoWrites),
    ("redlatch, lock() and release()", Peer::Redlatch),
    ("kazoo, Lock", Peer::Kazoo),
];

struct Lane {
    name: &'static str,
    contender: Contender,
    blocks: Vec<Block>,
}

/// The median times of a block, and what the servers did for one lock of it.
struct Block {
    acquire: f64,
    release: f64,
    both: f64,
    counts: Counts,
}

pub fn run(context: &Context) -> Vec<Findings> {
    let ensembles = ensemble::start_all(context.servers.directory());
    ensembles.iter().map(|ensemble| measure(context, ensemble)).collect()
}

fn measure(context: &Context, ensemble: &Ensemble) -> Findings {
    let urls = [ensemble.url()];
    let start = |(name, peer): (&'static str, Peer)| {
        let contender = Contender::start_all(1, peer, &urls).pop();
        let contender = contender.expect("one is one");
        Lane { name, contender, blocks: Vec::new() }
    };
    let mut lanes: Vec<_> =
        PEERS.into_iter().filter(|(_, peer)| peer.can_run()).map(start).collect();
    for lane in &mut lanes {
        // What connects, and warms up.
        lane.block(ensemble);
    }
    let blocks = if context.is_quick { BLOCKS_QUICK } else { BLOCKS };
    for turn in 0..blocks {
        // Not always in the same order.
        for index in 0..lanes.len() {
            let index = (turn + index) % lanes.len();
            let block = lanes[index].block(ensemble);
            lanes[index].blocks.push(block);
        }
    }
    findings(ensemble, &lanes)
}

impl Lane {
    fn block(&mut self, ensemble: &Ensemble) -> Block {
        let before = ensemble.counts();
        self.contender.begin(&Order {
            resource: "versus:solo".to_owned(),
            start: now(),
            end: now() + nanos(LIMIT),
            hold: Duration::ZERO,
            pause: Duration::ZERO,
            every: Duration::ZERO,
            asks: LOCKS,
        });
        let records = self.contender.finish();
        let counts = ensemble.counts_since(&before).per(records.len() as f64);
        let p50 = |length: fn(&Record) -> u64| {
            Durations::new(records.iter().map(length)).quantile(0.5).as_secs_f64()
        };
        Block {
            acquire: p50(|record| record.granted - record.asked),
            release: p50(|record| record.released - record.releasing),
            both: p50(|record| record.released - record.asked),
            counts,
        }
    }

    fn median(&self, figure: impl Fn(&Block) -> f64) -> f64 {
        median(self.blocks.iter().map(figure).collect())
    }

    /// As a multiple of the other's time, block by block, in ascending order.
    fn times(&self, other: &Self) -> Vec<f64> {
        let both = self.blocks.iter().zip(&other.blocks);
        let mut ratios: Vec<_> = both.map(|(own, other)| own.both / other.both).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    }
}

fn findings(ensemble: &Ensemble, lanes: &[Lane]) -> Findings {
    let mut table = Table::new(&[
        "client",
        "acquire p50",
        "release p50",
        "both p50",
        "of the bare writes'",
        "quartiles",
        "requests",
        "writes",
        "watches",
    ]);
    let [bare, redlatch, ..] = lanes else { unreachable!("both are part of this program") };
    let cell = |seconds: f64| time(Duration::from_secs_f64(seconds));
    for lane in lanes {
        let ratios = lane.times(bare);
        let (low, high) = (ratios[ratios.len() / 4], ratios[ratios.len() * 3 / 4]);
        table.row([
            lane.name.to_owned(),
            cell(lane.median(|block| block.acquire)),
            cell(lane.median(|block| block.release)),
            cell(lane.median(|block| block.both)),
            format!("{:.2}", ratios[ratios.len() / 2]),
            format!("{low:.2} to {high:.2}"),
            format!("{:.1}", lane.median(|block| block.counts.received)),
            format!("{:.1}", lane.median(|block| block.counts.writes)),
            format!("{:.1}", lane.median(|block| block.counts.watches)),
        ]);
    }
    Findings {
        title: format!("solo, {}", ensemble.name()),
        about: format!(
            "One client acquires a free lock and releases it, {LOCKS} times in each of {} blocks; \
             the clients take turns. `two bare writes`: an ephemeral node is made and deleted over \
             a bare socket, one request after the other. Times are medians of the blocks' medians, \
             ratios are those of blocks that followed one another. Per lock, from `mntr` of all \
             servers: `requests` received, `writes` among them and `watches` set.",
            bare.blocks.len()
        ),
        table,
        figures: vec![Figure {
            what: format!("solo, {}: times the two bare writes' time", ensemble.name()),
            measured: median(redlatch.times(bare)),
            wanted: Wanted::AtMost(1.15),
        }],
        groups: Vec::new(),
    }
}
