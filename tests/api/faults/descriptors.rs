//! A process that may not open another descriptor.

use std::env;
use std::fs::{self, File};
use std::time::{Duration, Instant};

use redlatch::{ConfigError, Error};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, can_be_acquired, connected, gone, report_texts, take,
    with_long_timeout,
};
use support::program::{end_with_parent, succeed, test_process};
use support::servers::Servers;
use support::transport::is_tls;

const URLS: &str = "REDLATCH_TEST_DESCRIPTORS_URLS";

#[test]
fn without_descriptors_new_connections_fail_and_open_ones_still_work() {
    let servers = Servers::start(3);
    let mut command = test_process("faults::descriptors::as_a_process_without_descriptors");
    succeed(command.env(URLS, servers.urls().join(" ")));
    assert!(["old", "new"].iter().all(|name| gone(&servers, name)));
}

/// More descriptors than a client of three nodes opens: after the taken ones are closed, so many
/// must be available, even if there are few gaps below the highest.
const ROOM: u64 = 16;

/// Opens all descriptors that this process may still open, with a limit a little above those it
/// has.
fn take_all() -> Vec<File> {
    let entries = fs::read_dir("/proc/self/fd").expect("Linux has it");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let highest: u64 = names
        .filter_map(|name| name.parse().ok())
        .max()
        .expect("there are some");
    let limit = Rlimit {
        current: Some(highest + 1 + ROOM),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limit).expect("a limit may be lowered");
    let all: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(
        all.len() as u64 >= ROOM,
        "{} descriptors of {highest}",
        all.len()
    );
    all
}

/// The processor time of this process, in hundredths of a second, as Linux counts it.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux has it");
    let fields: Vec<&str> = stat
        .rsplit(") ")
        .next()
        .expect("fields")
        .split(' ')
        .collect();
    // In user mode and in the kernel: the 14th and 15th field, the name being the 2nd.
    let ticks: u64 = fields[11..13]
        .iter()
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Duration::from_millis(10 * ticks)
}

/// The code of that process. Does nothing without the environment variable.
#[test]
fn as_a_process_without_descriptors() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let old = connected(all_nodes_client(urls.split(' ')));
    let mut guard = take(&old, "old", LONG);
    let new = all_nodes_client(urls.split(' '));

    let busy = processor_time();
    let all = take_all();
    // Over TLS, the file with the authority's certificate is opened first.
    let built = with_long_timeout(urls.split(' ')).build();
    let is_refused = matches!(built, Err(Error::Config(ConfigError::System(_))));
    assert!(is_refused || is_tls() && built.is_err(), "{built:?}");
    let wait = Duration::from_secs(2);
    let start = Instant::now();
    match new.request("new").ttl(LONG).try_lock_for(wait) {
        Err(Error::NoQuorum(error)) => {
            let why = |words: &String| words.starts_with("no connection: Too many open files");
            assert!(report_texts(&error).iter().all(why), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let took = start.elapsed();
    assert!(took >= wait / 2 && took < wait + LIMIT, "{took:?}");

    guard.extend(LONG).unwrap();
    assert_eq!(guard.release(), Ok(()));
    for _ in 0..20 {
        take(&old, "old", LONG).release().unwrap();
    }
    drop(all);
    // It slept between attempts, and did not spin.
    let busy = processor_time() - busy;
    assert!(busy < wait / 2, "{busy:?} of work in {took:?}");
    // When descriptors are available again, it works.
    assert!(eventually(LIMIT, || can_be_acquired(&new, "new")));
}
