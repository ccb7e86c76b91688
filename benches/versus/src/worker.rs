//! Each peer is measured in a process of its own, so that its processor time and its memory are its
//! own too.

use crate::child::{self, ChildProcess};
use crate::peers::Peer;
use crate::servers::AUTHORITY;
use crate::work::{Kind, Plan, Slice};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The first argument of a program that is to be a worker.
pub const SUBCOMMAND: &str = "worker";

/// What a worker is started with.
#[derive(Clone, Debug)]
pub struct Job {
    pub peer: Peer,
    pub kind: Kind,
    pub threads: usize,
    /// What its keys begin with. Workers that contend or read share it, others do not.
    pub prefix: String,
    pub marker: PathBuf,
    pub urls: Vec<String>,
    /// Another build of this program, if the worker is to be one.
    pub program: Option<PathBuf>,
}

/// A worker process, as seen from outside.
pub struct Worker(ChildProcess);

impl Worker {
    pub fn start(job: &Job) -> Self {
        let authority = job.marker.with_file_name(AUTHORITY);
        let (arguments, authority) = (job.arguments(), Some(authority.as_path()));
        Self(match &job.program {
            Some(program) => ChildProcess::start_build(program, SUBCOMMAND, arguments, authority),
            None => ChildProcess::start(SUBCOMMAND, arguments, authority),
        })
    }

    /// Begins a slice. Its end is awaited with [`finish`](Self::finish).
    pub fn begin(&mut self, duration: Duration) {
        self.0.order(duration.as_micros());
    }

    pub fn finish(&mut self) -> Slice {
        let slice = Slice::from_text(&self.0.answer());
        slice.expect("the worker sends a result; its output above says why it sent none")
    }

    /// The most memory it has ever held, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    }
}

impl Job {
    fn arguments(&self) -> Vec<String> {
        let marker = self.marker.display().to_string();
        let mut arguments = vec![self.peer.word(), self.kind.word(), self.threads.to_string()];
        arguments.extend([self.prefix.clone(), marker]);
        arguments.extend_from_slice(&self.urls);
        arguments
    }

    fn parse(arguments: &[String]) -> Option<Self> {
        let [peer, kind, threads, prefix, marker, urls @ ..] = arguments else { return None };
        Some(Self {
            peer: Peer::from_word(peer)?,
            kind: Kind::from_word(kind)?,
            threads: threads.parse().ok()?,
            prefix: prefix.clone(),
            marker: Path::new(marker).to_owned(),
            urls: urls.to_vec(),
            program: None,
        })
    }
}

/// Is a worker, until there are no more orders.
pub fn serve(arguments: &[String]) -> Result<(), String> {
    let job = Job::parse(arguments).ok_or("this is started by the program itself")?;
    let mut run = job.peer.start(&job.urls);
    let mut plan = Plan {
        kind: job.kind,
        threads: job.threads,
        prefix: job.prefix,
        marker: job.marker,
        duration: Duration::ZERO,
    };
    child::serve(|line| {
        let micros = line.parse().map_err(|_| format!("{line:?} is no order"))?;
        plan.duration = Duration::from_micros(micros);
        Ok(run(&plan))
    })
}
