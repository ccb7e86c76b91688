//! Other programs' locks on the same path: Curator and kazoo, in processes of their own, which say
//! when they held the lock. No two holds overlap, whoever had them.

use crate::client::Client;
use crate::contention::plan;
use redlatch_zookeeper::path::Layout;
use rustix::time::{ClockId, clock_gettime};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use support::needs_zookeeper;
use support::server_program::say;
use support::zookeeper::Shared;

/// Clients of each program, and how often each has the lock.
const CLIENTS: usize = 3;
const GRANTS: usize = 15;

/// Begin and end in nanoseconds of the monotonic clock, which all processes share.
type Hold = (i64, i64);

/// One of the other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Curator,
    /// With the names of this layout.
    Kazoo(&'static str),
}

/// The process of a program, which ends with the test.
struct Running {
    program: Program,
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Program {
    /// Starts it, if it is installed. Otherwise this is said.
    fn start(self, hosts: &str, path: &str) -> Option<Running> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("zookeeper_servers");
        let clients = CLIENTS.to_string();
        let grants = GRANTS.to_string();
        let mut command = match self {
            Self::Curator => {
                let jars = [
                    "curator-recipes",
                    "curator-framework",
                    "curator-client",
                    "slf4j-nop",
                ];
                let jars = jars.map(|jar| format!("/usr/share/java/{jar}.jar"));
                if let Some(missing) = jars.iter().find(|jar| !Path::new(jar).is_file()) {
                    return self.skip(&format!("{missing} is missing"));
                }
                let mut command = Command::new("java");
                command.args(["-XX:TieredStopAtLevel=1", "-cp", &jars.join(":")]);
                command.arg(folder.join("Crowd.java")).args([hosts, path]);
                command
            }
            Self::Kazoo(layout) => {
                let Some(python) = python() else {
                    return self.skip("no python3 has kazoo");
                };
                let mut command = Command::new(python);
                command
                    .arg(folder.join("crowd.py"))
                    .args([hosts, path, layout]);
                command
            }
        };
        let command = command.args([clients, grants]);
        match command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
            Ok(mut process) => {
                let output = process.stdout.take().expect("it is a pipe");
                Some(Running {
                    program: self,
                    process,
                    output: BufReader::new(output),
                })
            }
            Err(error) => self.skip(&error.to_string()),
        }
    }

    fn skip(self, why: &str) -> Option<Running> {
        say(&format!("a crowd without {self:?}: {why}"));
        None
    }
}

/// A Python with kazoo: that of the path, or Debian's.
fn python() -> Option<&'static str> {
    let has_kazoo = |python: &&str| {
        let mut command = Command::new(python);
        let command = command.args(["-c", "import kazoo"]).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    ["python3", "/usr/bin/python3"].into_iter().find(has_kazoo)
}

impl Running {
    /// Waits until its clients are connected.
    #[track_caller]
    fn await_ready(&mut self) {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it prints text");
        assert_eq!(line, "ready\n", "{:?}", self.program);
    }

    /// Its clients begin to contend.
    fn begin(&mut self) {
        let mut input = self.process.stdin.as_ref().expect("it is a pipe");
        input.write_all(b"go\n").expect("it reads a line");
    }

    /// Waits for its end, and returns its holds.
    #[track_caller]
    fn holds(mut self) -> Vec<Hold> {
        let mut text = String::new();
        self.output
            .read_to_string(&mut text)
            .expect("it prints text");
        let status = self.process.wait().expect("a child can be waited for");
        assert!(status.success(), "{:?}: {status}", self.program);
        let parse = |line: &str| -> Option<Hold> {
            let (begin, end) = line.split_once(' ')?;
            Some((begin.parse().ok()?, end.parse().ok()?))
        };
        text.lines()
            .map(|line| parse(line).expect("a hold in each line"))
            .collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail if it has ended, as it has unless the test fails.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn monotonic_nanos() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// This library's clients share the lock.
fn contend(ports: &[u16], root: &str, layout: Layout) -> Vec<Hold> {
    let holds = Mutex::new(Vec::new());
    let run = || {
        let mut client = Client::new(ports);
        for _ in 0..GRANTS {
            let mut plan = plan(root, "a");
            plan.layout = layout;
            client.acquire(plan);
            let begin = monotonic_nanos();
            thread::sleep(Duration::from_millis(1));
            holds.lock().unwrap().push((begin, monotonic_nanos()));
            client.release();
        }
        client.end();
    };
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(run);
        }
    });
    holds.into_inner().unwrap()
}

/// How many holds began before an earlier one had ended.
fn overlaps(holds: &mut [Hold]) -> usize {
    holds.sort_unstable();
    let mut latest = i64::MIN;
    let overlapping = holds.iter().filter(|(begin, end)| {
        let overlaps = *begin < latest;
        latest = latest.max(*end);
        overlaps
    });
    overlapping.count()
}

/// How often the lock went from one program to another one.
fn changes(holds: &[(usize, Hold)]) -> usize {
    let mut holds = holds.to_vec();
    holds.sort_unstable_by_key(|(_, hold)| *hold);
    holds
        .windows(2)
        .filter(|pair| pair[0].0 != pair[1].0)
        .count()
}

/// This library and others share a lock.
fn share(shared: &Shared, layout: Layout, programs: &[Program]) {
    let path = format!("{}/a", shared.root());
    let hosts = format!("127.0.0.1:{}", shared[0].port());
    let running = programs
        .iter()
        .filter_map(|program| program.start(&hosts, &path));
    let mut running: Vec<Running> = running.collect();
    running.iter_mut().for_each(Running::await_ready);
    running.iter_mut().for_each(Running::begin);
    let mut crowds = vec![contend(&shared.ports(), shared.root(), layout)];
    crowds.extend(running.into_iter().map(Running::holds));
    let named = crowds.iter().enumerate();
    let named: Vec<_> = named
        .flat_map(|(who, holds)| holds.iter().map(move |h| (who, *h)))
        .collect();
    let mut all = crowds.concat();
    let changes = changes(&named);
    println!(
        "{} programs, {} holds, {changes} changes",
        crowds.len(),
        all.len()
    );
    // Waiters of all programs stand in one queue.
    assert!(
        crowds.len() == 1 || changes > GRANTS,
        "they did not contend"
    );
    assert_eq!(all.len(), crowds.len() * CLIENTS * GRANTS);
    assert_eq!(overlaps(&mut all), 0, "two holders: {named:?}");
}

#[test]
fn curator_kazoo_with_its_names_and_this_library_exclude_each_other() {
    let shared = needs_zookeeper!().shared();
    share(
        &shared,
        Layout::Curator,
        &[Program::Curator, Program::Kazoo("curator")],
    );
}

#[test]
fn kazoo_and_this_library_with_its_names_exclude_each_other() {
    let shared = needs_zookeeper!().shared();
    share(&shared, Layout::Kazoo, &[Program::Kazoo("kazoo")]);
}

#[test]
fn overlaps_are_found() {
    assert_eq!(overlaps(&mut [(5, 6), (1, 2), (2, 5)]), 0);
    assert_eq!(overlaps(&mut [(1, 9), (2, 3), (4, 5), (9, 10)]), 2);
}
