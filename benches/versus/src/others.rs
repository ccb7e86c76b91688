//! Servers of etcd and ZooKeeper on loopback ports, where their programs are installed.

use crate::peers::etcd;
use crate::process::{Process, command, directory, free_port};
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Where Debian's packages put the classes, and which a server needs: the first names most others.
const JARS: &str = "/usr/share/java";
const CLASSES: [&str; 2] = ["zookeeper.jar", "slf4j-simple.jar"];

/// Java takes seconds to start, and a cluster a moment to elect a leader.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The servers of one system, as many as were asked for.
pub struct Others {
    _servers: Vec<Process>,
    /// Of the member that leads or serves alone: clients of another one wait for one hop more.
    pub url: String,
}

impl Others {
    /// Starts this many members of one cluster of etcd, or says why not.
    pub fn etcd(parent: &Path, count: usize) -> Result<Self, String> {
        let version = Command::new("etcd").arg("--version").output();
        version.map_err(|_| "it is not installed (Debian: etcd-server)")?;
        let url = || free_port().map(|port| format!("http://127.0.0.1:{port}"));
        let members = (0..count).map(|_| Ok([url()?, url()?]));
        let members = members.collect::<Result<Vec<_>, String>>()?;
        let cluster = members
            .iter()
            .enumerate()
            .map(|(id, [_, peers])| format!("{id}={peers}"));
        let cluster = cluster.collect::<Vec<_>>().join(",");
        let start = |(id, [url, peers]): (usize, &[String; 2])| {
            let directory = directory(parent, &format!("etcd-{id}"))?;
            let mut command = command("etcd");
            command.args(["--name", &id.to_string(), "--initial-cluster", &cluster]);
            command.arg("--data-dir").arg(directory.join("data"));
            command.args(["--listen-client-urls", url, "--advertise-client-urls", url]);
            command.args([
                "--listen-peer-urls",
                peers,
                "--initial-advertise-peer-urls",
                peers,
            ]);
            Process::start(command, &directory)
        };
        let servers = members
            .iter()
            .enumerate()
            .map(start)
            .collect::<Result<Vec<_>, _>>()?;
        let urls: Vec<_> = members.into_iter().map(|[url, _]| url).collect();
        let serves = |url: &String| TcpStream::connect(&url["http://".len()..]).is_ok();
        servers[0].wait_until(START_LIMIT, || urls.iter().all(serves))?;
        let leader = || urls.iter().find(|url| etcd::leads(url));
        servers[0].wait_until(START_LIMIT, || leader().is_some())?;
        let url = leader().expect("it was found just now").clone();
        Ok(Self {
            _servers: servers,
            url,
        })
    }

    /// Starts this many servers of ZooKeeper, or says why not.
    pub fn zookeeper(parent: &Path, count: usize) -> Result<Self, String> {
        let version = Command::new("java").arg("-version").output();
        if version.is_err() || !Path::new(JARS).join(CLASSES[0]).exists() {
            return Err("it is not installed (Debian: zookeeper)".to_owned());
        }
        let ports = (0..count).map(|_| Ok([free_port()?, free_port()?, free_port()?]));
        let ports = ports.collect::<Result<Vec<_>, String>>()?;
        let mut members = String::new();
        if count > 1 {
            for (id, [_, peers, elections]) in ports.iter().enumerate() {
                members += &format!("server.{id}=127.0.0.1:{peers}:{elections}\n");
            }
        }
        let start = |(id, [port, ..]): (usize, &[u16; 3])| zookeeper(parent, id, *port, &members);
        let servers = ports
            .iter()
            .enumerate()
            .map(start)
            .collect::<Result<Vec<_>, _>>()?;
        let mode = |port: &u16| mode_of(*port).unwrap_or_default();
        let serves = |[port, ..]: &[u16; 3]| mode(port).contains("Mode: ");
        servers[0].wait_until(START_LIMIT, || ports.iter().all(serves))?;
        let leads = |[port, ..]: &&[u16; 3]| !mode(port).contains("Mode: follower");
        let [port, ..] = ports
            .iter()
            .find(leads)
            .expect("an ensemble that serves has a leader");
        Ok(Self {
            _servers: servers,
            url: format!("zk://127.0.0.1:{port}"),
        })
    }
}

fn zookeeper(parent: &Path, id: usize, port: u16, members: &str) -> Result<Process, String> {
    let directory = directory(parent, &format!("zookeeper-{id}"))?;
    let settings = directory.join("zoo.cfg");
    let text = format!(
        "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={}\nclientPort={port}\n\
         clientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n\
         maxSessionTimeout=600000\n4lw.commands.whitelist=srvr\n{members}",
        directory.display()
    );
    let written = fs::write(directory.join("myid"), id.to_string());
    written
        .and_then(|()| fs::write(&settings, text))
        .map_err(|error| error.to_string())?;
    let classes = CLASSES.map(|class| format!("{JARS}/{class}")).join(":");
    let mut command = command("java");
    command.args([
        "-Djava.net.preferIPv4Stack=true",
        "-Xmx256m",
        "-cp",
        &classes,
    ]);
    command
        .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
        .arg(settings);
    Process::start(command, &directory)
}

/// What a server of ZooKeeper says of itself.
fn mode_of(port: u16) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"srvr")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
