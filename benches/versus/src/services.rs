//! A lock service other than Redis and ZooKeeper, one server on a loopback port: it is measured
//! where its program is installed.

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
    pub url: String,
}

impl Service {
    /// Starts etcd with its files in this directory, or says why not.
    pub fn etcd(directory: &Path) -> Result<Self, String> {
        let version = Command::new("etcd").arg("--version").output();
        version.map_err(|_| "etcd is not installed (Debian: etcd-server)")?;
        let directory = folder(directory, "etcd")?;
        let (port, peers) = (port()?, port()?);
        let (url, peers) =
            (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peers}"));
        let mut command = command("etcd");
        command.arg("--data-dir").arg(directory.join("data"));
        command.args(["--listen-client-urls", &url, "--advertise-client-urls", &url]);
        command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
        command.arg(format!("--initial-cluster=default={peers}"));
        Self::start(command, &directory, port, url)
    }

    fn start(mut command: Command, folder: &Path, port: u16, url: String) -> Result<Self, String> {
        let log = File::create(folder.join("log")).map_err(|error| error.to_string())?;
        let errors = log.try_clone().map_err(|error| error.to_string())?;
        command.current_dir(folder).stdin(Stdio::null()).stdout(log).stderr(errors);
        let child = command.spawn().map_err(|error| error.to_string())?;
        // From here on, it is ended whatever happens.
        let service = Self { child, url };
        let is_up = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        if eventually_until(START_LIMIT, is_up) {
            return Ok(service);
        }
        let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
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
