//! Programs that this one starts: each ends when its value is dropped, or when this program is
//! killed.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A server, which is a process and a file for its output.
pub struct Process {
    pub child: Child,
    log: PathBuf,
}

impl Process {
    /// Runs a program in this directory.
    pub fn start(mut command: Command, directory: &Path) -> Result<Self, String> {
        let log = directory.join("log");
        let started = File::create(&log).and_then(|log| {
            command.current_dir(directory).stdin(Stdio::null());
            command.stdout(log.try_clone()?).stderr(log).spawn()
        });
        Ok(Self {
            child: started.map_err(|error| error.to_string())?,
            log,
        })
    }

    /// Waits until the server serves. If it does not in this time, the error has its log.
    pub fn wait_until(&self, limit: Duration, serves: impl FnMut() -> bool) -> Result<(), String> {
        let log = || fs::read_to_string(&self.log).unwrap_or_default();
        let failed = || format!("it does not start; its log:\n{}", log());
        eventually(limit, serves).then_some(()).ok_or_else(failed)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it has ended already. SIGKILL ends a stopped process as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that the kernel ends if this process is killed. `setpriv`, which sees to that, is part
/// of util-linux and replaces itself by the program: the process id stays.
pub fn command(program: &str) -> Command {
    let arguments = ["--pdeathsig", "KILL"];
    let mut bound = Command::new("setpriv");
    bound.args(arguments);
    let works = Command::new("setpriv")
        .args(arguments)
        .arg("true")
        .stderr(Stdio::null())
        .status();
    if !works.is_ok_and(|status| status.success()) {
        return Command::new(program);
    }
    bound.arg(program);
    bound
}

/// An empty directory.
pub fn directory(parent: &Path, name: &str) -> Result<PathBuf, String> {
    let directory = parent.join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    Ok(directory)
}

pub fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    Ok(listener
        .local_addr()
        .map_err(|error| error.to_string())?
        .port())
}

/// Whether the condition holds before the limit has passed.
pub fn eventually(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > limit {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
    true
}
