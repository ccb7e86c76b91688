//! One server of an ensemble: its process, its directory and its ports.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::installed::Installed;
use super::words::{Role, ask, role, synced_followers};
use crate::port::Port;
use crate::{eventually, process};

/// A server normally starts in a second or two; this is for a very busy machine.
pub(super) const START_LIMIT: Duration = Duration::from_secs(90);

/// A small heap and no optimizing compiler: a server of a test does little and starts often. No
/// waiting for the disk: a process that is killed loses nothing that it has written.
const JAVA_OPTIONS: [&str; 8] = [
    "-Xmx64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.net.preferIPv4Stack=true",
    "-Dzookeeper.forceSync=no",
    "-Dzookeeper.preAllocSize=64",
    "-Dzookeeper.fastleader.maxNotificationInterval=1000",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
];

/// One server of an ensemble.
pub struct Server {
    installed: &'static Installed,
    directory: TempDir,
    pub(super) client_port: Port,
    pub(super) secure_port: Option<Port>,
    /// For the server's followers, and for elections.
    pub(super) peer_ports: [Port; 2],
    properties: Vec<String>,
    process: Option<Child>,
}

/// Why a server does not serve.
pub(super) enum Failure {
    PortTaken,
    Other(String),
}

impl Server {
    pub(super) fn prepare(
        installed: &'static Installed,
        has_tls: bool,
        properties: &[String],
    ) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("redlatch-zookeeper-")
            .tempdir();
        Self {
            installed,
            directory: directory.expect("a temporary directory can be made"),
            client_port: Port::choose(),
            secure_port: has_tls.then(Port::choose),
            peer_ports: [Port::choose(), Port::choose()],
            properties: properties.to_vec(),
            process: None,
        }
    }

    /// Writes the configuration, which all starts of this server use.
    pub(super) fn configure(&self, id: usize, lines: &[String]) {
        let data = self.data();
        fs::create_dir_all(&data).expect("a folder can be made in a temporary one");
        fs::write(data.join("myid"), id.to_string()).expect("it can be written");
        let mut text = format!(
            "dataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\n",
            data.display(),
            self.port(),
        );
        for line in lines {
            text += line;
            text += "\n";
        }
        fs::write(self.configuration(), text).expect("it can be written");
    }

    #[track_caller]
    pub(super) fn spawn(&mut self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_path());
        let log = log.expect("the log file can be opened");
        let mut args: Vec<String> = JAVA_OPTIONS.map(str::to_owned).to_vec();
        args.extend(
            self.properties
                .iter()
                .map(|property| format!("-D{property}")),
        );
        args.extend(["-cp", self.installed.class_path()].map(str::to_owned));
        args.push("org.apache.zookeeper.server.quorum.QuorumPeerMain".to_owned());
        args.push(self.configuration().display().to_string());
        let process = process::spawn_bound_to_us("java".into(), args, Vec::new(), log);
        self.process = Some(process.unwrap_or_else(|error| panic!("java cannot be run: {error}")));
    }

    /// Waits until the server serves.
    pub(super) fn await_ready(&mut self) -> Result<(), Failure> {
        let mut failure = None;
        let is_decided = || {
            if self.role().is_some() && self.listens_for_tls() {
                return true;
            }
            let exited = self
                .process
                .as_mut()
                .and_then(|child| child.try_wait().ok())
                .flatten();
            if self.log().contains("Address already in use") {
                failure = Some(Failure::PortTaken);
            } else if let Some(status) = exited {
                failure = Some(Failure::Other(format!("it ended with {status}")));
            }
            failure.is_some()
        };
        let is_decided = eventually(START_LIMIT, is_decided);
        match failure {
            Some(failure) => Err(failure),
            None if is_decided => Ok(()),
            None => Err(Failure::Other(format!(
                "it does not serve after {START_LIMIT:?}"
            ))),
        }
    }

    /// The port for TLS is opened after the other one.
    fn listens_for_tls(&self) -> bool {
        let port = self.secure_port.as_ref().map(Port::number);
        port.is_none_or(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())
    }

    #[track_caller]
    pub(super) fn give_up(&self, why: &str) -> ! {
        panic!(
            "a ZooKeeper server did not start: {why}\nits log:\n{}",
            self.log()
        )
    }

    /// The port for clients.
    pub fn port(&self) -> u16 {
        self.client_port.number()
    }

    /// The port for clients with TLS. Panics if the ensemble was not built with it.
    #[track_caller]
    pub fn secure_port(&self) -> u16 {
        self.secure_port
            .as_ref()
            .expect("this ensemble has TLS")
            .number()
    }

    /// `zk://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("zk://127.0.0.1:{}", self.port())
    }

    /// What it is now; `None` if it does not serve.
    pub fn role(&self) -> Option<Role> {
        role(&ask(self.port(), "srvr").ok()?)
    }

    /// How many followers it has, if it is a leader.
    pub(super) fn followers(&self) -> Option<usize> {
        synced_followers(&ask(self.port(), "mntr").ok()?)
    }

    /// The directory the server works in.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The directory of its snapshots and transaction logs.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn configuration(&self) -> PathBuf {
        self.directory.path().join("zoo.cfg")
    }

    fn log_path(&self) -> PathBuf {
        self.directory.path().join("zookeeper.log")
    }

    /// Everything the server has logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// The process id. Panics if the server is not running.
    #[track_caller]
    pub fn pid(&self) -> Pid {
        Pid::from_child(self.process.as_ref().expect("the server is running"))
    }

    #[track_caller]
    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("a signal reaches the test's own child");
    }

    /// SIGSTOP: the server keeps its connections and sends nothing. Returns when all its threads
    /// have stopped, which may be later than the signal.
    #[track_caller]
    pub fn pause(&self) {
        self.signal(Signal::STOP);
        let tasks = format!("/proc/{}/task", self.pid().as_raw_nonzero());
        let has_stopped = |task: &Path| match fs::read_to_string(task.join("stat")) {
            // The state follows the name, which is in parentheses.
            Ok(text) => text
                .rsplit(") ")
                .next()
                .is_some_and(|rest| rest.starts_with('T')),
            // It has ended.
            Err(_) => true,
        };
        let have_stopped = || match fs::read_dir(&tasks) {
            Ok(tasks) => tasks
                .filter_map(Result::ok)
                .all(|task| has_stopped(&task.path())),
            // No such folder on this system.
            Err(_) => true,
        };
        assert!(
            eventually(START_LIMIT, have_stopped),
            "SIGSTOP did not stop the server"
        );
    }

    /// SIGCONT: the server continues.
    #[track_caller]
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// SIGKILL, and waits until the process has ended. Does nothing if it is not running.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Both fail only if the process has ended already. SIGKILL also ends a stopped one.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Starts the server again with the same ports and data, killing it first if it runs. It may
    /// not serve yet: see [`await_serving`](Self::await_serving).
    #[track_caller]
    pub fn restart(&mut self) {
        self.kill();
        // What the last process logged is not about this one.
        let _ = fs::remove_file(self.log_path());
        self.spawn();
    }

    /// Waits until it serves, for which a majority must be there.
    #[track_caller]
    pub fn await_serving(&mut self) {
        match self.await_ready() {
            Ok(()) => {}
            Err(Failure::PortTaken) => self.give_up("its port was taken meanwhile"),
            Err(Failure::Other(why)) => self.give_up(&why),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
