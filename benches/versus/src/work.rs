//! The measured work: clients that acquire and release locks for a while, and what is written down
//! of each lock. All scenarios are made of it; where a value is read or changed, or two participants
//! commit, that is what takes the place of the acquisition, and nothing is released.
//!
//! All times are nanoseconds of CLOCK_MONOTONIC, which is one clock for all processes of a machine:
//! so the records of two processes tell whether both held a lock at once.

use rustix::time::{ClockId, clock_gettime};
use std::thread;
use std::time::Duration;

/// Long enough that no lock expires during a run, nor while `waiting` holds it.
pub const TTL: Duration = Duration::from_secs(60);

/// Which locks clients want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Each client acquires a lock of its own, which is always free.
    Free,
    /// All clients compete for one lock, and wait for it.
    Contended,
    /// All clients use one name, and none waits: readers of one lock, or clients of one value.
    Together,
}

/// What clients do: from `start` on, each asks for a lock, holds it, releases it, and begins again,
/// until `end`.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    pub kind: Kind,
    /// What the names of the locks begin with.
    pub prefix: String,
    /// On the clock of [`now`], as is `end`.
    pub start: u64,
    /// No request begins later. One that waits is waited for.
    pub end: u64,
    pub hold: Duration,
    /// The least time from one request to the next.
    pub every: Duration,
}

/// The life of one lock, from the request to the end of its release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Just before the call that waits for the lock.
    pub asked: u64,
    /// That call has returned.
    pub granted: u64,
    /// Just before the call that releases the lock.
    pub releasing: u64,
    /// That call has returned.
    pub released: u64,
    pub note: Note,
}

/// What else a peer says of a lock, or of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Which of several permits it was, if there are several.
    pub permit: Option<u64>,
    /// How many calls ended without saying whether they changed the value.
    pub unknown: u64,
}

/// What the clients of a process did.
#[derive(Debug, PartialEq)]
pub struct Answer {
    /// Processor time of the whole process, kernel time included.
    pub cpu: Duration,
    /// The locks of each client, in order.
    pub clients: Vec<Vec<Record>>,
}

/// A library in the hands of threads: acquires the lock of this name, calls what is to be done while
/// it is held, and releases it. The lock is free unless the second argument is true: then this waits
/// for it. It panics if the lock was not acquired or not released.
pub type Cycle = Box<dyn Fn(&str, bool, &mut dyn FnMut(Note)) + Sync>;

/// Carries out an order, with a thread for each client.
pub fn run(cycle: &Cycle, order: &Order, clients: usize) -> Answer {
    thread::scope(|scope| {
        let spawn = |index| scope.spawn(move || run_client(cycle, order, index));
        let threads: Vec<_> = (0..clients).map(spawn).collect();
        sleep_until(order.start);
        let before = cpu_time();
        let clients = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
        let clients = clients.collect();
        Answer { cpu: cpu_time() - before, clients }
    })
}

fn run_client(cycle: &Cycle, order: &Order, index: usize) -> Vec<Record> {
    let resource = order.resource(index);
    let mut records = Vec::new();
    sleep_until(order.start);
    let mut asked = now();
    while asked < order.end {
        let mut record = Record { asked, ..Record::default() };
        cycle(&resource, order.kind == Kind::Contended, &mut |note| {
            record.note = note;
            record.granted = now();
            // A loop without a pause reads the clock twice a lock, as few times as it can.
            record.releasing = record.granted;
            if !order.hold.is_zero() {
                thread::sleep(order.hold);
                record.releasing = now();
            }
        });
        record.released = now();
        records.push(record);
        asked = record.released;
        if !order.every.is_zero() {
            sleep_until(record.asked + nanos(order.every));
            asked = now();
        }
    }
    records
}

/// Now, on the clock of all records.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// A length as the records count.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

pub fn sleep_until(end: u64) {
    let left = end.saturating_sub(now());
    if left > 0 {
        thread::sleep(Duration::from_nanos(left));
    }
}

/// The processor time that this process has taken so far, in all its threads and in the kernel.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

impl Order {
    /// The lock of a client of this process.
    pub fn resource(&self, client: usize) -> String {
        match self.kind {
            Kind::Free => format!("{}:{client}", self.prefix),
            Kind::Contended | Kind::Together => format!("{}:same", self.prefix),
        }
    }

    /// As a line, for another process.
    pub fn to_text(&self) -> String {
        let Self { kind, prefix, start, end, .. } = self;
        let [hold, every] = [self.hold, self.every].map(nanos);
        format!("{kind:?} {prefix} {start} {end} {hold} {every}")
    }

    pub fn from_text(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(' ')?;
        let (prefix, numbers) = rest.split_once(' ')?;
        let kinds = [Kind::Free, Kind::Contended, Kind::Together];
        let kind = kinds.into_iter().find(|known| format!("{known:?}") == kind)?;
        let [start, end, hold, every] = numbers_of(numbers, ' ')?;
        let [hold, every] = [hold, every].map(Duration::from_nanos);
        Some(Self { kind, prefix: prefix.to_owned(), start, end, hold, every })
    }
}

fn numbers_of<const N: usize>(text: &str, separator: char) -> Option<[u64; N]> {
    let numbers = text.split(separator).map(|word| word.parse().ok());
    numbers.collect::<Option<Vec<u64>>>()?.try_into().ok()
}

impl Record {
    /// As a word: the first time, how long each part took, and the note.
    fn to_text(self) -> String {
        let Self { asked, granted, releasing, released, note } = self;
        let [waited, held, left] = [granted - asked, releasing - granted, released - releasing];
        let permit = note.permit.map_or(0, |permit| permit + 1);
        format!("{asked}:{waited}:{held}:{left}:{permit}:{}", note.unknown)
    }

    fn from_text(text: &str) -> Option<Self> {
        let [asked, waited, held, left, permit, unknown] = numbers_of(text, ':')?;
        let note = Note { permit: permit.checked_sub(1), unknown };
        let (granted, releasing) = (asked + waited, asked + waited + held);
        Some(Self { asked, granted, releasing, released: releasing + left, note })
    }
}

impl Answer {
    /// As a line: processor time, and the records of each client behind a semicolon.
    pub fn to_text(&self) -> String {
        let mut text = nanos(self.cpu).to_string();
        for records in &self.clients {
            let words: Vec<_> = records.iter().map(|record| record.to_text()).collect();
            text += ";";
            text += &words.join(" ");
        }
        text
    }

    pub fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.split(';');
        let cpu = Duration::from_nanos(parts.next()?.parse().ok()?);
        let records = |part: &str| -> Option<Vec<Record>> {
            part.split(' ').filter(|word| !word.is_empty()).map(Record::from_text).collect()
        };
        Some(Self { cpu, clients: parts.map(records).collect::<Option<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let mut clients = vec![Vec::new(); 3];
        for (permit, unknown) in [(None, 2), (Some(0), 0), (Some(7), 0)] {
            let note = Note { permit, unknown };
            clients[1].push(Record { asked: 3, granted: 4, releasing: 14, released: 15, note });
        }
        let answer = Answer { cpu: Duration::from_micros(7), clients };
        assert_eq!(Answer::from_text(&answer.to_text()), Some(answer));
        assert_eq!(Answer::from_text("1;2:3"), None);
        let order = Order {
            kind: Kind::Together,
            prefix: "versus-redlatch:handoff".to_owned(),
            start: 17,
            end: u64::MAX,
            hold: Duration::from_millis(20),
            every: Duration::ZERO,
        };
        assert_eq!(Order::from_text(&order.to_text()), Some(order));
    }
}
