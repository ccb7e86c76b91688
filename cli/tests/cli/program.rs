//! Starts the command `redlatch` and waits for it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};
use signal_hook::flag;
use support::eventually;
use support::locks::LIMIT;
use support::servers::Servers;

/// Whoever started this program may have had it ignore signals, as nohup does, or a shell with `&`.
/// The command would inherit that. Signals that are caught here have their usual effect there.
pub(crate) fn expect_signals() {
    static CAUGHT: Once = Once::new();
    CAUGHT.call_once(|| {
        for signal in [SIGHUP, SIGINT, SIGQUIT] {
            let usual = Arc::new(AtomicBool::new(true));
            flag::register_conditional_default(signal, usual).expect("it can be caught");
        }
    });
}

/// The command, without nodes and out of reach of files of the user.
pub(crate) fn bare() -> Command {
    expect_signals();
    let mut command = Command::new(env!("CARGO_BIN_EXE_redlatch"));
    for variable in [
        "REDLATCH_NODES",
        "XDG_CONFIG_HOME",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ]
    .into_iter()
    .chain([
        "REDLATCH_TLS_CA",
        "REDLATCH_TLS_CERT",
        "REDLATCH_TLS_KEY",
        "REDLATCH_KEY_PREFIX",
    ])
    .chain(["REDLATCH_TOKEN"])
    {
        command.env_remove(variable);
    }
    command.env("HOME", "/nowhere");
    command.stdin(Stdio::null());
    command
}

/// A script of the shell that starts the command, with these servers as its nodes.
pub(crate) fn shell_script(servers: &Servers, script: &str) -> Command {
    expect_signals();
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .env("REDLATCH_NODES", servers.urls().join(","));
    command
}

/// The command with these servers as its nodes.
pub(crate) fn redlatch(servers: &Servers, arguments: &[&str]) -> Command {
    let mut command = bare();
    command.env("REDLATCH_NODES", servers.urls().join(","));
    // The servers have just been started, and the machine may be busy.
    command
        .args(["--no-restart-guard", "--node-timeout", "2s"])
        .args(arguments);
    command
}

/// The same with the restart guard: the servers have just been started, and are in quarantine.
pub(crate) fn guarded(servers: &Servers, arguments: &[&str]) -> Command {
    let mut command = bare();
    command.env("REDLATCH_NODES", servers.urls().join(","));
    command.args(["--node-timeout", "2s"]).args(arguments);
    command
}

/// What a command printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let code = output
            .status
            .code()
            .expect("it ends by itself, not by a signal");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Self {
            code,
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// Runs it to its end.
#[track_caller]
pub(crate) fn end(command: &mut Command) -> Ended {
    command.output().expect("the command starts").into()
}

/// The only child of a process, which its main thread has started. Linux tells.
#[track_caller]
pub(crate) fn child_of(parent: Pid) -> Pid {
    let [child] = children_of(parent)[..] else {
        panic!("it runs, and has one child")
    };
    child
}

/// The children of a process, which its main thread has started: none if it is gone.
pub(crate) fn children_of(parent: Pid) -> Vec<Pid> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let children = children.unwrap_or_default();
    children.split_whitespace().map(pid_of).collect()
}

#[track_caller]
fn pid_of(number: &str) -> Pid {
    number
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .expect("the number of a process")
}

/// The state of a process, such as `S` for one that sleeps. `None` if it is gone.
pub(crate) fn state_of(pid: Pid) -> Option<char> {
    stat_of(pid)?.first()?.chars().next()
}

/// Is this process in the group that the terminal is for at the moment?
pub(crate) fn has_terminal(pid: Pid) -> bool {
    stat_of(pid).is_some_and(|stat| stat[2] == stat[5])
}

/// What proc_pid_stat(5) tells of a process from its state on.
fn stat_of(pid: Pid) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Before it is the name, in brackets.
    let (_, rest) = stat.rsplit_once(") ")?;
    Some(rest.split(' ').map(str::to_owned).collect())
}

/// Has it ended? It may be left as a zombie, if nobody waits for it.
pub(crate) fn has_ended(pid: Pid) -> bool {
    test_kill_process(pid).is_err() || state_of(pid) == Some('Z')
}

/// A process that a command has left running, and that is killed with its test.
pub(crate) struct Left(pub(crate) Pid);

impl Left {
    /// From the line with its number.
    #[track_caller]
    pub(crate) fn parse(line: &str) -> Self {
        Self(pid_of(line.trim()))
    }

    pub(crate) fn has_ended(&self) -> bool {
        has_ended(self.0)
    }

    #[track_caller]
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.0, signal).expect("it runs");
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = kill_process(self.0, Signal::KILL);
        }
    }
}

/// A program that says nothing for so long hangs. Some work for long on a busy machine.
const SILENCE: Duration = Duration::from_secs(180);

/// Waits until there is something to read in this pipe, or its end.
fn is_readable(pipe: &impl AsFd, limit: Duration) -> bool {
    let limit = Timespec::try_from(limit).expect("a few seconds");
    loop {
        match poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&limit)) {
            Err(Errno::INTR) => {}
            ready => return ready == Ok(1),
        }
    }
}

/// A process that is killed with its test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Starts it with pipes for its output.
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().expect("the command starts"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // A child that was not waited for keeps its id.
        kill_process(Pid::from_child(&self.0), signal).expect("it is our child");
    }

    /// Waits until its stdout has had this line.
    #[track_caller]
    pub(crate) fn await_line(&mut self, line: &str) {
        self.await_text(&format!("{line}\n"));
    }

    #[track_caller]
    pub(crate) fn next_line(&mut self) -> String {
        self.await_text("\n")
    }

    /// Waits until its stdout has had this text. Returns what it has had since the last such wait.
    #[track_caller]
    pub(crate) fn await_text(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        while !seen.ends_with(text.as_bytes()) {
            let byte = self.next_byte(&|| String::from_utf8_lossy(&seen).into_owned());
            seen.push(byte);
        }
        String::from_utf8(seen).expect("text")
    }

    /// The next byte of its stdout, which must come after what is seen by now.
    #[track_caller]
    pub(crate) fn next_byte(&mut self, seen: &dyn Fn() -> String) -> u8 {
        let stdout = self.0.stdout.as_mut().expect("it is piped");
        let mut byte = [0];
        let is_ready = is_readable(stdout, SILENCE);
        assert!(is_ready, "it says nothing after {:?}", seen());
        let count = stdout.read(&mut byte).expect("a pipe can be read");
        assert_eq!(count, 1, "it ended after {:?}", seen());
        byte[0]
    }

    /// The first line of its stderr, which must come; the rest is not read any more.
    #[track_caller]
    pub(crate) fn first_note(&mut self) -> String {
        let stderr = self.0.stderr.take().expect("it is piped");
        assert!(is_readable(&stderr, SILENCE), "it says nothing");
        let mut line = String::new();
        BufReader::new(stderr).read_line(&mut line).expect("text");
        line
    }

    /// Its end, which must come.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        self.status();
        let mut stdout = String::new();
        let mut stderr = String::new();
        if let Some(mut pipe) = self.0.stdout.take() {
            pipe.read_to_string(&mut stdout).expect("text");
        }
        if let Some(mut pipe) = self.0.stderr.take() {
            pipe.read_to_string(&mut stderr).expect("text");
        }
        let code = self
            .status()
            .code()
            .expect("it ends by itself, not by a signal");
        Ended {
            code,
            stdout,
            stderr,
        }
    }

    #[track_caller]
    pub(crate) fn status(&mut self) -> ExitStatus {
        let mut ended = None;
        let has_ended = || {
            ended = self.0.try_wait().expect("a child can be asked");
            ended.is_some()
        };
        assert!(eventually(2 * LIMIT, has_ended), "it does not end");
        ended.expect("it has ended")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It fails only if the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
