//! `redlatch bench`: how fast the user's own nodes grant locks and hand them over.

mod chart;
mod histogram;

use super::arguments::{BenchArguments, NodeArguments};
use super::exit::{self, Failure};
use super::{acquire, output, settings};
use histogram::Histogram;
use redlatch::{CancelToken, Error, LockClient};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// If this program is killed, its lock ends soon.
const TTL: Duration = Duration::from_secs(5);

/// For how many times a round the lock is held before it is handed over: by then the other client
/// waits in the nodes' queue.
const ROUNDS_HELD: u32 = 4;

/// The number of the signal that asked for the end, or zero.
type Stop = Arc<AtomicUsize>;

pub(crate) fn bench(nodes: &NodeArguments, arguments: &BenchArguments) -> Result<u8, Failure> {
    let builder = settings::builder(nodes)?;
    let clients = [builder.clone().build()?, builder.build()?];
    let stop = Stop::default();
    end_on_signals(&stop, clients.each_ref().map(LockClient::cancel_token))?;
    let name = [b"redlatch-bench:", &*acquire::default_owner()].concat();
    let (acquire, release, failed) = rounds(&clients[0], &name, arguments.rounds, &stop)?;
    let held = acquire.median() * ROUNDS_HELD;
    let handoffs = handoff(&clients, &name, (arguments.handoffs, held), &stop)?;
    let all = [acquire, release, handoffs];
    if arguments.json {
        let mut figures = serde_json::Map::new();
        for histogram in &all {
            figures.insert(histogram.name.replace(' ', "_"), histogram.to_json());
        }
        figures.insert("failed_rounds".to_owned(), json!(failed));
        output::print(&format!("{}\n", json!(figures)))?;
    } else {
        let texts: Vec<String> = all.iter().map(Histogram::to_text).collect();
        output::print(&texts.join("\n"))?;
        if failed > 0 {
            let rounds = arguments.rounds;
            output::print(&format!(
                "\n{failed} of {rounds} rounds failed: too few nodes answered\n"
            ))?;
        }
    }
    if let Some(path) = &arguments.svg {
        fs::write(path, chart::svg(&all))
            .map_err(|error| Failure::new(exit::FAILED, &format!("{}: {error}", path.display())))?;
    }
    Ok(exit::SUCCESS)
}

/// Has these signals end the benchmark, even while it waits for nodes.
fn end_on_signals(stop: &Stop, cancel: [CancelToken; 2]) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::system("signals cannot be caught", &error))?;
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        for signal in signals.forever() {
            stop.store(usize::try_from(signal).unwrap_or(0), Ordering::SeqCst);
            cancel.iter().for_each(CancelToken::cancel);
        }
    });
    Ok(())
}

/// What ends the benchmark: a signal, before the failure that follows from it.
fn failure(stop: &Stop, error: Error) -> Failure {
    check(stop).err().unwrap_or_else(|| error.into())
}

/// An error if a signal asks for the end.
fn check(stop: &Stop) -> Result<(), Failure> {
    match stop.load(Ordering::SeqCst) {
        0 => Ok(()),
        number => Err(Failure::silent(
            exit::SIGNAL + u8::try_from(number).unwrap_or(0),
        )),
    }
}

/// Acquires and releases a free lock, again and again. Returns in how many rounds too few nodes
/// answered in time: they are not measured, and end nothing.
fn rounds(
    client: &LockClient,
    name: &[u8],
    count: u32,
    stop: &Stop,
) -> Result<(Histogram, Histogram, u32), Failure> {
    let mut acquired = Vec::new();
    let mut released = Vec::new();
    let mut failed = 0;
    // The first makes the connections. Without nodes there is nothing to wait for.
    if let Some(first) = client
        .try_lock(name, TTL)
        .map_err(|error| failure(stop, error))?
    {
        first.release()?;
    }
    for _ in 0..count {
        check(stop)?;
        let start = Instant::now();
        let guard = match client.lock(name, TTL) {
            Ok(guard) => guard,
            Err(Error::TooSlow { .. }) => {
                failed += 1;
                continue;
            }
            Err(error) => return Err(failure(stop, error)),
        };
        let held = Instant::now();
        match guard.release() {
            Ok(()) => {
                acquired.push(held - start);
                released.push(held.elapsed());
            }
            Err(Error::NoQuorum(_) | Error::Lost(_)) => failed += 1,
            Err(error) => return Err(error.into()),
        }
    }
    let acquired = Histogram::new("acquire", acquired);
    Ok((acquired, Histogram::new("release", released), failed))
}

/// Two clients take turns. Measures from the release by one until the other has the lock.
fn handoff(
    clients: &[LockClient; 2],
    name: &[u8],
    (count, held): (u32, Duration),
    stop: &Stop,
) -> Result<Histogram, Failure> {
    let released: Mutex<Option<(usize, Instant)>> = Mutex::new(None);
    let times = Mutex::new(Vec::new());
    let run = |number: usize| -> Result<(), Error> {
        loop {
            let guard = match clients[number].lock(name, TTL) {
                Err(Error::TooSlow { .. }) => continue,
                locked => locked?,
            };
            let now = Instant::now();
            let last = released
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
            times.extend(last.filter(|(by, _)| *by != number).map(|(_, at)| now - at));
            let is_done = times.len() >= count as usize || stop.load(Ordering::SeqCst) != 0;
            drop(times);
            if is_done {
                return Ok(());
            }
            thread::sleep(held);
            let at = Instant::now();
            *released.lock().unwrap_or_else(PoisonError::into_inner) = Some((number, at));
            drop(guard);
        }
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        let result = run(0);
        let other = other.join().unwrap_or(Err(Error::Cancelled));
        result.and(other)
    })
    .map_err(|error| failure(stop, error))?;
    check(stop)?;
    let times = times.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Histogram::new("handoff", times))
}
