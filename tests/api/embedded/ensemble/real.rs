//! A real ZooKeeper server, of Debian's package `zookeeper`.

#![expect(clippy::unwrap_used, reason = "what cannot be read fails the test")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use support::eventually;
use support::port::Port;
use support::skip::skip;
use tempfile::TempDir;

const JAR: &str = "/usr/share/java/zookeeper.jar";

/// How long Java may take to start.
const LIMIT: Duration = Duration::from_secs(60);

/// How long it may take to answer. A server that is being started leaves a question unanswered.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);

/// A server process. It ends with this value.
pub(super) struct RealServer {
    process: Child,
    port: Port,
    _folder: TempDir,
}

impl RealServer {
    /// A server with an empty tree, this tick and session timeouts from two ticks to ten minutes.
    /// Empty containers are removed once in `container_interval`. `None`, with a printed reason, if
    /// ZooKeeper or Java is not installed.
    pub(super) fn start(tick: Duration, container_interval: Duration) -> Option<Self> {
        let has_java = Command::new("java")
            .arg("-version")
            .stderr(Stdio::null())
            .status();
        if !Path::new(JAR).exists() || !has_java.is_ok_and(|status| status.success()) {
            let missing = format!("{JAR} or java is not installed");
            skip("REDLATCH_REQUIRE_ZOOKEEPER", &missing);
            return None;
        }
        let folder = support::program::in_memory();
        let port = Port::choose();
        let settings = format!(
            "tickTime={}\nmaxSessionTimeout=600000\ndataDir={}\nclientPort={}\n\
             clientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n\
             4lw.commands.whitelist=*\n",
            tick.as_millis(),
            folder.path().display(),
            port.number(),
        );
        let file = folder.path().join("zoo.cfg");
        fs::write(&file, settings).unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        // It ends with the thread of this test, even if that is killed.
        let process = Command::new("setpriv")
            .args([
                "--pdeathsig",
                "KILL",
                "java",
                "-Xmx256m",
                "-XX:+UseSerialGC",
            ])
            .args(["-XX:TieredStopAtLevel=1", "-cp", JAR])
            .arg(format!(
                "-Dznode.container.checkIntervalMs={}",
                container_interval.as_millis()
            ))
            .args(["org.apache.zookeeper.server.quorum.QuorumPeerMain"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let server = Self {
            process,
            port,
            _folder: folder,
        };
        let is_up = eventually(LIMIT, || {
            four_letters(server.port(), b"srvr").is_some_and(|answer| answer.contains("Mode:"))
        });
        assert!(
            is_up,
            "{}",
            fs::read_to_string(file.with_file_name("log")).unwrap_or_default()
        );
        Some(server)
    }

    pub(super) fn port(&self) -> u16 {
        self.port.number()
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The answer to a command of four letters; `None` if the server cannot be asked.
pub(super) fn four_letters(port: u16, word: &[u8; 4]) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(ANSWER_LIMIT)).ok()?;
    stream.write_all(word).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
