//! ZooKeeper: one server or an ensemble of several on loopback ports, where its programs are
//! installed, and what these servers count.

use crate::servers::{command, eventually_until, free_port};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where Debian's packages put the classes, and which a server needs: the first names most others.
const JARS: &str = "/usr/share/java";
const CLASSES: [&str; 2] = ["zookeeper.jar", "slf4j-simple.jar"];

/// Java takes seconds to start.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Servers of one ensemble, gone when this is dropped.
pub struct Ensemble {
    servers: Vec<Server>,
}

struct Server {
    child: Child,
    port: u16,
    directory: PathBuf,
}

/// What all servers together have counted so far, or in a while.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Messages from clients, pings included.
    pub received: f64,
    /// The writes among them.
    pub writes: f64,
    /// Watches that clients have set: those that are there, and those that fired.
    pub watches: f64,
    /// The number of the last transaction.
    pub transactions: f64,
}

/// How many servers the ensembles have that are measured.
const SIZES: [usize; 1] = [1];

/// One ensemble of each size, where ZooKeeper is installed; otherwise this says why not.
pub fn start_all(directory: &Path) -> Vec<Ensemble> {
    if cfg!(not(feature = "zookeeper")) {
        println!("ZooKeeper is not measured: this build lacks the feature `zookeeper`\n");
        return Vec::new();
    }
    let start = |&size: &usize| match Ensemble::start(directory, size) {
        Ok(ensemble) => Some(ensemble),
        Err(why) => {
            println!("ZooKeeper with {size} server(s) is not measured: {why}\n");
            None
        }
    };
    SIZES.iter().filter_map(start).collect()
}

impl Counts {
    /// The mean for each of so many grants.
    pub fn per(self, grants: f64) -> Self {
        Self {
            received: self.received / grants,
            writes: self.writes / grants,
            watches: self.watches / grants,
            transactions: self.transactions / grants,
        }
    }
}

impl Ensemble {
    /// Starts so many servers with their files in this directory, or says why not.
    pub fn start(directory: &Path, count: usize) -> Result<Self, String> {
        let version = Command::new("java").arg("-version").output();
        if version.is_err() || !Path::new(JARS).join(CLASSES[0]).exists() {
            return Err("ZooKeeper is not installed (Debian: zookeeper)".to_owned());
        }
        let ports = || -> io::Result<[u16; 3]> { Ok([free_port()?, free_port()?, free_port()?]) };
        let ports: io::Result<Vec<_>> = (0..count).map(|_| ports()).collect();
        let ports = ports.map_err(|error| error.to_string())?;
        let mut members = String::new();
        if count > 1 {
            for (id, [_, peers, elections]) in ports.iter().enumerate() {
                members += &format!("server.{id}=127.0.0.1:{peers}:{elections}\n");
            }
        }
        let mut ensemble = Self { servers: Vec::new() };
        for (id, [port, ..]) in ports.into_iter().enumerate() {
            let directory = directory.join(format!("zookeeper-{count}-{id}"));
            let server = Server::start(directory, id, port, &members);
            ensemble.servers.push(server.map_err(|error| error.to_string())?);
        }
        for server in &ensemble.servers {
            if !eventually_until(START_LIMIT, || server.is_serving()) {
                let log = fs::read_to_string(server.directory.join("log")).unwrap_or_default();
                return Err(format!("it does not start; its log:\n{log}"));
            }
        }
        Ok(ensemble)
    }

    /// All of them.
    pub fn url(&self) -> String {
        let hosts = self.servers.iter().map(|server| format!("127.0.0.1:{}", server.port));
        format!("zk://{}", hosts.collect::<Vec<_>>().join(","))
    }

    /// The one that leads, or that serves alone: clients of a follower wait for one hop more.
    pub fn leader_url(&self) -> String {
        let leads = |server: &&Server| {
            server.ask("srvr").is_ok_and(|answer| !answer.contains("Mode: follower"))
        };
        let leader = self.servers.iter().find(leads).expect("an ensemble that serves has a leader");
        format!("zk://127.0.0.1:{}", leader.port)
    }

    /// The name in tables.
    pub fn name(&self) -> String {
        format!("ZooKeeper x{}", self.servers.len())
    }

    pub fn counts(&self) -> Counts {
        let mut all = Counts::default();
        for server in &self.servers {
            let metrics = server.ask("mntr").expect("a running server answers");
            let metric = |name: &str| {
                let line = metrics.lines().find_map(|line| line.strip_prefix(name));
                let value = line.and_then(|value| value.trim().parse::<f64>().ok());
                value.unwrap_or_else(|| panic!("`mntr` says nothing of {name}"))
            };
            all.received += metric("zk_packets_received\t");
            all.writes += metric("zk_cnt_updatelatency\t");
            all.watches += metric("zk_watch_count\t");
            all.watches += metric("zk_sum_node_deleted_watch_count\t");
            all.watches += metric("zk_sum_node_children_watch_count\t");
            let answer = server.ask("srvr").expect("a running server answers");
            let number = answer.lines().find_map(|line| line.strip_prefix("Zxid: 0x"));
            let number = number.and_then(|number| u64::from_str_radix(number, 16).ok());
            all.transactions = all.transactions.max(number.expect("`srvr` says it") as f64);
        }
        all
    }

    pub fn counts_since(&self, before: &Counts) -> Counts {
        let now = self.counts();
        Counts {
            // The two questions before are counted too.
            received: now.received - before.received - 2.0 * self.servers.len() as f64,
            writes: now.writes - before.writes,
            watches: now.watches - before.watches,
            transactions: now.transactions - before.transactions,
        }
    }
}

impl Server {
    fn start(directory: PathBuf, id: usize, port: u16, members: &str) -> io::Result<Self> {
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("myid"), id.to_string())?;
        let settings = directory.join("zoo.cfg");
        let text = format!(
            "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={}\nclientPort={port}\n\
             clientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n\
             maxSessionTimeout=600000\n4lw.commands.whitelist=mntr,srvr\n{members}",
            directory.display()
        );
        fs::write(&settings, text)?;
        let classes = CLASSES.map(|class| Path::new(JARS).join(class).display().to_string());
        let log = File::create(directory.join("log"))?;
        let mut command = command("java");
        command.args(["-Djava.net.preferIPv4Stack=true", "-Xmx256m", "-cp", &classes.join(":")]);
        command.arg("org.apache.zookeeper.server.quorum.QuorumPeerMain").arg(settings);
        command.current_dir(&directory).stdin(Stdio::null());
        let child = command.stdout(log.try_clone()?).stderr(log).spawn()?;
        Ok(Self { child, port, directory })
    }

    fn is_serving(&self) -> bool {
        self.ask("srvr").is_ok_and(|answer| answer.contains("Mode: "))
    }

    /// The answer to one of the four-letter words.
    fn ask(&self, word: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(word.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
