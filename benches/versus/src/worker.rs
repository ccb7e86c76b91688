//! Each peer is measured in a process of its own, so that its processor time and its memory are its
//! own too. This program runs itself again for that; the two talk in lines.

use crate::peers::Peer;
use crate::work::{Kind, Plan, Slice};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The first argument of a program that is to be a worker.
pub const SUBCOMMAND: &str = "worker";

/// What a worker is started with.
#[derive(Clone, Debug)]
pub struct Job {
    pub peer: Peer,
    pub kind: Kind,
    pub threads: usize,
    /// What its keys begin with. Workers that contend share it, others do not.
    pub prefix: String,
    pub marker: PathBuf,
    pub urls: Vec<String>,
}

/// A worker process, as seen from outside.
pub struct Worker {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    pub fn start(job: &Job) -> Self {
        let program = std::env::current_exe().expect("a program knows where it is");
        let mut command = Command::new(program);
        command.arg(SUBCOMMAND).args(job.arguments());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be run again");
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("its output is piped"));
        Self { child, orders, answers }
    }

    /// Begins a slice. Its end is awaited with [`finish`](Self::finish).
    pub fn begin(&mut self, duration: Duration) {
        let orders = self.orders.as_mut().expect("they are closed only at the end");
        writeln!(orders, "{}", duration.as_micros()).expect("the worker listens");
    }

    pub fn finish(&mut self) -> Slice {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the worker's output can be read");
        let slice = Slice::from_text(line.trim_end());
        slice.expect("the worker sends a result; its output above says why it sent none")
    }

    /// The most memory it has ever held, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The process ends when its input is closed.
        self.orders = None;
        let _ = self.child.wait();
    }
}

impl Job {
    fn arguments(&self) -> Vec<String> {
        let kind = if self.kind == Kind::Contended { "contended" } else { "free" };
        let marker = self.marker.display().to_string();
        let mut arguments = vec![self.peer.word(), kind.to_owned(), self.threads.to_string()];
        arguments.extend([self.prefix.clone(), marker]);
        arguments.extend_from_slice(&self.urls);
        arguments
    }

    fn parse(arguments: &[String]) -> Option<Self> {
        let [peer, kind, threads, prefix, marker, urls @ ..] = arguments else { return None };
        Some(Self {
            peer: Peer::from_word(peer)?,
            kind: if kind == "contended" { Kind::Contended } else { Kind::Free },
            threads: threads.parse().ok()?,
            prefix: prefix.clone(),
            marker: Path::new(marker).to_owned(),
            urls: urls.to_vec(),
        })
    }
}

/// Is a worker, until there are no more orders.
pub fn serve(arguments: &[String]) -> Result<(), String> {
    let job = Job::parse(arguments).ok_or("this is started by the program itself")?;
    let mut run = job.peer.start(&job.urls, job.threads);
    let mut plan = Plan {
        kind: job.kind,
        threads: job.threads,
        prefix: job.prefix,
        marker: job.marker,
        duration: Duration::ZERO,
    };
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let micros = line.parse().map_err(|_| format!("{line:?} is no order"))?;
        plan.duration = Duration::from_micros(micros);
        let slice = run(&plan);
        let mut out = io::stdout().lock();
        writeln!(out, "{slice}").and_then(|()| out.flush()).map_err(|error| error.to_string())?;
    }
    Ok(())
}
