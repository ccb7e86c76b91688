//! The measured work: clients that acquire and release locks for a while, and what is written down
//! of each lock. All scenarios are made of it; where a value is read or changed, or two
//! participants commit, that is what takes the place of the acquisition, and nothing is released.
//!
//! All times and lengths are nanoseconds of CLOCK_MONOTONIC, which is one clock for all processes
//! of a machine: so the records of two processes tell whether both held a lock at once.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

/// Long enough that no lock expires during a run, nor while `waiting` holds it.
pub const TTL: Duration = Duration::from_secs(60);

/// Which locks clients want.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Serialize, Deserialize)]
pub struct Order {
    pub kind: Kind,
    /// What the names of the locks begin with.
    pub prefix: String,
    /// On the clock of [`now`], as is `end`.
    pub start: u64,
    /// No request begins later. One that waits is waited for.
    pub end: u64,
    /// How long a lock is held, and the least time from one request to the next.
    pub hold: u64,
    pub every: u64,
    /// No client asks for more locks than this.
    pub locks_max: usize,
}

/// The life of one lock, from the request to the end of its release.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub struct Note {
    /// Which of several permits it was, if there are several.
    pub permit: Option<u64>,
    /// How many calls ended without saying whether they changed the value.
    pub unknown: u64,
}

/// What the clients of a process did.
#[derive(Serialize, Deserialize)]
pub struct Answer {
    /// Processor time of the whole process, kernel time included.
    pub cpu: u64,
    /// The same in instructions, without the kernel's, if they are counted.
    pub instructions: Option<u64>,
    /// The locks of each client, in order.
    pub clients: Vec<Vec<Record>>,
}

/// A library in the hands of threads: acquires the lock of this name, calls what is to be done
/// while it is held, and releases it. The lock is free unless the second argument is true: then
/// this waits for it. It panics if the lock was not acquired or not released.
pub type Cycle = Box<dyn Fn(&str, bool, &mut dyn FnMut(Note)) + Sync>;

/// Carries out an order, with a thread for each client.
pub fn run(cycle: &Cycle, order: &Order, clients: usize) -> Answer {
    thread::scope(|scope| {
        let spawn = |index| scope.spawn(move || run_client(cycle, order, index));
        let threads: Vec<_> = (0..clients).map(spawn).collect();
        sleep_until(order.start);
        let before = cpu_time();
        let join = |thread: ScopedJoinHandle<'_, _>| thread.join().expect("no thread panics");
        let clients = threads.into_iter().map(join).collect();
        Answer {
            cpu: cpu_time() - before,
            instructions: None,
            clients,
        }
    })
}

fn run_client(cycle: &Cycle, order: &Order, index: usize) -> Vec<Record> {
    let resource = order.resource(index);
    let mut records = Vec::new();
    sleep_until(order.start);
    let mut asked = now();
    while asked < order.end && records.len() < order.locks_max {
        let mut record = Record {
            asked,
            ..Record::default()
        };
        cycle(&resource, order.kind == Kind::Contended, &mut |note| {
            record.note = note;
            record.granted = now();
            // A loop without a pause reads the clock twice a lock, as few times as it can.
            record.releasing = record.granted;
            if order.hold > 0 {
                thread::sleep(Duration::from_nanos(order.hold));
                record.releasing = now();
            }
        });
        record.released = now();
        records.push(record);
        asked = record.released;
        if order.every > 0 {
            sleep_until(record.asked + order.every);
            asked = now();
        }
    }
    records
}

/// Now, on the clock of all records.
pub fn now() -> u64 {
    read(ClockId::Monotonic)
}

/// The processor time that this process has taken so far, in all its threads and in the kernel.
pub fn cpu_time() -> u64 {
    read(ClockId::ProcessCPUTime)
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// A length as the records count.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

pub fn sleep_until(end: u64) {
    thread::sleep(Duration::from_nanos(end.saturating_sub(now())));
}

impl Order {
    /// The lock of a client of this process.
    pub fn resource(&self, client: usize) -> String {
        match self.kind {
            Kind::Free => format!("{}:{client}", self.prefix),
            Kind::Contended | Kind::Together => format!("{}:same", self.prefix),
        }
    }
}
