//! The measured work: threads that acquire and release locks for a while, counted and timed.

use crate::histogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// How long a contended lock is held.
pub const HOLD: Duration = Duration::from_millis(1);

/// Long enough that no lock expires during a run, nor while `waiting` holds it.
pub const TTL: Duration = Duration::from_secs(60);

/// What the threads of a worker do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Each thread acquires and releases a lock of its own, always a free one, as fast as it can.
    Free,
    /// All threads compete for one lock, and hold it for [`HOLD`].
    Contended,
    /// As [`Free`](Self::Free), but all threads are readers of one lock: none waits.
    Readers,
}

/// One slice of measuring.
#[derive(Clone, Debug)]
pub struct Plan {
    pub kind: Kind,
    pub threads: usize,
    pub prefix: String,
    /// The file whose lock shows that only one thread holds the lock. Used only with contention.
    pub marker: PathBuf,
    pub duration: Duration,
}

/// The result of one slice, or of one of its threads.
#[derive(Clone)]
pub struct Slice {
    /// Locks acquired and released.
    pub pairs: u64,
    /// How many of these the slowest and the fastest thread made.
    pub fewest: u64,
    pub most: u64,
    pub wall: Duration,
    /// Of the whole process, kernel time included.
    pub cpu: Duration,
    /// Of all servers together, in the same time.
    pub servers_cpu: Duration,
    /// Changes of which it is not known whether they were made.
    pub unknown: u64,
    /// From the call to the lock.
    pub acquire: Histogram,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Free, Self::Contended, Self::Readers];

    /// The name on the command line of a worker.
    pub fn word(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

impl Plan {
    /// The resource of the `index`-th thread.
    pub fn resource(&self, index: usize) -> String {
        match self.kind {
            Kind::Free => format!("{}:{index}", self.prefix),
            Kind::Contended | Kind::Readers => format!("{}:same", self.prefix),
        }
    }

    pub fn is_contended(&self) -> bool {
        self.kind == Kind::Contended
    }

    /// What a holder does with the lock.
    pub fn marker(&self) -> Option<Marker> {
        self.is_contended().then(|| {
            let file = File::options().create(true).append(true).open(&self.marker);
            Marker(file.expect("the marker can be opened"))
        })
    }
}

/// A file that one holder at a time can lock, in whichever thread or process it is: the kernel's
/// word on whether the lock under test excludes.
pub struct Marker(File);

impl Marker {
    pub fn enter(&self) {
        match self.0.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => panic!("two holders of one lock at the same time"),
            Err(TryLockError::Error(error)) => panic!("the marker cannot be locked: {error}"),
        }
    }

    pub fn leave(&self) {
        self.0.unlock().expect("a held lock can be released");
    }
}

/// A lock library used by threads. Each method panics if the lock was not acquired or released.
pub trait Blocking: Sync {
    type Held<'a>
    where
        Self: 'a;

    /// Acquires the lock. It is free unless `is_contended`; then this waits for it.
    fn acquire(&self, resource: &str, is_contended: bool) -> Self::Held<'_>;

    fn release<'a>(&'a self, held: Self::Held<'a>);

    /// Which permit it is, of a peer that takes permits.
    fn permit(&self, _held: &Self::Held<'_>) -> Option<u32> {
        None
    }

    /// How often nodes were asked for a lock so far, of a peer that counts it.
    fn attempts(&self) -> u64 {
        0
    }

    /// How many changes were made or not so far, of a peer that cannot tell.
    fn unknown(&self) -> u64 {
        0
    }
}

/// Runs a slice of a plan in threads.
pub fn run<B: Blocking>(peer: &B, plan: &Plan) -> Slice {
    let (barrier, unknown) = (Barrier::new(plan.threads + 1), peer.unknown());
    thread::scope(|scope| {
        let barrier = &barrier;
        let spawn = |index| scope.spawn(move || run_thread(peer, plan, index, barrier));
        let threads: Vec<_> = (0..plan.threads).map(spawn).collect();
        barrier.wait();
        let watch = Watch::start();
        let parts = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
        let parts: Vec<_> = parts.collect();
        Slice { unknown: peer.unknown() - unknown, ..watch.stop(&parts) }
    })
}

fn run_thread<B: Blocking>(peer: &B, plan: &Plan, index: usize, barrier: &Barrier) -> Part {
    let resource = plan.resource(index);
    let marker = plan.marker();
    let mut part = Part::new();
    barrier.wait();
    let mut start = Instant::now();
    let end = start + plan.duration;
    while start < end {
        let held = peer.acquire(&resource, plan.is_contended());
        part.acquired(start.elapsed());
        if let Some(marker) = &marker {
            marker.enter();
            thread::sleep(HOLD);
            marker.leave();
        }
        peer.release(held);
        start = Instant::now();
    }
    part
}

/// The result of one thread.
pub struct Part {
    pub pairs: u64,
    pub acquire: Histogram,
}

impl Part {
    pub fn new() -> Self {
        Self { pairs: 0, acquire: Histogram::new() }
    }

    pub fn acquired(&mut self, after: Duration) {
        self.pairs += 1;
        self.acquire.record(after);
    }
}

/// Measures time and processor time while a slice runs.
pub struct Watch {
    started: Instant,
    cpu: Duration,
}

impl Watch {
    pub fn start() -> Self {
        Self { started: Instant::now(), cpu: cpu_time() }
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub fn stop(self, parts: &[Part]) -> Slice {
        let (wall, cpu) = (self.started.elapsed(), cpu_time() - self.cpu);
        let mut acquire = Histogram::new();
        parts.iter().for_each(|part| acquire.add(&part.acquire));
        let pairs = || parts.iter().map(|part| part.pairs);
        Slice {
            pairs: pairs().sum(),
            fewest: pairs().min().unwrap_or(0),
            most: pairs().max().unwrap_or(0),
            wall,
            cpu,
            servers_cpu: Duration::ZERO,
            unknown: 0,
            acquire,
        }
    }
}

/// The processor time that this process has taken so far, in all its threads and in the kernel.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

impl Slice {
    pub fn rate(&self) -> f64 {
        self.pairs as f64 / self.wall.as_secs_f64()
    }

    /// Seconds of the client's processor time.
    pub fn cpu_per_pair(&self) -> f64 {
        self.cpu.as_secs_f64() / self.pairs.max(1) as f64
    }

    /// Seconds of the servers' processor time.
    pub fn servers_cpu_per_pair(&self) -> f64 {
        self.servers_cpu.as_secs_f64() / self.pairs.max(1) as f64
    }

    /// Seconds to get the lock, half of the time.
    pub fn p50(&self) -> f64 {
        self.acquire.quantile(0.5).as_secs_f64()
    }

    /// The same, for all but one time in a hundred.
    pub fn p99(&self) -> f64 {
        self.acquire.quantile(0.99).as_secs_f64()
    }

    /// The slowest thread's pairs as a share of the fastest one's.
    pub fn fairness(&self) -> f64 {
        self.fewest as f64 / self.most.max(1) as f64
    }

    /// The results of several processes, added up.
    pub fn together(slices: &[Self]) -> Self {
        let mut acquire = Histogram::new();
        slices.iter().for_each(|slice| acquire.add(&slice.acquire));
        Self {
            pairs: slices.iter().map(|slice| slice.pairs).sum(),
            fewest: slices.iter().map(|slice| slice.fewest).min().unwrap_or(0),
            most: slices.iter().map(|slice| slice.most).max().unwrap_or(0),
            wall: slices.iter().map(|slice| slice.wall).max().unwrap_or_default(),
            cpu: slices.iter().map(|slice| slice.cpu).sum(),
            servers_cpu: Duration::ZERO,
            unknown: slices.iter().map(|slice| slice.unknown).sum(),
            acquire,
        }
    }

    pub fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        Some(Self {
            pairs: number()?,
            fewest: number()?,
            most: number()?,
            wall: Duration::from_nanos(number()?),
            cpu: Duration::from_nanos(number()?),
            servers_cpu: Duration::ZERO,
            unknown: number()?,
            acquire: Histogram::from_text(words.next()?)?,
        })
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wall, cpu) = (self.wall.as_nanos(), self.cpu.as_nanos());
        write!(f, "{} {} {} ", self.pairs, self.fewest, self.most)?;
        write!(f, "{wall} {cpu} {} ", self.unknown)?;
        f.write_str(&self.acquire.to_text())
    }
}
