//! A writer among readers in processes: how long it waits, beside the longest hold of a reader.

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
    /// Pairs/s of the readers.
    readers: f64,
    writers: usize,
    /// From the writer's call to its return.
    waits: Durations,
    /// How long the readers held the lock that held it when the writer asked, or were granted it
    /// while it waited: the longest of each wait.
    holds: Durations,
    /// From the last reader's release to the writer's lock.
    handovers: Durations,
}

pub fn run(context: &Context) {
    let mut table = Table::new(&[
        "readers hold for",
        "readers' pairs/s",
        "writers",
        "waited p50",
        "p99",
        "longest hold p50",
        "hand-over p50",
        "waited, of both",
    ]);
    for hold in HOLDS.map(Duration::from_millis) {
        let run = measure(context, hold);
        let [waited, held, handed] =
            [&run.waits, &run.holds, &run.handovers].map(|durations| durations.quantile(0.5));
        table.row([
            time(hold),
            rate(run.readers),
            run.writers.to_string(),
            time(waited),
            time(run.waits.quantile(0.99)),
            time(held),
            time(handed),
            format!("{:.2}", waited.as_secs_f64() / (held + handed).as_secs_f64()),
        ]);
    }
    let about = format!(
        "{READERS} processes are readers of one lock all the time, and one process wants the lock \
         every {EVERY:?} for {HELD:?}. No reader held it beside the writer, or this would have \
         ended here. `longest hold`: of the readers that held the lock while the writer waited. \
         `hand-over`: from the last one's call that releases it to the return of the writer's call."
    );
    table.print("readers, and a writer every 100 ms, 5 nodes", &about);
}

fn measure(context: &Context, hold: Duration) -> Run {
    let mut readers = Worker::start_all(READERS, &context.job("redlatch-reader"));
    let mut writer = Worker::start_all(1, &context.job("redlatch"));
    let seconds = Duration::from_secs(if context.options.is_quick { 4 } else { 15 });
    let duration = context.options.slice.unwrap_or(seconds);
    let start = now() + nanos(Duration::from_millis(50));
    let opened = start + nanos(WARM_UP);
    let mut order = Order {
        kind: Kind::Contended,
        prefix: format!("versus-redlatch:writer{}", nanos(hold)),
        start,
        end: opened + nanos(duration),
        hold,
        every: Duration::ZERO,
    };
    readers.iter_mut().for_each(|reader| reader.begin(&order));
    (order.start, order.hold, order.every) = (opened, HELD, EVERY);
    writer[0].begin(&order);
    let writes = writer[0].finish().clients.remove(0);
    let reads: Vec<Record> =
        readers.iter_mut().flat_map(|reader| reader.finish().clients.remove(0)).collect();
    context.servers.expect_gone(&order.prefix);
    let run = Run::new(&reads, &writes, duration);
    assert!(run.readers > 0.0, "no reader had the lock");
    run
}

impl Run {
    /// Panics if a reader held the lock beside a writer.
    fn new(reads: &[Record], writes: &[Record], duration: Duration) -> Self {
        let (mut holds, mut handovers) = (Vec::new(), Vec::new());
        for write in writes {
            let is_beside =
                |read: &&Record| read.granted < write.releasing && write.granted < read.releasing;
            assert!(!reads.iter().any(|read| is_beside(&read)), "a reader beside the writer");
            let during = reads
                .iter()
                .filter(|read| read.granted < write.granted && read.releasing > write.asked);
            holds.extend(during.clone().map(|read| read.releasing - read.granted).max());
            handovers.extend(during.map(|read| write.granted - read.releasing).min());
        }
        let opened = writes.first().map_or(0, |write| write.asked);
        let window = opened..opened + nanos(duration);
        let counted = reads.iter().filter(|read| window.contains(&read.granted)).count();
        Self {
            readers: counted as f64 / duration.as_secs_f64(),
            writers: writes.len(),
            waits: Durations::new(writes.iter().map(|write| write.granted - write.asked)),
            holds: Durations::new(holds.into_iter()),
            handovers: Durations::new(handovers.into_iter()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Note;

    fn record(asked: u64, granted: u64, releasing: u64) -> Record {
        Record { asked, granted, releasing, released: releasing, note: Note::default() }
    }

    #[test]
    fn the_readers_that_held_the_lock_while_the_writer_waited_count() {
        let reads = [record(0, 10, 20), record(0, 10, 50), record(30, 35, 60), record(40, 90, 95)];
        let run = Run::new(&reads, &[record(30, 62, 70)], HELD);
        assert_eq!(run.waits.quantile(1.0), Duration::from_nanos(32));
        assert_eq!(run.holds.quantile(1.0), Duration::from_nanos(40));
        assert_eq!(run.handovers.quantile(1.0), Duration::from_nanos(2));
    }

    #[test]
    #[should_panic(expected = "a reader beside the writer")]
    fn a_reader_beside_the_writer_is_noticed() {
        let (read, write) = (record(0, 1, 4), record(2, 3, 5));
        let _ = Run::new(&[read], &[write], HELD);
    }
}
