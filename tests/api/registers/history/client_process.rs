//! Client processes that are stopped, continued and killed in the middle of their operations.

use super::faulty_servers::hasty_client;
use super::journal;
use super::worker::Worker;
use rustix::process::{Pid, Signal, kill_process};
use std::env;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;
use support::chance::Chance;
use support::program::{end_with_parent, test_process};

pub(crate) const URLS: &str = "REDLATCH_HISTORY_URLS";
const FOLDER: &str = "REDLATCH_HISTORY_FOLDER";
const NUMBER: &str = "REDLATCH_HISTORY_NUMBER";
const SEED: &str = "REDLATCH_HISTORY_CLIENT_SEED";

/// How many processes there are at a time, and threads in each.
const COUNT: usize = 2;
const THREADS: usize = 2;

/// The numbers of their workers begin here: those of threads of the test are lower.
const FIRST_WORKER: usize = 1_000;

/// Runs the client until its input ends.
pub(crate) fn run(urls: &str) {
    end_with_parent();
    let urls: Vec<String> = urls.split(' ').map(str::to_owned).collect();
    let text = |name: &str| env::var(name).expect("it is given by the test");
    let folder = PathBuf::from(text(FOLDER));
    let number: usize = text(NUMBER).parse().expect("a number");
    let seed: u64 = text(SEED).parse().expect("a number");
    let client = hasty_client(&urls);
    let mut threads = Vec::new();
    let mut progress = Vec::new();
    for thread in 0..THREADS {
        let number = FIRST_WORKER + number * THREADS + thread;
        let recorder = journal::recorder(&folder.join(number.to_string()));
        let mut worker = Worker::new(&client, number, seed, Box::new(recorder));
        progress.push(Arc::clone(&worker.progress));
        threads.push(thread::spawn(move || worker.run()));
    }
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    progress
        .iter()
        .for_each(|it| it.is_over.store(true, Ordering::SeqCst));
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("no worker panics"));
}

struct Client {
    process: Child,
    stopped_until: Option<Instant>,
}

impl Client {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it is our child");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It fails only if the process has ended already. It ends a stopped process too.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The processes.
pub(crate) struct Clients {
    urls: String,
    folder: PathBuf,
    clients: Vec<Client>,
    started: usize,
    seed: u64,
    pub(crate) killed: usize,
    pub(crate) stopped: usize,
}

impl Clients {
    pub(crate) fn start(urls: &[String], folder: &Path, seed: u64) -> Self {
        let urls = urls.join(" ");
        let folder = folder.to_owned();
        let mut clients = Self {
            urls,
            folder,
            clients: Vec::new(),
            started: 0,
            seed,
            killed: 0,
            stopped: 0,
        };
        for _ in 0..COUNT {
            let client = clients.spawn();
            clients.clients.push(client);
        }
        clients
    }

    fn spawn(&mut self) -> Client {
        self.started += 1;
        let mut command = test_process("registers::history::as_a_client_process");
        command.env(URLS, &self.urls).env(FOLDER, &self.folder);
        command
            .env(NUMBER, self.started.to_string())
            .env(SEED, self.seed.to_string());
        let process = command.spawn().expect("this program can be started again");
        Client {
            process,
            stopped_until: None,
        }
    }

    /// Continues the processes that were stopped for long enough, and perhaps stops or kills one.
    pub(crate) fn step(&mut self, chance: &mut Chance) {
        for client in &mut self.clients {
            if client
                .stopped_until
                .is_some_and(|until| until <= Instant::now())
            {
                client.signal(Signal::CONT);
                client.stopped_until = None;
            }
            let ended = client.process.try_wait().expect("a child can be asked");
            assert!(ended.is_none(), "a client ended by itself: {ended:?}");
        }
        let index = chance.below(COUNT);
        if chance.one_in(40) {
            self.clients[index] = self.spawn();
            self.killed += 1;
        } else if chance.one_in(15) && self.clients[index].stopped_until.is_none() {
            self.clients[index].signal(Signal::STOP);
            let until = Instant::now() + chance.millis(20..=900);
            self.clients[index].stopped_until = Some(until);
            self.stopped += 1;
        }
    }
}
