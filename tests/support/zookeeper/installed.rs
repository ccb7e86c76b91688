//! The programs of ZooKeeper on this machine, and what becomes of tests where there are none.
//!
//! An [`Installed`] is needed to start a server, and only [`installed`] gives one, so no test can
//! forget to ask. Where ZooKeeper is missing, the test is skipped: each skip is printed with its
//! reason and its number, past the capture of output. With `REDLATCH_REQUIRE_ZOOKEEPER=1`, which
//! `./check` sets, it fails.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::ensemble::{Ensemble, EnsembleBuilder};
use crate::server_program::say;
use crate::skip::skip;

/// Where Debian's packages put the classes.
const JARS: &str = "/usr/share/java";

/// The classes of a server. `zookeeper.jar` names most of what it needs; TLS needs more of Netty.
const CLASSES: [&str; 5] = [
    "zookeeper.jar",
    "slf4j-simple.jar",
    "netty-codec.jar",
    "netty-resolver.jar",
    "netty-transport-native-unix-common.jar",
];

/// Java and the classes of ZooKeeper.
#[derive(Debug)]
pub struct Installed {
    class_path: String,
}

/// ZooKeeper on this machine, for one test; `None` if the test must be skipped. Use
/// [`needs_zookeeper`](crate::needs_zookeeper).
#[track_caller]
pub fn installed() -> Option<&'static Installed> {
    static FOUND: OnceLock<Result<Installed, String>> = OnceLock::new();
    let missing = match FOUND.get_or_init(Installed::find) {
        Ok(installed) => return Some(installed),
        Err(missing) => missing,
    };
    skip("REDLATCH_REQUIRE_ZOOKEEPER", missing);
    None
}

/// At the start of a test: ZooKeeper on this machine. Skips the test where there is none.
#[macro_export]
macro_rules! needs_zookeeper {
    () => {
        match $crate::zookeeper::installed() {
            Some(installed) => installed,
            None => return,
        }
    };
}

impl Installed {
    fn find() -> Result<Self, String> {
        let jars = env::var_os("REDLATCH_ZOOKEEPER_JARS").map(PathBuf::from);
        let jars = jars.unwrap_or_else(|| PathBuf::from(JARS));
        let classes = jars.join(CLASSES[0]);
        if !classes.is_file() {
            return Err(format!(
                "{} is missing (package libzookeeper-java)",
                classes.display()
            ));
        }
        let java = Command::new("java").arg("-version").output();
        let java = java.ok().filter(|output| output.status.success());
        let java = java.ok_or("java cannot be run (package default-jre-headless)")?;
        let version = String::from_utf8_lossy(&java.stderr);
        let version = version.lines().next().unwrap_or_default();
        say(&format!(
            "ZooKeeper of these tests is {}, {version}",
            real_name(&classes)
        ));
        let paths = CLASSES.map(|class| jars.join(class).display().to_string());
        Ok(Self {
            class_path: paths.join(":"),
        })
    }

    /// The class path of a server.
    pub(super) fn class_path(&self) -> &str {
        &self.class_path
    }

    /// Starts an ensemble of this many servers with the defaults, and waits until it serves.
    #[track_caller]
    pub fn start(&'static self, servers: usize) -> Ensemble {
        self.ensemble(servers).start()
    }

    /// An ensemble of this many servers, to be configured and started.
    pub fn ensemble(&'static self, servers: usize) -> EnsembleBuilder {
        EnsembleBuilder::new(self, servers)
    }
}

/// The name that tells the version: of Debian's two names for a file one is a link to the other.
fn real_name(jar: &Path) -> String {
    let folder = jar.parent().and_then(|folder| folder.read_dir().ok());
    let links = folder
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let target = entry.path().read_link().ok()?;
            (Some(&*target) == jar.file_name().map(Path::new)).then(|| entry.file_name())
        });
    let name = links.min().unwrap_or_else(|| jar.as_os_str().to_owned());
    name.to_string_lossy().into_owned()
}
