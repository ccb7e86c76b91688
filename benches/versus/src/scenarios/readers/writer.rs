//! A writer among readers in processes: how long it waits, beside the longest hold of a reader.

use super::super::Context;
use super::PROCESSES;
use crate::contender::{Contender, Order};
use crate::handoffs::{Durations, Record, nanos, now};
use crate::peers::Peer;
use crate::report::{Figure, Findings, Table, Wanted, rate, time};
use std::time::Duration;

/// How long readers hold the lock, in milliseconds.
const HOLDS: [u64; 3] = [1, 5, 20];

/// From one request of the writer to the next, and how long it holds the lock.
const EVERY: Duration = Duration::from_millis(100);
const HELD: Duration = Duration::from_millis(1);

const SECONDS: u64 = 15;
const SECONDS_QUICK: u64 = 4;

/// Until all readers are there.
const WARM_UP: Duration = Duration::from_millis(500);

/// What was measured with one hold.
struct Run {
    hold: Duration,
    readers: f64,
    writers: usize,
    /// From the writer's call to its return.
    waits: Durations,
    /// How long the readers held the lock that held it when the writer asked, or were granted it
    /// while it waited: the longest of each wait.
    holds: Durations,
    /// From the last reader's release to the writer's lock.
    handovers: Durations,
    /// Readers that were granted the lock after the writer had asked and before it had the lock,
    /// per writer.
    overtaken: f64,
    readers_wait: Durations,
}

pub fn run(context: &Context) -> Findings {
    let runs: Vec<_> =
        HOLDS.iter().map(|&hold| measure(context, Duration::from_millis(hold))).collect();
    let mut table = Table::new(&[
        "readers hold for",
        "readers' pairs/s",
        "writers",
        "waited p50",
        "p99",
        "longest hold p50",
        "p99",
        "hand-over p50",
        "p99",
        "readers let in",
        "readers waited p50",
        "p99",
    ]);
    for run in &runs {
        table.row([
            time(run.hold),
            rate(run.readers),
            run.writers.to_string(),
            time(run.waits.quantile(0.5)),
            time(run.waits.quantile(0.99)),
            time(run.holds.quantile(0.5)),
            time(run.holds.quantile(0.99)),
            time(run.handovers.quantile(0.5)),
            time(run.handovers.quantile(0.99)),
            format!("{:.2}", run.overtaken),
            time(run.readers_wait.quantile(0.5)),
            time(run.readers_wait.quantile(0.99)),
        ]);
    }
    let figure = |run: &Run, share: f64| {
        let bound = run.holds.quantile(share) + run.handovers.quantile(share);
        Figure {
            what: format!(
                "writer among readers that hold for {}: wait p{:.0}, of the longest hold and one \
                 hand-over",
                time(run.hold),
                share * 100.0
            ),
            measured: run.waits.quantile(share).as_secs_f64() / bound.as_secs_f64(),
            wanted: Wanted::AtMost(1.0),
        }
    };
    Findings {
        title: context.title("readers, and a writer every 100 ms"),
        about: format!(
            "{PROCESSES} processes are readers of one lock all the time, and one process wants the \
             lock every {} for {}. No reader held it beside the writer, or this would have ended \
             here. `longest hold`: of the readers that held the lock while the writer waited. \
             `hand-over`: from the last one's call that releases it to the return of the writer's \
             call. `readers let in`: after the writer had asked, per writer.",
            time(EVERY),
            time(HELD)
        ),
        table,
        figures: runs.iter().flat_map(|run| [0.5, 0.99].map(|share| figure(run, share))).collect(),
        groups: Vec::new(),
    }
}

fn measure(context: &Context, hold: Duration) -> Run {
    let servers = &context.servers;
    let mut readers = Contender::start_all(PROCESSES, Peer::RedlatchReader, &servers.urls());
    let mut writer = Contender::start_all(1, Peer::Redlatch, &servers.urls());
    let seconds = if context.is_quick { SECONDS_QUICK } else { SECONDS };
    let duration = context.handoff.duration.unwrap_or(Duration::from_secs(seconds));
    let start = now() + nanos(Duration::from_millis(50));
    let opened = start + nanos(WARM_UP);
    let prefix = format!("versus-redlatch:writer{}", nanos(hold));
    let mut order = Order {
        resource: format!("{prefix}:same"),
        start,
        end: opened + nanos(duration),
        hold,
        pause: Duration::ZERO,
        every: Duration::ZERO,
        asks: usize::MAX,
    };
    readers.iter_mut().for_each(|reader| reader.begin(&order));
    (order.start, order.hold, order.every) = (opened, HELD, EVERY);
    writer[0].begin(&order);
    let writes = writer[0].finish();
    let reads: Vec<Record> = readers.iter_mut().flat_map(Contender::finish).collect();
    drop((readers, writer));
    servers.expect_gone(&prefix, context.nodes);
    let run = Run::new(hold, &reads, &writes, duration);
    assert!(run.readers > 0.0, "no reader had the lock");
    run
}

impl Run {
    /// Panics if a reader held the lock beside a writer.
    fn new(hold: Duration, reads: &[Record], writes: &[Record], duration: Duration) -> Self {
        let (mut holds, mut handovers, mut overtaken) = (Vec::new(), Vec::new(), 0);
        for write in writes {
            let is_beside =
                |read: &&Record| read.granted < write.releasing && write.granted < read.releasing;
            assert!(!reads.iter().any(|read| is_beside(&read)), "a reader beside the writer");
            let during = reads
                .iter()
                .filter(|read| read.granted < write.granted && read.releasing > write.asked);
            holds.extend(during.clone().map(|read| read.releasing - read.granted).max());
            handovers.extend(during.clone().map(|read| write.granted - read.releasing).min());
            overtaken += during.filter(|read| read.granted > write.asked).count();
        }
        let opened = writes.first().map_or(0, |write| write.asked);
        let window = opened..opened + nanos(duration);
        let counted = || reads.iter().filter(|read| window.contains(&read.granted));
        Self {
            hold,
            readers: counted().count() as f64 / duration.as_secs_f64(),
            writers: writes.len(),
            waits: Durations::new(writes.iter().map(|write| write.granted - write.asked)),
            holds: Durations::new(holds.into_iter()),
            handovers: Durations::new(handovers.into_iter()),
            overtaken: overtaken as f64 / writes.len().max(1) as f64,
            readers_wait: Durations::new(counted().map(|read| read.granted - read.asked)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(asked: u64, granted: u64, releasing: u64) -> Record {
        Record { asked, granted, releasing, released: releasing, permit: None, attempts: 1 }
    }

    #[test]
    fn the_readers_that_held_the_lock_while_the_writer_waited_count() {
        let reads = [record(0, 10, 20), record(0, 10, 50), record(30, 35, 60), record(40, 90, 95)];
        let run = Run::new(Duration::ZERO, &reads, &[record(30, 62, 70)], HELD);
        assert_eq!(run.waits.quantile(1.0), Duration::from_nanos(32));
        assert_eq!(run.holds.quantile(1.0), Duration::from_nanos(40));
        assert_eq!(run.handovers.quantile(1.0), Duration::from_nanos(2));
        assert_eq!(run.overtaken, 1.0);
    }

    #[test]
    #[should_panic(expected = "a reader beside the writer")]
    fn a_reader_beside_the_writer_is_noticed() {
        let (read, write) = (record(0, 1, 4), record(2, 3, 5));
        let _ = Run::new(Duration::ZERO, &[read], &[write], HELD);
    }
}
