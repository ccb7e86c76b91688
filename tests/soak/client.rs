//! One client process: threads that acquire locks, and increment a counter and write a log while
//! they hold them.

use std::env;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use redlatch::{Error, LockClient, LockGuard};
use rustix::process::{Signal, getpid, kill_process};

use super::journal::{Journal, RESOURCES, Section, Span, now};
use support::chance::Chance;
use support::locks::without_restart_guard;
use support::program::end_with_parent;

pub(crate) const URLS: &str = "REDLATCH_SOAK_URLS";
pub(crate) const FOLDER: &str = "REDLATCH_SOAK_FOLDER";
pub(crate) const NUMBER: &str = "REDLATCH_SOAK_NUMBER";

/// The longest ttl, and the quarantine of a restarted node.
pub(crate) const TTL_MAX: Duration = Duration::from_secs(2);

const THREADS: u64 = 3;

/// The least validity for an increment: a thread can be delayed between reading the clock and
/// writing, which this test is not about.
const LEAST: Duration = Duration::from_millis(300);

/// The counters of a process, in this order.
pub(crate) const TALLY: [&str; 7] = [
    "taken",
    "extended",
    "held by others",
    "no quorum",
    "too late",
    "lost",
    "froze",
];

#[derive(Default)]
struct Tally([AtomicU64; TALLY.len()]);

impl Tally {
    fn add(&self, what: &str) {
        let index = TALLY
            .iter()
            .position(|name| *name == what)
            .expect("it is in the list");
        self.0[index].fetch_add(1, Ordering::Relaxed);
    }
}

struct Process {
    number: u64,
    client: LockClient,
    journals: Vec<Journal>,
    /// Locked for an increment, and to stop the whole process: so no thread is stopped between
    /// reading the clock and writing.
    freezing: RwLock<()>,
    is_over: AtomicBool,
    tally: Tally,
}

/// Runs the client until its input ends.
pub(crate) fn run(urls: &str) {
    end_with_parent();
    let folder = PathBuf::from(env::var_os(FOLDER).expect("it is given a folder"));
    let number = env::var(NUMBER).expect("it is given a number");
    let builder = without_restart_guard(urls.split(' ')).client_name("soak");
    let builder = builder
        .node_timeout(Duration::from_millis(150))
        .max_ttl(TTL_MAX);
    let builder = builder.retry(Duration::from_millis(1), Duration::from_millis(30));
    let process = Process {
        number: number.parse().expect("a number"),
        client: builder
            .restart_guard(true)
            .build()
            .expect("the settings are good"),
        journals: (0..RESOURCES.len())
            .map(|index| Journal::open(&folder, index))
            .collect(),
        freezing: RwLock::new(()),
        is_over: AtomicBool::new(false),
        tally: Tally::default(),
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let process = &process;
                scope.spawn(move || process.work(thread))
            })
            .collect();
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        process.is_over.store(true, Ordering::SeqCst);
        // A scope does not report the message of a thread's panic.
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("no thread panics"));
    });
    process.report(&folder);
}

impl Process {
    fn work(&self, thread: u64) {
        let mut chance = Chance::new(self.number * 1_000 + thread);
        let mut number = 0;
        while !self.is_over.load(Ordering::SeqCst) {
            let resource = chance.below(RESOURCES.len());
            let ttl = chance.millis(800..=2_000);
            let wait = chance.pick(&[0, 0, 1, 20, 500, 2_000]);
            let wait = Duration::from_millis(wait);
            match self
                .client
                .request(RESOURCES[resource])
                .ttl(ttl)
                .try_lock_for(wait)
            {
                Ok(Some(guard)) => {
                    self.tally.add("taken");
                    number += 1;
                    let section = (self.number, thread, number);
                    self.hold(guard, &self.journals[resource], section, &mut chance);
                }
                Ok(None) => self.tally.add("held by others"),
                Err(Error::NoQuorum(_)) => self.tally.add("no quorum"),
                Err(Error::TooSlow { .. }) => self.tally.add("too late"),
                Err(error) => panic!("{error}"),
            }
            thread::sleep(chance.millis(0..=3));
        }
    }

    fn hold(&self, mut guard: LockGuard, journal: &Journal, section: Section, chance: &mut Chance) {
        let mut span = span(&guard);
        journal.entered(section, span);
        let count = journal.count() + 1;
        thread::sleep(chance.millis(0..=2));
        if chance.one_in(4) {
            span = self.extend(&mut guard, span, chance.millis(800..=2_000));
        }
        if chance.one_in(400) {
            self.freeze(&mut guard, span);
        }
        let mut counted = 0;
        {
            let _gate = self.freezing.read().expect("no thread panics with it");
            if guard.remaining() > LEAST {
                journal.set_count(count);
                counted = count;
            }
        }
        journal.left(section, now().min(span.until), counted);
        if chance.one_in(2) {
            drop(guard);
        } else {
            drop(guard.release());
        }
    }

    /// Extends the lock, and returns the new time span for which it is held.
    fn extend(&self, guard: &mut LockGuard, span: Span, ttl: Duration) -> Span {
        let before = now();
        match guard.extend(ttl) {
            Ok(()) => {
                self.tally.add("extended");
                Span {
                    granted: span.granted,
                    ..self::span(guard)
                }
            }
            Err(Error::Lost(_)) => {
                self.tally.add("lost");
                assert!(guard.ensure_held().is_err(), "a lost lock stays lost");
                Span {
                    until: span.until.min(before),
                    ..span
                }
            }
            Err(Error::NoQuorum(_)) => span,
            Err(error) => panic!("{error}"),
        }
    }

    /// Stops the whole process while it holds a lock, until the parent process continues it.
    fn freeze(&self, guard: &mut LockGuard, span: Span) {
        {
            let _gate = self.freezing.write().expect("no thread panics with it");
            kill_process(getpid(), Signal::STOP).expect("a process may stop itself");
        }
        self.tally.add("froze");
        if now() >= span.latest {
            assert!(
                guard.ensure_held().is_err(),
                "its time passed while it was stopped"
            );
            let extended = guard.extend(TTL_MAX);
            assert!(matches!(extended, Err(Error::Lost(_))), "{extended:?}");
        }
    }

    fn report(&self, folder: &Path) {
        let counts = self
            .tally
            .0
            .iter()
            .map(|count| count.load(Ordering::Relaxed).to_string());
        let line = format!("{}\n", counts.collect::<Vec<_>>().join(" "));
        let file = File::options()
            .create(true)
            .append(true)
            .open(folder.join("tally"));
        let mut file = file.expect("the tally can be opened");
        file.write_all(line.as_bytes())
            .expect("the tally can be written");
    }
}

/// The time span for which the lock is held: the earliest and the latest end.
fn span(guard: &LockGuard) -> Span {
    let granted = now();
    let left = u64::try_from(guard.remaining().as_nanos()).expect("seconds");
    // The lock is held until then at least: `left` was read at `granted` or a little later.
    let until = if left == 0 { granted } else { granted + left };
    Span {
        granted,
        until,
        latest: now() + left,
    }
}
