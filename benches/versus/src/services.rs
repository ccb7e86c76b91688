//! A lock service other than Redis and ZooKeeper, on loopback ports: it is measured where its
//! program is installed.

use crate::servers::{command, eventually_until, free_port};
use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A busy machine takes seconds to start it.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A server, gone when this is dropped.
pub struct Service {
    child: Child,
    folder: PathBuf,
    pub url: String,
}

impl Service {
    /// Starts etcd with its files in this directory, or says why not.
    pub fn etcd(directory: &Path) -> Result<Self, String> {
        Self::etcd_cluster(directory, 1).map(|mut all| all.remove(0))
    }

    /// Starts so many members of one cluster.
    pub fn etcd_cluster(directory: &Path, count: usize) -> Result<Vec<Self>, String> {
        let version = Command::new("etcd").arg("--version").output();
        version.map_err(|_| "etcd is not installed (Debian: etcd-server)")?;
        let urls = || -> Result<_, String> {
            Ok([port()?, port()?].map(|port| format!("http://127.0.0.1:{port}")))
        };
        let members = (0..count).map(|_| urls()).collect::<Result<Vec<_>, _>>()?;
        let cluster = members.iter().enumerate().map(|(id, [_, peers])| format!("{id}={peers}"));
        let cluster = cluster.collect::<Vec<_>>().join(",");
        let start = |(id, [url, peers]): (usize, &[String; 2])| {
            let directory = folder(directory, &format!("etcd-{count}-{id}"))?;
            let mut command = command("etcd");
            command.args(["--name", &id.to_string(), "--initial-cluster", &cluster]);
            command.arg("--data-dir").arg(directory.join("data"));
            command.args(["--listen-client-urls", url, "--advertise-client-urls", url]);
            command.args(["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers]);
            Self::start(command, directory, url.clone())
        };
        // A member serves nobody before a majority is there.
        let all = members.iter().enumerate().map(start).collect::<Result<Vec<_>, _>>()?;
        all.iter().try_for_each(Self::wait)?;
        Ok(all)
    }

    fn start(mut command: Command, folder: PathBuf, url: String) -> Result<Self, String> {
        let log = File::create(folder.join("log")).map_err(|error| error.to_string())?;
        let errors = log.try_clone().map_err(|error| error.to_string())?;
        command.current_dir(&folder).stdin(Stdio::null()).stdout(log).stderr(errors);
        let child = command.spawn().map_err(|error| error.to_string())?;
        Ok(Self { child, folder, url })
    }

    fn wait(&self) -> Result<(), String> {
        let address = self.url.split_once("://").expect("the URL has a scheme").1;
        if eventually_until(START_LIMIT, || TcpStream::connect(address).is_ok()) {
            return Ok(());
        }
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        Err(format!("it does not start; its log:\n{log}"))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folder(parent: &Path, name: &str) -> Result<PathBuf, String> {
    let folder = parent.join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    Ok(folder)
}

fn port() -> Result<u16, String> {
    free_port().map_err(|error| error.to_string())
}
