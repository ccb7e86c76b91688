//! A group of servers that Sentinels watch: a master, its replicas, three Sentinels.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::cli::{Client, Value};
use super::eventually;
use super::port::Port;
use super::process;
use super::proxy::Proxy;
use super::redis::Server;
use super::secure_port::SecurePort;
use super::server_program::ServerProgram;
use super::transport::{between_servers, scheme};

/// As the Sentinels call the group.
pub const NAME: &str = "locks";

const START_LIMIT: Duration = Duration::from_secs(30);

const REPLACE_LIMIT: Duration = Duration::from_secs(90);

pub struct Sentinel {
    port: Port,
    secure: Option<SecurePort>,
    process: Child,
    _directory: tempfile::TempDir,
}

impl Sentinel {
    /// A Sentinel that takes a master for dead that has been silent for a second.
    #[track_caller]
    pub fn start(master: u16) -> Self {
        Self::start_at("127.0.0.1", master, "")
    }

    /// The same for a master on this host, with these settings too.
    #[track_caller]
    pub fn start_at(host: &str, master: u16, settings: &str) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("redlatch-sentinel-")
            .tempdir();
        let directory = directory.expect("a temporary directory can be made");
        let port = Port::choose();
        let path = |name: &str| directory.path().join(name);
        let config = format!(
            "port {}\nbind 127.0.0.1\ndir {}\n{settings}sentinel monitor {NAME} {host} {master} 2\n\
             sentinel down-after-milliseconds {NAME} 1000\nsentinel failover-timeout {NAME} 3000\n",
            port.number(),
            directory.path().display(),
        );
        fs::write(path("sentinel.conf"), config).expect("the directory is there");
        let log = File::create(path("sentinel.log")).expect("the directory is there");
        let secure = SecurePort::if_used(directory.path());
        let args = [path("sentinel.conf"), PathBuf::from("--sentinel")];
        let args = args.iter().map(|arg| arg.display().to_string());
        let args = args.chain(secure.iter().flat_map(SecurePort::args));
        let args = args
            .chain(between_servers().iter().map(|it| (*it).to_owned()))
            .collect();
        let program = ServerProgram::tested().path().to_owned();
        let process = process::spawn_bound_to_us(program, args, Vec::new(), log);
        let process = process.expect("the server can be run");
        let sentinel = Self {
            port,
            secure,
            process,
            _directory: directory,
        };
        assert!(eventually(START_LIMIT, || Client::connect(sentinel.port()).is_ok()));
        sentinel
    }

    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The port in the URL of its group.
    pub fn client_port(&self) -> u16 {
        self.secure.as_ref().map_or(self.port(), SecurePort::port)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it is the test's own child");
    }

    /// SIGSTOP: it accepts connections, and answers nothing.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Runs one command.
    pub fn command(&self, args: &[&str]) -> Value {
        Client::connect(self.port())
            .expect("a running Sentinel accepts")
            .command(args)
    }

    /// The port of the server that it names as the master.
    pub fn master(&self) -> u16 {
        let Value::Array(place) = self.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME])
        else {
            panic!("it knows the group");
        };
        place[1].text().parse().expect("a port")
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A master, replicas that have its data, and three Sentinels that know all of them.
pub struct SentinelGroup {
    pub servers: Vec<Server>,
    pub sentinels: Vec<Sentinel>,
    /// Through this the others reach the first server, if it can be cut off from them.
    pub link: Option<Proxy>,
}

impl SentinelGroup {
    #[track_caller]
    pub fn start(replicas: usize) -> Self {
        Self::watch(replicated(replicas), None)
    }

    /// The same, and the first server can be cut off from the others, and not from its own port.
    #[track_caller]
    pub fn start_with_link(replicas: usize) -> Self {
        let master = Server::start(&quick());
        let link = Proxy::start(master.port());
        Self::watch(replicated_from(master, link.port(), replicas), Some(link))
    }

    #[track_caller]
    fn watch(servers: Vec<Server>, link: Option<Proxy>) -> Self {
        let master = link.as_ref().map_or(servers[0].client_port(), Proxy::port);
        let replicas = servers.len() - 1;
        let sentinels: Vec<_> = (0..3).map(|_| Sentinel::start(master)).collect();
        let group = Self {
            servers,
            sentinels,
            link,
        };
        let others = "2".to_owned();
        let replicas = replicas.to_string();
        assert!(
            eventually(START_LIMIT, || group.sentinels.iter().all(|sentinel| {
                let fields = sentinel.command(&["SENTINEL", "MASTER", NAME]);
                let has = |name: &str, value: &str| field(&fields, name).as_deref() == Some(value);
                has("num-other-sentinels", &others) && has("num-slaves", &replicas)
            })),
            "the Sentinels do not find the group"
        );
        group
    }

    pub fn url(&self) -> String {
        let hosts = self
            .sentinels
            .iter()
            .map(|it| format!("127.0.0.1:{}", it.client_port()));
        format!(
            "{}+sentinel://{}/{NAME}",
            scheme(),
            hosts.collect::<Vec<_>>().join(",")
        )
    }

    /// The server that a majority of the Sentinels names.
    pub fn master(&self) -> usize {
        let mut ports: Vec<_> = self.sentinels.iter().map(Sentinel::master).collect();
        ports.sort_unstable();
        let port = ports[ports.len() / 2];
        let is_linked = self.link.as_ref().is_some_and(|link| link.port() == port);
        let named = self
            .servers
            .iter()
            .position(|server| server.client_port() == port);
        named
            .or(is_linked.then_some(0))
            .expect("they name one of the servers")
    }

    /// Has the Sentinels replace the master, as people do. They are asked again when nothing comes
    /// of it: they give a failover up that takes them longer than its timeout, and do nothing for
    /// half a minute when they have not run for two seconds (`TILT`).
    #[track_caller]
    pub fn replace_master(&self) {
        let before = self.master();
        let asked = &self.sentinels[0];
        let port = asked.master();
        let mut asked_at: Option<Instant> = None;
        assert!(
            eventually(REPLACE_LIMIT, || {
                let is_due = asked_at.is_none_or(|at| at.elapsed() > Duration::from_secs(1));
                if is_due && asked.master() == port {
                    asked.command(&["SENTINEL", "FAILOVER", NAME]);
                    asked_at = Some(Instant::now());
                }
                self.master() != before
            }),
            "the Sentinels do not replace the master"
        );
    }
}

fn quick() -> Vec<&'static str> {
    let settings = ["--repl-diskless-sync-delay", "0", "--repl-backlog-ttl", "0"];
    [&settings, between_servers()].concat()
}

/// A master and as many replicas that have its data.
#[track_caller]
pub fn replicated(replicas: usize) -> Vec<Server> {
    let master = Server::start(&quick());
    let port = master.client_port();
    replicated_from(master, port, replicas)
}

/// The same with this master, whose port the replicas are told.
#[track_caller]
fn replicated_from(master: Server, port: u16, replicas: usize) -> Vec<Server> {
    let mut servers = vec![master];
    for _ in 0..replicas {
        let of = ["--replicaof", "127.0.0.1", &port.to_string()];
        servers.push(Server::start(&[&quick()[..], &of].concat()));
    }
    for replica in &servers[1..] {
        assert!(eventually(START_LIMIT, || info(
            replica,
            "master_link_status"
        ) == "up"));
    }
    servers
}

/// A field of `INFO replication`; empty if there is none.
pub fn info(server: &Server, name: &str) -> String {
    let text = server.command(&["INFO", "replication"]).text();
    let field = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    field.unwrap_or_default().trim_end().to_owned()
}

/// One of the fields that a Sentinel answers in a list, each with its value behind it.
pub fn field(fields: &Value, name: &str) -> Option<String> {
    let Value::Array(fields) = fields else {
        return None;
    };
    let place = fields.iter().position(|field| field.text() == name)?;
    Some(fields.get(place + 1)?.text())
}
