//! A pool of three licences, for more programs than may run at a time.
//!
//! ```sh
//! cargo run --features embedded --example licences
//! cargo run --features embedded --example licences -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts five Redis-like nodes inside this process.
//!
//! A permit is a lock with a number, so each program knows which of the licences is its own. A
//! licence that is given back goes to the program that has waited longest, and one whose program
//! died is free when its ttl has passed.

use redlatch::embedded::Nodes;
use redlatch::{Holder, LockClient, LockGuard, LockState};
use std::error::Error;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

const LICENCES: [&str; 3] = ["7F2A-0001", "7F2A-0002", "7F2A-0003"];
const PROGRAMS: [&str; 7] = [
    "amber", "beryl", "coral", "diamond", "emerald", "flint", "garnet",
];
const JOBS: usize = 4;

/// When a program dies, its licence is taken for this time. Short, so that this program ends soon.
const TTL: Duration = Duration::from_secs(1);

type Failure = Box<dyn Error + Send + Sync>;

/// How often each licence was used, and by whom it is used now.
type Uses = Mutex<[(usize, Option<&'static str>); LICENCES.len()]>;

fn main() -> Result<(), Failure> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        let nodes = Nodes::start(5)?;
        story(&nodes.urls())
    } else {
        story(&urls)
    }
}

/// All programs do their jobs; then one dies with a licence.
pub(crate) fn story(urls: &[String]) -> Result<(), Failure> {
    // With the process number, so that a second start of this program has a pool of its own.
    let pool = format!("licences:{}", std::process::id());
    let uses = Uses::default();
    thread::scope(|scope| {
        let programs: Vec<_> = PROGRAMS
            .into_iter()
            .map(|name| {
                let pool = &pool;
                let uses = &uses;
                scope.spawn(move || program(&LockClient::new(urls)?, pool, name, uses))
            })
            .collect();
        programs
            .into_iter()
            .try_for_each(|thread| thread.join().expect("a program panicked"))
    })?;
    for (licence, (count, _)) in LICENCES
        .iter()
        .zip(*uses.lock().expect("nobody panics with it"))
    {
        say(&format!("Licence {licence} was used {count} times."));
    }
    die(&LockClient::new(urls)?, &pool)
}

/// Waits for a licence before each job. Extended automatically, it lasts as long as the job.
fn program(
    client: &LockClient,
    pool: &str,
    name: &'static str,
    uses: &Uses,
) -> Result<(), Failure> {
    for _ in 0..JOBS {
        let request = client
            .request(pool)
            .ttl(TTL)
            .one_of(LICENCES.len() as u32)
            .owner(name);
        request.with_lock(|lock| work(name, lock, uses))?;
    }
    Ok(())
}

fn work(name: &'static str, lock: &LockGuard, uses: &Uses) -> Result<(), Failure> {
    let number = number(lock)?;
    let before = {
        let (count, user) = &mut uses.lock().expect("nobody panics with it")[number];
        *count += 1;
        user.replace(name)
    };
    if let Some(other) = before {
        return Err(format!("{name} and {other} both use {}", LICENCES[number]).into());
    }
    thread::sleep(Duration::from_millis(20)); // the job
    lock.ensure_held()?;
    uses.lock().expect("nobody panics with it")[number].1 = None;
    Ok(())
}

/// The index of the licence that belongs to this permit.
fn number(lock: &LockGuard) -> Result<usize, Failure> {
    let permit = lock.slot().ok_or("the request was for a permit")?;
    Ok(usize::try_from(permit)?)
}

/// A program dies with a licence. The others are not affected, and get it when its ttl has passed.
fn die(client: &LockClient, pool: &str) -> Result<(), Failure> {
    let request = |owner: &str| {
        client
            .request(pool)
            .ttl(TTL)
            .one_of(LICENCES.len() as u32)
            .owner(owner)
    };
    let start = Instant::now();
    let dead = request("dead").lock()?;
    let its_number = dead.slot();
    // The guard of a program that was killed is not dropped, and nothing gives its permit back.
    std::mem::forget(dead);
    let alive = [
        request("amber").keep_alive().lock()?,
        request("beryl").keep_alive().lock()?,
    ];
    match client.inspect(pool).map(|seen| seen.state) {
        Ok(LockState::Shared(holders)) => holders.iter().for_each(show),
        Ok(_) => return Err("all licences are in use".into()),
        Err(error) => say(&format!("   not known: {error}")),
    }
    let last = request("coral").lock()?;
    let after = start.elapsed();
    if last.slot() != its_number && alive.iter().all(|lock| lock.ensure_held().is_ok()) {
        return Err("only the dead program's licence could be free".into());
    }
    say(&format!(
        "Its licence is free again {after:.1?} after the dead program acquired it."
    ));
    Ok(())
}

/// Which licence it has.
fn show(holder: &Holder) {
    let owner = holder.owner().map(|name| name.to_string());
    let licence = holder.slot.and_then(|number| LICENCES.get(number as usize));
    say(&format!(
        "   {} is used by {}.",
        licence.unwrap_or(&"?"),
        owner.unwrap_or_default()
    ));
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
