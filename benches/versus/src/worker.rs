//! Each peer is measured in one or several processes of its own, so that its processor time is its
//! own too: this program runs itself again, writes orders to the input of that process, and reads
//! an answer to each from its output. Orders and answers are lines of JSON.

use crate::instructions;
use crate::peers::find;
use crate::work::{Answer, Kind, Order, now};
use serde::Serialize;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The first argument of a program that is to be a worker.
pub const SUBCOMMAND: &str = "worker";

/// The same for [`acquire`].
pub const ACQUIRE: &str = "acquire";

/// kazoo, the library of Python for ZooKeeper, in a script that is a worker.
pub const KAZOO: &str = "kazoo";
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/peers/kazoo_worker.py");

/// Another Python than the system's, such as that of a virtual environment with kazoo.
const PYTHON: &str = "REDLATCH_VERSUS_PYTHON";

/// What a worker is started with.
#[derive(Clone, Debug)]
pub struct Job {
    /// The peer's word.
    pub peer: &'static str,
    /// How many clients are in the process, each a thread or a task.
    pub clients: usize,
    pub urls: Vec<String>,
    /// Whom it trusts over TLS.
    pub authority: PathBuf,
    /// Another build of this program, if the worker is to be one.
    pub build: Option<PathBuf>,
}

/// A worker process, as seen from outside.
pub struct Worker {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts workers, and waits until all of them have connected.
    pub fn start_all(count: usize, job: &Job) -> Vec<Self> {
        let mut all: Vec<_> = (0..count).map(|_| Self::start(job)).collect();
        for worker in &mut all {
            assert_eq!(worker.line(), "ready", "the worker connects");
        }
        all
    }

    fn start(job: &Job) -> Self {
        let this = || std::env::current_exe().expect("a program knows where it is");
        let mut command = Command::new(job.build.clone().unwrap_or_else(this));
        command
            .args([SUBCOMMAND, job.peer, &job.clients.to_string()])
            .args(&job.urls);
        if job.peer == KAZOO {
            command = python();
            command.args([SCRIPT, job.urls[0].trim_start_matches("zk://")]);
        }
        // Where libraries that trust the system's certificates look for them instead.
        command.env("SSL_CERT_FILE", &job.authority);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("the program can be run");
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("its output is piped"));
        Self {
            child,
            orders,
            answers,
        }
    }

    /// Begins what is ordered. Its end is awaited with [`finish`](Self::finish).
    pub fn begin(&mut self, order: &Order) {
        let orders = self
            .orders
            .as_mut()
            .expect("they are closed only at the end");
        writeln!(orders, "{}", to_line(order)).expect("the worker reads its orders");
    }

    pub fn finish(&mut self) -> Answer {
        let answer = serde_json::from_str(&self.line());
        answer.expect("the worker sends a result; its output above says why it sent none")
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .expect("the worker's output can be read");
        assert!(
            line.ends_with('\n'),
            "the worker ended; its output above says why"
        );
        line.trim_end().to_owned()
    }
}

/// Whether a script can be a worker; if not, this says why not.
pub fn kazoo_is_installed() -> bool {
    let done = python().args(["-c", "import kazoo"]).output();
    let is_there = done.is_ok_and(|output| output.status.success());
    if !is_there {
        println!(
            "kazoo is not measured: it is not installed (Debian: python3-kazoo; PyPI: kazoo, and \
             {PYTHON}=venv/bin/python)\n"
        );
    }
    is_there
}

fn python() -> Command {
    Command::new(std::env::var_os(PYTHON).unwrap_or_else(|| "python3".into()))
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The process ends when its input is closed.
        self.orders = None;
        let _ = self.child.wait();
    }
}

/// Is a worker, until there are no more orders.
pub fn serve(arguments: &[String]) -> Result<(), String> {
    let by_itself = "this is started by the program itself";
    let [peer, clients, urls @ ..] = arguments else {
        return Err(by_itself.to_owned());
    };
    let clients = clients.parse().map_err(|_| by_itself)?;
    // Before there are other threads, so that these count as well.
    let mut counter = instructions::count().ok();
    let mut count = || counter.as_mut().and_then(|counter| counter.read().ok());
    let mut run = find(peer).start(urls, clients);
    say("ready")?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let order = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let before = count();
        let answer = run(&order);
        let instructions = count().zip(before).map(|(after, before)| after - before);
        say(&to_line(&Answer {
            instructions,
            ..answer
        }))?;
    }
    Ok(())
}

/// Acquires and releases so many locks with one client, and says nothing: for
/// `benches/instructions.sh`.
pub fn acquire(arguments: &[String]) -> Result<(), String> {
    let usage = "usage: redlatch-versus acquire PEER LOCKS URL...";
    let [peer, locks, urls @ ..] = arguments else {
        return Err(usage.to_owned());
    };
    let locks_max = locks.parse().map_err(|_| usage)?;
    let prefix = format!("versus-{peer}");
    let start = now();
    let order = Order {
        kind: Kind::Free,
        prefix,
        start,
        end: u64::MAX,
        hold: 0,
        every: 0,
        locks_max,
    };
    let answer = find(peer).start(urls, 1)(&order);
    assert_eq!(
        answer.clients[0].len(),
        locks_max,
        "it ends when they are released"
    );
    Ok(())
}

fn to_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it has nothing that JSON lacks")
}

/// Writes a line that the parent reads as an answer.
fn say(line: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|error| error.to_string())
}
