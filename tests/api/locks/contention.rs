//! Many threads, clients and processes want the same lock: one at a time has it, no update is lost,
//! and each gets it.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use redlatch::LockClient;
use support::locks::{LONG, gone, with_long_timeout};
use support::servers::Servers;
use tempfile::TempDir;

const ROUNDS: usize = 15;

/// A client that retries often.
fn eager(urls: Vec<String>) -> LockClient {
    let base = Duration::from_millis(1);
    let cap = Duration::from_millis(15);
    with_long_timeout(urls)
        .retry(base, cap)
        .build()
        .expect("the settings are good")
}

/// A folder in memory: a busy disk could delay a thread for longer than its lock is valid, which
/// these tests are not about.
fn in_memory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        memory.to_owned()
    } else {
        env::temp_dir()
    };
    tempfile::tempdir_in(folder).expect("a folder can be made")
}

/// Increments a number in a file without any protection: an update between read and write is lost.
fn count_up(file: &Path) {
    let text = fs::read_to_string(file).expect("the file is there");
    let count: usize = text.parse().expect("it holds a number");
    thread::yield_now();
    fs::write(file, (count + 1).to_string()).expect("the file can be written");
}

const URLS: &str = "REDLATCH_TEST_URLS";
const FILE: &str = "REDLATCH_TEST_FILE";

#[test]
fn four_processes_lose_no_update() {
    let servers = Servers::start(5);
    let directory = in_memory();
    let file = directory.path().join("counter");
    fs::write(&file, "0").unwrap();
    let spawn = |_| -> Child {
        Command::new(env::current_exe().unwrap())
            .args(["--exact", "locks::contention::as_one_of_several_processes"])
            .env(URLS, servers.urls().join(" "))
            .env(FILE, &file)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let processes: Vec<_> = (0..4).map(spawn).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        (4 * 4 * ROUNDS).to_string()
    );
    assert!(gone(&servers, "counter"));
}

/// The code of the four processes. Does nothing without the environment variables.
#[test]
fn as_one_of_several_processes() {
    let (Ok(urls), Some(file)) = (env::var(URLS), env::var_os(FILE)) else {
        return;
    };
    let client = eager(urls.split(' ').map(str::to_owned).collect());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let guard = client.lock("counter", LONG).unwrap();
                    count_up(file.as_ref());
                    guard.release().unwrap();
                }
            });
        }
    });
}

#[test]
fn with_an_even_number_of_nodes_one_client_gets_the_lock() {
    let servers = Servers::start(2);
    let turns = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let client = eager(servers.urls());
                for _ in 0..5 {
                    client.lock("even", LONG).unwrap().release().unwrap();
                    turns.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(turns.into_inner(), 30);
}
