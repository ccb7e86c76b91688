//! A process that may not open another descriptor.

use std::env;
use std::fs::{self, File};
use std::time::{Duration, Instant};

use redlatch::{ConfigError, LockError, Released};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::support::eventually;
use super::support::locks::{LIMIT, LONG, gone, patient, take, thorough, words};
use super::support::program::{again, end_with_parent, succeed};
use super::support::servers::Servers;
use super::{connected, is_to_be_had};

const URLS: &str = "REDLATCH_TEST_DESCRIPTORS_URLS";

#[test]
fn without_descriptors_new_connections_fail_and_old_ones_serve_on() {
    let servers = Servers::start(3);
    let mut command = again("descriptors::as_a_process_without_descriptors");
    succeed(command.env(URLS, servers.urls().join(" ")));
    assert!(["old", "new"].iter().all(|name| gone(&servers, name)));
}

/// More descriptors than a client of three nodes opens: as many must be to be had once those that
/// were taken are given back, however few gaps there are below the highest.
const ROOM: u64 = 16;

/// Takes every descriptor that this process may still have, with a limit a little above those it
/// has.
fn take_all() -> Vec<File> {
    let entries = fs::read_dir("/proc/self/fd").expect("Linux has it");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let highest: u64 = names.filter_map(|name| name.parse().ok()).max().expect("there are some");
    let limit = Rlimit { current: Some(highest + 1 + ROOM), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).expect("a limit may be lowered");
    let all: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(all.len() as u64 >= ROOM, "{} descriptors of {highest}", all.len());
    all
}

/// The time for which this process has had a processor, in the hundredths of a second in which
/// Linux counts it.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux has it");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
    // In user mode and in the kernel: the 14th and 15th field, the name being the 2nd.
    let ticks: u64 = fields[11..13].iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

/// What that process does. By itself, without the variable, it has nothing to do.
#[test]
fn as_a_process_without_descriptors() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let old = connected(thorough(urls.split(' ')));
    let mut guard = take(&old, "old", LONG);
    let new = thorough(urls.split(' '));

    let busy = processor_time();
    let all = take_all();
    assert!(matches!(patient(urls.split(' ')).build(), Err(ConfigError::System(_))));
    let (wait, start) = (Duration::from_secs(2), Instant::now());
    match new.try_lock_for("new", LONG, wait) {
        Err(LockError::NoQuorum(error)) => {
            let why = |words: &String| words.starts_with("no connection: Too many open files");
            assert!(words(&error).iter().all(why), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let took = start.elapsed();
    assert!(took >= wait / 2 && took < wait + LIMIT, "{took:?}");

    guard.extend(LONG).unwrap();
    assert_eq!(guard.release(), Ok(Released::InTime));
    for _ in 0..20 {
        let _ = take(&old, "old", LONG).release().unwrap();
    }
    drop(all);
    // It waited for better times, and did not turn in circles.
    let busy = processor_time() - busy;
    assert!(busy < wait / 2, "{busy:?} of work in {took:?}");
    // And they come.
    assert!(eventually(LIMIT, || is_to_be_had(&new, "new")));
}
