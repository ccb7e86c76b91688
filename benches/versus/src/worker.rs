//! Each peer is measured in one or several processes of its own, so that its processor time is its
//! own too: this program runs itself again, writes orders to the input of that process, and reads an
//! answer to each from its output. Orders and answers are lines.

use crate::peers::{self, kazoo};
use crate::work::{Answer, Order};
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The first argument of a program that is to be a worker.
pub const SUBCOMMAND: &str = "worker";

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
        let mut command = if job.peer == kazoo::WORD {
            kazoo::script(&job.urls[0])
        } else {
            let this = || std::env::current_exe().expect("a program knows where it is");
            let mut command = Command::new(job.build.clone().unwrap_or_else(this));
            command.args([SUBCOMMAND, job.peer, &job.clients.to_string()]).args(&job.urls);
            command
        };
        // Where libraries that trust the system's certificates look for them instead.
        command.env("SSL_CERT_FILE", &job.authority);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("the program can be run");
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("its output is piped"));
        Self { child, orders, answers }
    }

    /// Begins what is ordered. Its end is awaited with [`finish`](Self::finish).
    pub fn begin(&mut self, order: &Order) {
        let orders = self.orders.as_mut().expect("they are closed only at the end");
        writeln!(orders, "{}", order.to_text()).expect("the worker reads its orders");
    }

    pub fn finish(&mut self) -> Answer {
        let answer = Answer::from_text(&self.line());
        answer.expect("the worker sends a result; its output above says why it sent none")
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the worker's output can be read");
        assert!(line.ends_with('\n'), "the worker ended; its output above says why");
        line.trim_end().to_owned()
    }
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
    let [peer, clients, urls @ ..] = arguments else { return Err(by_itself.to_owned()) };
    let clients = clients.parse().map_err(|_| by_itself)?;
    let mut run = peers::find(peer).start(urls, clients);
    say("ready")?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let order = Order::from_text(&line).ok_or_else(|| format!("{line:?} is no order"))?;
        say(&run(&order).to_text())?;
    }
    Ok(())
}

/// Writes a line that the parent reads as an answer.
fn say(line: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}
