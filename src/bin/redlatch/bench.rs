//! `redlatch bench`: how fast the user's own nodes grant locks and hand them over.

mod chart;
mod histogram;

use super::arguments::{BenchArguments, NodeArguments};
use super::exit::{self, Failure};
use super::{output, settings};
use histogram::Histogram;
use redlatch::{LockClient, LockError, LockGuard};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// If this program is killed, its lock ends soon.
const TTL: Duration = Duration::from_secs(5);

/// How long it waits for the lock at a time, or for a majority of the nodes.
const PATIENCE: Duration = Duration::from_secs(2);

/// For how many times a round the lock is held before it is handed over: by then the other client
/// waits in the nodes' queue.
const ROUNDS_HELD: u32 = 4;

/// The number of the signal that asked for the end, or zero.
type Stop = Arc<AtomicUsize>;

pub(crate) fn bench(nodes: &NodeArguments, arguments: &BenchArguments) -> Result<u8, Failure> {
    let stop = Stop::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let number = usize::try_from(signal).unwrap_or(0);
        flag::register_usize(signal, Arc::clone(&stop), number)
            .map_err(|error| Failure::system("signals cannot be caught", &error))?;
    }
    let builder = settings::builder(nodes)?;
    let clients = [builder.clone().build()?, builder.build()?];
    let name = format!("redlatch-bench:{}", std::process::id());
    let (acquire, release) = rounds(&clients[0], &name, arguments.rounds, &stop)?;
    let held = acquire.median() * ROUNDS_HELD;
    let handovers = hand_over(&clients, &name, (arguments.handovers, held), &stop)?;
    let all = [acquire, release, handovers];
    if arguments.json {
        let of = |histogram: &Histogram| (histogram.name.to_owned(), histogram.to_json());
        let figures: serde_json::Map<_, _> = all.iter().map(of).collect();
        output::print(&format!("{}\n", json!(figures)))?;
    } else {
        let texts: Vec<String> = all.iter().map(Histogram::to_text).collect();
        output::print(&texts.join("\n"))?;
    }
    if let Some(path) = &arguments.svg {
        let error = |error| Failure::new(exit::FAILED, &format!("{}: {error}", path.display()));
        fs::write(path, chart::svg(&all)).map_err(|why: std::io::Error| error(why))?;
    }
    Ok(exit::SUCCESS)
}

/// An error if a signal asks for the end.
fn check(stop: &Stop) -> Result<(), Failure> {
    match stop.load(Ordering::SeqCst) {
        0 => Ok(()),
        number => Err(Failure::silent(exit::SIGNAL + u8::try_from(number).unwrap_or(0))),
    }
}

/// Acquires the lock; `None` if a signal asks for the end. Too few nodes are an error, and not
/// waited for as by `lock`.
fn acquire(client: &LockClient, name: &str, stop: &Stop) -> Result<Option<LockGuard>, LockError> {
    while stop.load(Ordering::SeqCst) == 0 {
        match client.try_lock_for(name, TTL, PATIENCE) {
            Ok(None) => {}
            Err(_) if stop.load(Ordering::SeqCst) != 0 => break,
            result => return result,
        }
    }
    Ok(None)
}

/// Acquires and releases a free lock, again and again.
fn rounds(
    client: &LockClient,
    name: &str,
    count: u32,
    stop: &Stop,
) -> Result<(Histogram, Histogram), Failure> {
    let (mut acquired, mut released) = (Vec::new(), Vec::new());
    // The first makes the connections.
    if let Some(guard) = acquire(client, name, stop)? {
        let _ = guard.release()?;
    }
    for _ in 0..count {
        let start = Instant::now();
        let Some(guard) = acquire(client, name, stop)? else { break };
        let held = Instant::now();
        let _ = guard.release()?;
        acquired.push(held - start);
        released.push(held.elapsed());
    }
    check(stop)?;
    Ok((Histogram::new("acquire", acquired), Histogram::new("release", released)))
}

/// Two clients take turns. Measures from the release by one until the other has the lock.
fn hand_over(
    clients: &[LockClient; 2],
    name: &str,
    (count, held): (u32, Duration),
    stop: &Stop,
) -> Result<Histogram, Failure> {
    let released: Mutex<Option<(usize, Instant)>> = Mutex::new(None);
    let times = Mutex::new(Vec::new());
    let run = |number: usize| -> Result<(), LockError> {
        loop {
            let Some(guard) = acquire(&clients[number], name, stop)? else { return Ok(()) };
            let now = Instant::now();
            let last = released.lock().unwrap_or_else(PoisonError::into_inner).take();
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
        let other = other.join().unwrap_or(Err(LockError::Cancelled));
        result.and(other)
    })?;
    check(stop)?;
    let times = times.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Histogram::new("hand over", times))
}
