//! The redis-server processes of a run.

use crate::process::{self, Process, command, eventually, free_port};
use crate::resp::{Connection, ask};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::process::{Pid, Signal, kill_process};
use std::cell::Cell;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A server takes milliseconds to start; a machine that builds something else at the time, longer.
const START_LIMIT: Duration = Duration::from_secs(20);

/// What a server does at once takes a busy machine no longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Servers on loopback ports, each with a directory of its own, gone when this is dropped.
pub struct Servers {
    servers: Vec<Server>,
    directory: PathBuf,
    /// How many of them are frozen: the last ones.
    frozen: Cell<usize>,
}

struct Server {
    process: Process,
    port: u16,
    /// For TLS.
    secure_port: u16,
}

const AUTHORITY: &str = "authority.crt";

impl Servers {
    /// Starts servers that know all in memory, or write each change to the disk before they answer.
    pub fn start(count: usize, on_disk: bool) -> Result<Self, String> {
        if let Err(error) = Command::new("redis-server").arg("--version").output() {
            let how = "on Debian and Ubuntu, `apt-get install redis-server`";
            return Err(format!(
                "redis-server, all that this needs, cannot be run ({error}): {how}"
            ));
        }
        let name = format!("redlatch-versus-{}", std::process::id());
        let directory = process::directory(&std::env::temp_dir(), &name)?;
        certify(&directory).map_err(|error| error.to_string())?;
        let always = ["--appendonly", "yes", "--appendfsync", "always"];
        let settings = if on_disk {
            &always[..]
        } else {
            &["--appendonly", "no"]
        };
        let mut all = Self {
            servers: Vec::new(),
            directory,
            frozen: Cell::new(0),
        };
        for index in 0..count {
            all.servers.push(start(&all.directory, index, settings)?);
        }
        Ok(all)
    }

    /// Where the servers are.
    pub fn urls(&self) -> Vec<String> {
        self.addresses()
            .iter()
            .map(|address| format!("redis://{address}"))
            .collect()
    }

    /// The same, over TLS.
    pub fn secure_urls(&self) -> Vec<String> {
        let url = |server: &Server| format!("rediss://127.0.0.1:{}", server.secure_port);
        self.servers.iter().map(url).collect()
    }

    /// Closes all connections of clients.
    pub fn disconnect(&self) {
        for server in &self.servers {
            ask(server.port, &["CLIENT", "KILL", "TYPE", "normal"]);
        }
    }

    /// The same, without the scheme.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.servers
            .iter()
            .map(|server| ([127, 0, 0, 1], server.port).into())
            .collect()
    }

    /// The one that is watched.
    pub fn last_address(&self) -> SocketAddr {
        self.addresses().pop().expect("there is one at least")
    }

    /// Where other servers keep their files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file of the certificate authority that signed the servers' certificates.
    pub fn authority(&self) -> PathBuf {
        self.directory.join(AUTHORITY)
    }

    /// Freezes the last of them (SIGSTOP): they keep their connections, and answer nothing.
    pub fn freeze_last(&self, count: usize) {
        self.frozen.set(count);
        self.signal_frozen(Signal::STOP);
        for server in self.servers.iter().rev().take(count) {
            // The signal alone does not say when.
            let stat = format!("/proc/{}/stat", server.process.child.id());
            let is_stopped = |stat: String| {
                stat.rsplit(") ")
                    .next()
                    .is_some_and(|rest| rest.starts_with('T'))
            };
            let stopped = || fs::read_to_string(&stat).map_or(true, is_stopped);
            assert!(
                eventually(PATIENCE, stopped),
                "SIGSTOP did not stop a server"
            );
        }
    }

    /// Continues those that are frozen.
    pub fn resume_all(&self) {
        self.signal_frozen(Signal::CONT);
        self.frozen.set(0);
    }

    fn signal_frozen(&self, signal: Signal) {
        for server in self.servers.iter().rev().take(self.frozen.get()) {
            let pid = Pid::from_child(&server.process.child);
            kill_process(pid, signal).expect("a signal reaches one's own child");
        }
    }

    pub fn are_frozen(&self) -> bool {
        self.frozen.get() > 0
    }

    /// The processor time that all of them have taken so far; zero where the kernel does not say.
    pub fn cpu_time(&self) -> Duration {
        let of_one = |server: &Server| -> Option<u64> {
            let path = format!("/proc/{}/schedstat", server.process.child.id());
            fs::read_to_string(path)
                .ok()?
                .split(' ')
                .next()?
                .parse()
                .ok()
        };
        Duration::from_nanos(self.servers.iter().filter_map(of_one).sum())
    }

    /// Waits until no key with this prefix is left on the servers that are not frozen, and panics
    /// if one stays: released locks must be gone. The counters of fenced locks stay.
    pub fn expect_gone(&self, prefix: &str) {
        for server in &self.servers[..self.servers.len() - self.frozen.get()] {
            let words = ["EVAL", COUNT_LOCKS, "0", &format!("{prefix}*")];
            let is_empty = || ask(server.port, &words) == ":0";
            assert!(
                eventually(PATIENCE, is_empty),
                "released keys of {prefix} are still there"
            );
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.servers.clear();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn start(parent: &Path, index: usize, settings: &[&str]) -> Result<Server, String> {
    let directory = process::directory(parent, &index.to_string())?;
    let port = free_port()?;
    let secure_port = free_port()?;
    let process = Process::start(redis(port, secure_port, &directory, settings), &directory)?;
    // Another process may have taken the port first.
    let is_ours = format!("process_id:{}\r\n", process.child.id());
    let info = || Connection::new(("127.0.0.1", port))?.ask(&["INFO", "server"]);
    process.wait_until(START_LIMIT, || {
        info().is_ok_and(|info| info.contains(&is_ours))
    })?;
    Ok(Server {
        process,
        port,
        secure_port,
    })
}

/// Makes a certificate authority, and the certificate that all servers have.
fn certify(directory: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, key)?;
    let key = KeyPair::generate()?;
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
    let certificate = params.signed_by(&key, &authority)?;
    fs::write(directory.join(AUTHORITY), authority.pem())?;
    fs::write(directory.join("server.crt"), certificate.pem())?;
    fs::write(directory.join("server.key"), key.serialize_pem())?;
    Ok(())
}

fn redis(port: u16, secure_port: u16, directory: &Path, settings: &[&str]) -> Command {
    let mut command = command("redis-server");
    let [port, secure_port] = [port, secure_port].map(|port| port.to_string());
    command.args([
        "--port",
        &port,
        "--tls-port",
        &secure_port,
        "--tls-auth-clients",
        "no",
    ]);
    let files = [
        ("cert", "server.crt"),
        ("key", "server.key"),
        ("ca-cert", AUTHORITY),
    ];
    for (name, file) in files {
        command
            .arg(format!("--tls-{name}-file"))
            .arg(directory.with_file_name(file));
    }
    command.args(["--bind", "127.0.0.1", "--daemonize", "no"]);
    command
        .args(["--save", "", "--dir"])
        .arg(directory)
        .args(settings);
    command
}

/// How many keys there are like `ARGV[1]` that are not counters.
const COUNT_LOCKS: &str = "local count = 0 \
                           for _, key in ipairs(redis.call('KEYS', ARGV[1])) do \
                             local is_counter = string.find(key, ':redlatch:fence$') \
                             count = is_counter and count or count + 1 \
                           end \
                           return count";
