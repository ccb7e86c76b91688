//! Child processes: this program runs itself again, writes orders to the child's input, and reads
//! an answer to each from its output. Orders and answers are lines.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A child process, as seen from its parent.
pub struct ChildProcess {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl ChildProcess {
    /// Runs this program again with these arguments. Over TLS, it trusts this authority.
    pub fn start<A: AsRef<OsStr>>(
        subcommand: &str,
        arguments: impl IntoIterator<Item = A>,
        authority: Option<&Path>,
    ) -> Self {
        let program = std::env::current_exe().expect("a program knows where it is");
        Self::start_build(&program, subcommand, arguments, authority)
    }

    /// The same with another build of this program.
    pub fn start_build<A: AsRef<OsStr>>(
        program: &Path,
        subcommand: &str,
        arguments: impl IntoIterator<Item = A>,
        authority: Option<&Path>,
    ) -> Self {
        let mut command = Command::new(program);
        command.arg(subcommand).args(arguments);
        // Where libraries that trust the system's certificates look for them instead.
        command.envs(authority.map(|path| ("SSL_CERT_FILE", path)));
        Self::start_command(command)
    }

    /// Runs any program that reads orders and writes answers.
    pub fn start_command(mut command: Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("the program can be run");
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("its output is piped"));
        Self { child, orders, answers }
    }

    /// Sends an order. The answer is awaited with [`answer`](Self::answer).
    pub fn order(&mut self, order: impl Display) {
        let orders = self.orders.as_mut().expect("they are closed only at the end");
        writeln!(orders, "{order}").expect("the child reads its orders");
    }

    /// Waits for the next answer.
    pub fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the child's output can be read");
        assert!(line.ends_with('\n'), "the child ended; its output above says why");
        line.trim_end().to_owned()
    }

    /// The process's number in the operating system.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // The process ends when its input is closed.
        self.orders = None;
        let _ = self.child.wait();
    }
}

/// In the child: answers orders until there are no more.
pub fn serve<A: Display>(mut answer: impl FnMut(&str) -> Result<A, String>) -> Result<(), String> {
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        say(answer(&line)?)?;
    }
    Ok(())
}

/// In the child: writes a line that the parent reads as an answer.
pub fn say(line: impl Display) -> Result<(), String> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}
