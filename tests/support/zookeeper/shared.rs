//! One server for all tests of a program that do not disturb it: starting one costs a second.

use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::ensemble::Ensemble;
use super::installed::Installed;
use super::server::Server;

/// The program's server, and a root of the test's own.
pub struct Shared {
    ensemble: &'static Ensemble,
    root: String,
}

impl Installed {
    /// The server that this program's tests share. It is started when the first test asks for it,
    /// with the defaults, and ends with the process.
    #[track_caller]
    pub fn shared(&'static self) -> Shared {
        static SHARED: OnceLock<Ensemble> = OnceLock::new();
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let start = || {
            let ensemble = self.start(1);
            remove_afterwards(&ensemble);
            ensemble
        };
        let ensemble = SHARED.get_or_init(start);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Shared {
            ensemble,
            root: format!("/test-{number}"),
        }
    }
}

impl Shared {
    /// The root of this test: a path of one element, which does not exist yet.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The URL with the root of this test.
    pub fn url(&self) -> String {
        self.ensemble.url(&self.root)
    }
}

impl std::ops::Deref for Shared {
    type Target = Ensemble;

    fn deref(&self) -> &Ensemble {
        self.ensemble
    }
}

/// A process that ends without running destructors leaves directories behind. A shell removes them
/// when the pipe that it reads is closed, which the kernel does when this process ends.
fn remove_afterwards(ensemble: &Ensemble) {
    // The servers are killed at the same moment, and may write until then.
    let script = "cat >/dev/null; rm -rf -- \"$@\"; sleep 1; rm -rf -- \"$@\"";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh"])
        .args(ensemble.iter().map(Server::directory));
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let shell = command.spawn().expect("a shell can be run");
    // Its pipe must stay open.
    std::mem::forget(shell);
}
