//! A writer among readers in processes: how long it waits, compared with the longest hold of a
//! reader.

use super::Context;
use crate::report::{Table, rate, time};
use crate::slice::Durations;
use crate::work::{Kind, Order, Record, nanos, now};
use crate::worker::Worker;
use std::time::Duration;

const READERS: usize = 8;

/// How long readers hold the lock, in milliseconds.
const HOLDS: [u64; 3] = [1, 5, 20];

/// From one request of the writer to the next, and how long it holds the lock.
const EVERY: Duration = Duration::from_millis(100);
const HELD: Duration = Duration::from_millis(1);

/// Until all readers are there.
const WARM_UP: Duration = Duration::from_millis(500);

/// What was measured with one hold.
struct Run {
    /// From the writer's call to its return.
    waits: Durations,
    /// How long the readers held the lock that held it when the writer asked, or were granted it
    /// while it waited: the longest of each wait.
    holds: Durations,
    /// From the last reader's release to the writer's lock.
    handoffs: Durations,
}

pub fn run(context: &Context) {
    let mut table = Table::new(&[
        "readers hold for",
        "readers' pairs/s",
        "waited p50",
        "p99",
        "longest hold p50",
        "handoff p50",
        "waited, of both",
    ]);
    for hold in HOLDS.map(Duration::from_millis) {
        let (readers, run) = measure(context, hold);
        let [waited, held, handed] =
            [&run.waits, &run.holds, &run.handoffs].map(|durations| durations.quantile(0.5));
        let ratio = waited.as_secs_f64() / (held + handed).as_secs_f64();
        let times = [waited, run.waits.quantile(0.99), held, handed].map(time);
        table.row(
            [
                &[time(hold), rate(readers)][..],
                &times,
                &[format!("{ratio:.2}")],
            ]
            .concat(),
        );
    }
    let about = format!(
        "{READERS} processes are readers of one lock all the time, and one process wants the lock \
         every {EVERY:?} for {HELD:?}. No reader held it beside the writer, or this would have \
         ended here. `longest hold`: of the readers that held the lock while the writer waited. \
         `handoff`: from the last one's call that releases it to the return of the writer's call."
    );
    table.print("readers, and a writer every 100 ms, 5 nodes", &about);
}

/// The pairs/s of the readers, and how the writer waited.
fn measure(context: &Context, hold: Duration) -> (f64, Run) {
    let mut readers = Worker::start_all(READERS, &context.job("redlatch-reader"));
    let mut writer = Worker::start_all(1, &context.job("redlatch"));
    let duration = context.options.slice.unwrap_or(Duration::from_secs(15));
    let start = now() + nanos(Duration::from_millis(50));
    let opened = start + nanos(WARM_UP);
    let end = opened + nanos(duration);
    let prefix = format!("versus-redlatch:writer{}", nanos(hold));
    let kind = Kind::Contended;
    let hold = nanos(hold);
    let every = 0;
    let mut order = Order {
        kind,
        prefix,
        start,
        end,
        hold,
        every,
        locks_max: usize::MAX,
    };
    readers.iter_mut().for_each(|reader| reader.begin(&order));
    (order.start, order.hold, order.every) = (opened, nanos(HELD), nanos(EVERY));
    writer[0].begin(&order);
    let writes = writer[0].finish().clients.remove(0);
    let reads = readers
        .iter_mut()
        .flat_map(|reader| reader.finish().clients.remove(0));
    let reads: Vec<Record> = reads.collect();
    context.servers.expect_gone(&order.prefix);
    let counted = reads
        .iter()
        .filter(|read| (opened..end).contains(&read.granted))
        .count();
    assert!(
        counted > 0 && !writes.is_empty(),
        "no reader or no writer had the lock"
    );
    (
        counted as f64 / duration.as_secs_f64(),
        Run::new(&reads, &writes),
    )
}

impl Run {
    /// Panics if a reader held the lock beside a writer.
    fn new(reads: &[Record], writes: &[Record]) -> Self {
        let mut holds = Vec::new();
        let mut handoffs = Vec::new();
        for write in writes {
            let is_beside =
                |read: &Record| read.granted < write.releasing && write.granted < read.releasing;
            assert!(!reads.iter().any(is_beside), "a reader beside the writer");
            let during =
                |read: &&Record| read.granted < write.granted && read.releasing > write.asked;
            let during = reads.iter().filter(during);
            holds.extend(
                during
                    .clone()
                    .map(|read| read.releasing - read.granted)
                    .max(),
            );
            handoffs.extend(during.map(|read| write.granted - read.releasing).min());
        }
        Self {
            waits: Durations::new(writes.iter().map(|write| write.granted - write.asked)),
            holds: Durations::new(holds.into_iter()),
            handoffs: Durations::new(handoffs.into_iter()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(asked: u64, granted: u64, releasing: u64) -> Record {
        Record {
            asked,
            granted,
            releasing,
            released: releasing,
            ..Record::default()
        }
    }

    #[test]
    fn the_readers_that_held_the_lock_while_the_writer_waited_count() {
        let reads = [
            record(0, 10, 20),
            record(0, 10, 50),
            record(30, 35, 60),
            record(40, 90, 95),
        ];
        let run = Run::new(&reads, &[record(30, 62, 70)]);
        let longest = [run.waits, run.holds, run.handoffs].map(|all| all.quantile(1.0));
        assert_eq!(longest, [32, 40, 2].map(Duration::from_nanos));
    }

    #[test]
    #[should_panic(expected = "a reader beside the writer")]
    fn a_reader_beside_the_writer_is_noticed() {
        let _ = Run::new(&[record(0, 1, 4)], &[record(2, 3, 5)]);
    }
}
