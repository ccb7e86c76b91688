//! Starts, stops and kills the client processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::client::{FOLDER, NUMBER, TALLY, URLS};
use super::figures::Figures;
use support::chance::Chance;
use support::eventually;
use support::program::test_process;

const COUNT: usize = 3;

/// How long a client may take to end: some of its threads may wait for a lock.
const END_LIMIT: Duration = Duration::from_secs(60);

struct Client {
    process: Child,
    /// Until when it stays stopped, if it has stopped itself.
    frozen_until: Option<Instant>,
}

impl Client {
    fn is_frozen(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id()));
        // The state follows the name, which is in parentheses.
        stat.is_ok_and(|text| {
            text.rsplit(") ")
                .next()
                .is_some_and(|rest| rest.starts_with('T'))
        })
    }

    fn go_on(&mut self) {
        self.frozen_until = None;
        // A child that was not waited for keeps its id.
        kill_process(Pid::from_child(&self.process), Signal::CONT).expect("it is our child");
    }
}

/// The client processes. The first runs to the end; the others are killed sometimes, and replaced.
pub(crate) struct Clients {
    urls: String,
    folder: PathBuf,
    clients: Vec<Client>,
    started: u64,
    pub(crate) killed: usize,
    pub(crate) frozen: usize,
}

impl Clients {
    pub(crate) fn start(urls: &[String], folder: &Path) -> Self {
        let urls = urls.join(" ");
        let folder = folder.to_owned();
        let mut clients = Self {
            urls,
            folder,
            clients: Vec::new(),
            started: 0,
            killed: 0,
            frozen: 0,
        };
        for _ in 0..COUNT {
            let client = clients.spawn();
            clients.clients.push(client);
        }
        clients
    }

    fn spawn(&mut self) -> Client {
        self.started += 1;
        let mut command = test_process("as_a_client");
        command.env(URLS, &self.urls).env(FOLDER, &self.folder);
        command.env(NUMBER, self.started.to_string());
        let process = command.spawn().expect("this program can be started again");
        Client {
            process,
            frozen_until: None,
        }
    }

    /// Continues the processes that were stopped for long enough, and perhaps kills one.
    pub(crate) fn step(&mut self, chance: &mut Chance) {
        for client in &mut self.clients {
            match client.frozen_until {
                None if client.is_frozen() => {
                    // Some stay stopped for longer than any ttl.
                    client.frozen_until = Some(Instant::now() + chance.millis(1..=3_000));
                    self.frozen += 1;
                }
                Some(until) if until <= Instant::now() => client.go_on(),
                _ => {}
            }
            let ended = client.process.try_wait().expect("a child can be asked");
            assert!(ended.is_none(), "a client ended by itself: {ended:?}");
        }
        if chance.one_in(200) {
            let index = 1 + chance.below(COUNT - 1);
            let fresh = self.spawn();
            let mut old = std::mem::replace(&mut self.clients[index], fresh);
            old.process.kill().expect("it is our child");
            old.process.wait().expect("it was killed");
            self.killed += 1;
        }
    }

    pub(crate) fn figures_of_the_oldest(&self) -> Figures {
        Figures::of(self.clients[0].process.id()).expect("it is never killed")
    }

    /// Ends all clients, and adds up their counters.
    pub(crate) fn finish(&mut self) -> BTreeMap<&'static str, u64> {
        for client in &mut self.clients {
            drop(client.process.stdin.take());
        }
        for client in &mut self.clients {
            let ended = eventually(END_LIMIT, || {
                if client.is_frozen() {
                    client.go_on();
                }
                client
                    .process
                    .try_wait()
                    .expect("a child can be asked")
                    .is_some()
            });
            assert!(ended, "a client does not end");
            let status = client.process.wait().expect("it has ended");
            assert!(status.success(), "a client panicked: {status}");
        }
        let mut tally = BTreeMap::new();
        let text = fs::read_to_string(self.folder.join("tally")).expect("each writes a line");
        for line in text.lines() {
            for (name, count) in TALLY.iter().zip(line.split(' ')) {
                *tally.entry(*name).or_default() += count.parse::<u64>().expect("a number");
            }
        }
        tally
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        for client in &mut self.clients {
            // It fails only if the process has ended already.
            let _ = client.process.kill();
            let _ = client.process.wait();
        }
    }
}
