//! The server program that tests run: `redis-server`, or the one that `REDLATCH_REDIS_SERVER`
//! names, which may be another version, or valkey-server.

use std::env;
use std::fmt;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A program that can be run as a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerProgram {
    path: PathBuf,
    /// `redis`, `valkey`, `redict`: as the program calls itself, in lower case.
    name: String,
    version: String,
}

impl ServerProgram {
    /// The server of this run. It is printed once in each test program, also if all tests pass.
    #[track_caller]
    pub fn tested() -> &'static Self {
        static TESTED: OnceLock<ServerProgram> = OnceLock::new();
        TESTED.get_or_init(|| {
            let named = env::var_os("REDLATCH_REDIS_SERVER").map(PathBuf::from);
            let path = named.unwrap_or_else(|| PathBuf::from("redis-server"));
            let program = Self::at(&path).unwrap_or_else(|why| {
                panic!(
                    "{} cannot be run ({why}): these tests need a real server, for instance from \
                     the package `redis-server` of Debian and Ubuntu",
                    path.display()
                )
            });
            say(&format!("the servers of these tests are {program}"));
            program
        })
    }

    /// The program with this path, or of this name on `PATH`, if it runs and says its version.
    pub fn at(path: &Path) -> Result<Self, String> {
        let is_name = path.components().count() == 1;
        let path = if is_name { Ok(path.to_owned()) } else { path.canonicalize() };
        let path = path.map_err(|error| error.to_string())?;
        let output = Command::new(&path).arg("--version").output();
        let output = output.map_err(|error| error.to_string())?;
        // `Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=ae4d7c971a9`
        let text = String::from_utf8_lossy(&output.stdout);
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default().to_lowercase();
        match words.find_map(|word| word.strip_prefix("v=")) {
            Some(version) => Ok(Self { path, name, version: version.to_owned() }),
            None => Err(format!("{} without a version: {text}", output.status)),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// The version of Redis, major and minor, that it agrees with: its own, or 7.2 for the others,
    /// which began as copies of that.
    pub fn agrees_with(&self) -> (u32, u32) {
        let mut numbers = self.version.split('.').map(|number| number.parse().unwrap_or(0));
        match &*self.name {
            "redis" => (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)),
            _ => (7, 2),
        }
    }

    /// Is this the version that the tests' expectations were written with, so that each test must
    /// run?
    pub fn is_default(&self) -> bool {
        self.name == "redis" && self.version.starts_with("7.0.")
    }
}

impl fmt::Display for ServerProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.name, self.version, self.path.display())
    }
}

/// Prints a line to standard error, past the capture of the output of tests that pass.
pub fn say(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}
