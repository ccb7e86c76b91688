//! Real servers: processes of redis-server or of another program, each on a free loopback port with
//! its own directory.
//!
//! A server is ready when it replies on the Unix socket in its directory. Its port proves nothing:
//! another test's server may have taken it first.
//!
//! No server outlives the tests: dropping a [`Server`] kills it, and if the test process is killed
//! first, the kernel kills it (see `process.rs`).

use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

#[cfg(target_os = "linux")]
use super::certificates::Identity;
use super::cli::{Client, Value};
use super::eventually;
use super::port::Port;
use super::process;
use super::secure_port::SecurePort;
use super::server_program::ServerProgram;

/// A server normally starts in milliseconds; this is for a very busy machine.
const START_LIMIT: Duration = Duration::from_secs(30);

/// How often another free port is tried.
const PORT_ATTEMPTS: usize = 20;

/// One redis-server process.
pub struct Server {
    program: ServerProgram,
    directory: TempDir,
    port: Port,
    pub(super) secure: Option<SecurePort>,
    pub(super) args: Vec<String>,
    environment: Vec<(String, String)>,
    process: Option<Child>,
}

/// Why a server did not start.
enum Failure {
    PortTaken,
    Other(String),
}

impl Server {
    /// Starts a server without persistence, with additional arguments, and waits until it replies.
    /// Panics with the server's log if it does not.
    #[track_caller]
    pub fn start(args: &[&str]) -> Self {
        Self::start_in(&[], args)
    }

    /// The same, with additional environment variables.
    #[track_caller]
    pub fn start_in(environment: &[(String, String)], args: &[&str]) -> Self {
        let mut server = Self::launch(ServerProgram::tested(), environment, args);
        server.await_ready_or_move();
        server
    }

    /// The same as [`Server::start`], with this certificate and additional settings for TLS.
    #[cfg(target_os = "linux")]
    #[track_caller]
    pub fn start_tls(identity: &Identity, settings: &[&str]) -> Self {
        let mut server = Self::prepare(ServerProgram::tested(), &[], &[]);
        server.secure = Some(SecurePort::new(server.directory.path(), identity, settings));
        server.spawn();
        server.await_ready_or_move();
        server
    }

    /// The first half of [`Server::start`]: the process runs, but may not reply yet.
    #[track_caller]
    pub(super) fn launch(
        program: &ServerProgram,
        environment: &[(String, String)],
        args: &[&str],
    ) -> Self {
        let mut server = Self::prepare(program, environment, args);
        server.spawn();
        server
    }

    fn prepare(program: &ServerProgram, environment: &[(String, String)], args: &[&str]) -> Self {
        let directory = tempfile::Builder::new().prefix("redlatch-redis-").tempdir();
        let directory = directory.expect("a temporary directory can be made");
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let program = program.clone();
        let environment = environment.to_vec();
        let secure = SecurePort::if_used(directory.path());
        let port = Port::choose();
        Self {
            program,
            directory,
            port,
            secure,
            args,
            environment,
            process: None,
        }
    }

    /// The second half: waits until the server replies. Uses another port if this one was taken by
    /// another process.
    #[track_caller]
    pub(super) fn await_ready_or_move(&mut self) {
        for _ in 0..PORT_ATTEMPTS {
            match self.await_ready() {
                Ok(()) => return,
                Err(Failure::PortTaken) => {
                    self.port = Port::choose();
                    self.secure.iter_mut().for_each(SecurePort::change);
                    self.spawn();
                }
                Err(Failure::Other(why)) => self.give_up(&why),
            }
        }
        self.give_up("every free port was taken by someone else");
    }

    #[track_caller]
    fn give_up(&self, why: &str) -> ! {
        panic!(
            "{} {:?} did not start: {why}\nits log:\n{}",
            self.program,
            self.args,
            self.log()
        )
    }

    #[track_caller]
    fn spawn(&mut self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_path());
        let log = log.expect("the log file can be opened");
        let port = self.port().to_string();
        let socket = self.unix_socket().display().to_string();
        let directory = self.directory.path().display().to_string();
        let defaults = [
            ["--port", &port],
            ["--bind", "127.0.0.1"],
            ["--unixsocket", &socket],
            ["--dir", &directory],
            ["--save", ""],
            ["--appendonly", "no"],
            ["--daemonize", "no"],
        ];
        let mut args: Vec<_> = defaults.concat().into_iter().map(str::to_owned).collect();
        args.extend(self.secure.iter().flat_map(SecurePort::args));
        args.extend_from_slice(&self.args);
        let path = self.program.path().to_owned();
        let process = process::spawn_bound_to_us(path, args, self.environment.clone(), log);
        self.process = Some(process.unwrap_or_else(|error| {
            panic!("{} cannot be run: {error}", self.program);
        }));
    }

    fn await_ready(&mut self) -> Result<(), Failure> {
        let mut exited = None;
        let ready = eventually(START_LIMIT, || {
            exited = self
                .process
                .as_mut()
                .and_then(|child| child.try_wait().ok())
                .flatten();
            exited.is_some() || self.answers()
        });
        match exited {
            Some(_) if self.log().contains("Address already in use") => {
                // The next attempt must not read this one's log.
                let _ = fs::remove_file(self.log_path());
                Err(Failure::PortTaken)
            }
            Some(status) => Err(Failure::Other(format!("it ended with {status}"))),
            None if ready => Ok(()),
            None => Err(Failure::Other(format!("no answer within {START_LIMIT:?}"))),
        }
    }

    /// Does the server reply, and has it loaded its data?
    fn answers(&self) -> bool {
        let Ok(stream) = UnixStream::connect(self.unix_socket()) else {
            return false;
        };
        let timed = stream.set_read_timeout(Some(Duration::from_secs(1)));
        let reply = timed.and_then(|()| Client::over(stream).try_command(&["PING"]));
        matches!(reply, Ok(reply) if !reply.text().starts_with("LOADING"))
    }

    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The path of the Unix socket on which the server listens as well.
    pub fn unix_socket(&self) -> PathBuf {
        self.directory.path().join("redis.sock")
    }

    /// The directory the server works in.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn log_path(&self) -> PathBuf {
        self.directory.path().join("redis.log")
    }

    /// Everything the server has written to its standard output so far.
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

    /// SIGSTOP: the server keeps its connections and sends no replies. Returns when the process has
    /// stopped, which may be later than the signal.
    #[track_caller]
    pub fn pause(&self) {
        self.signal(Signal::STOP);
        let stat = format!("/proc/{}/stat", self.pid().as_raw_nonzero());
        let stopped = || match fs::read_to_string(&stat) {
            // The state follows the name, which is in parentheses.
            Ok(text) => text
                .rsplit(") ")
                .next()
                .is_some_and(|rest| rest.starts_with('T')),
            // No such file on this system.
            Err(_) => true,
        };
        assert!(
            eventually(START_LIMIT, stopped),
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
            // Both fail only if the process has ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Shuts the server down in order (SIGTERM), and waits until it has ended.
    #[track_caller]
    pub fn stop(&mut self) {
        if self.process.is_none() {
            return;
        }
        self.signal(Signal::CONT);
        self.signal(Signal::TERM);
        let ended = |process: &mut Option<Child>| {
            process
                .as_mut()
                .is_none_or(|child| matches!(child.try_wait(), Ok(Some(_))))
        };
        assert!(
            eventually(START_LIMIT, || ended(&mut self.process)),
            "SIGTERM was ignored"
        );
        self.process = None;
    }

    /// Starts the server again on the same port with the same arguments, killing it first if it
    /// runs, and waits until it answers.
    #[track_caller]
    pub fn restart(&mut self) {
        self.kill();
        // Where the port is not kept, another process may use it for a moment.
        let up = eventually(START_LIMIT, || {
            self.spawn();
            match self.await_ready() {
                Ok(()) => true,
                Err(Failure::PortTaken) => false,
                Err(Failure::Other(why)) => self.give_up(&why),
            }
        });
        assert!(
            up,
            "port {} was taken while its server was down",
            self.port()
        );
    }

    /// A connection of its own, authenticated if the server asks for it.
    #[track_caller]
    pub fn client(&self) -> Client {
        let mut client = Client::connect(self.port()).expect("a running server accepts");
        if let Some(password) = self.password() {
            assert_eq!(client.command(&["AUTH", password]), Value::ok());
        }
        client
    }

    /// Runs one command over a fresh connection.
    #[track_caller]
    pub fn command<A: AsRef<[u8]>>(&self, args: &[A]) -> Value {
        self.client().command(args)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGKILL also ends a stopped process, without SIGCONT.
        self.kill();
    }
}
