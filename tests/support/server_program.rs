//! The server program that tests run: the one that `REDLATCH_REDIS_SERVER` names, `redis-server` or
//! `valkey-server` on `PATH`, or one that `tests/servers/fetch` has unpacked.

use std::env;
use std::fmt;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::OnceLock;

use super::server_choice;

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
    /// Without one, the test program ends here: the cause is then said once, and not by each test.
    pub fn tested() -> &'static Self {
        static TESTED: OnceLock<ServerProgram> = OnceLock::new();
        TESTED.get_or_init(|| {
            let named = env::var_os("REDLATCH_REDIS_SERVER");
            let candidates = server_choice::candidates(named, &server_choice::folders());
            let found = candidates.iter().find_map(|path| Self::at(path).ok());
            let program = found.unwrap_or_else(|| end_without_server(&candidates));
            say(&format!("the servers of these tests are {program}"));
            program
        })
    }

    /// The program with this path, or of this name on `PATH`, if it runs and says its version.
    pub fn at(path: &Path) -> Result<Self, String> {
        let is_name = path.components().count() == 1;
        let path = if is_name {
            Ok(path.to_owned())
        } else {
            path.canonicalize()
        };
        let path = path.map_err(|error| error.to_string())?;
        let output = Command::new(&path).arg("--version").output();
        let output = output.map_err(|error| error.to_string())?;
        // `Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=ae4d7c971a9`
        let text = String::from_utf8_lossy(&output.stdout);
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default().to_lowercase();
        match words.find_map(|word| word.strip_prefix("v=")) {
            Some(version) => Ok(Self {
                path,
                name,
                version: version.to_owned(),
            }),
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
        let mut numbers = self
            .version
            .split('.')
            .map(|number| number.parse().unwrap_or(0));
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
        write!(
            f,
            "{} {} ({})",
            self.name,
            self.version,
            self.path.display()
        )
    }
}

/// Ends this test program as one that has failed, and counts the tests that it has not run.
fn end_without_server(candidates: &[PathBuf]) -> ! {
    let tried: Vec<_> = candidates
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    say(&format!(
        "FAILED: none of these can be run: {}",
        tried.join(", ")
    ));
    say(server_choice::ADVICE);
    let listed =
        env::current_exe().and_then(|program| Command::new(program).arg("--list").output());
    let text = listed.map(|output| output.stdout).unwrap_or_default();
    let count = String::from_utf8_lossy(&text)
        .lines()
        .filter(|line| line.ends_with(": test"))
        .count();
    say(&format!(
        "skipped, all or most of them: the {count} tests of this program"
    ));
    // As a test program whose tests have failed.
    process::exit(101)
}

/// Prints a line to standard error, past the capture of the output of tests that pass.
pub fn say(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}
