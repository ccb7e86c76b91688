//! A real PostgreSQL server: a process with a folder of its own, in which its socket is as well. It
//! listens on no port.
//!
//! PostgreSQL refuses to run as root. Then it runs as the user `postgres`, whom Debian's package
//! creates.

use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use super::eventually;
use super::process::spawn_bound_to_us;
use super::skip::skip;

/// A start after a crash waits for the end of the old processes, and reads the log.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Where Debian's packages put the server, in a folder for each version.
const VERSIONS: &str = "/usr/lib/postgresql";

const SETTINGS: [&str; 4] = [
    "listen_addresses=",
    "max_prepared_transactions=16",
    // What these tests kill are processes. The pages that the kernel has outlive them.
    "fsync=off",
    // Nothing is left in /dev/shm.
    "dynamic_shared_memory_type=mmap",
];

/// The server. It ends with this value, or with the process of the test.
pub struct Postgres {
    programs: PathBuf,
    folder: TempDir,
    process: Option<Child>,
}

/// A database of a server, which may be down.
#[derive(Clone, Debug)]
pub struct Database {
    /// Debian's `psql` on `PATH` is a script that looks for this one.
    psql: PathBuf,
    folder: PathBuf,
    name: String,
}

impl Postgres {
    /// Starts a server without databases of users. `None` if the test must be skipped, since there
    /// is no PostgreSQL on this machine.
    #[track_caller]
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            skip(
                "REDLATCH_REQUIRE_POSTGRESQL",
                "initdb is missing (package postgresql)",
            );
            return None;
        };
        let folder = tempfile::Builder::new()
            .prefix("redlatch-postgres-")
            .tempdir();
        let folder = folder.expect("a folder can be made");
        if geteuid().is_root() {
            succeed(Command::new("chown").arg("postgres").arg(folder.path()));
        }
        let mut server = Self {
            programs,
            folder,
            process: None,
        };
        let data = server.data();
        let arguments = ["-D", &data, "-A", "trust", "-U", "postgres", "--no-sync"];
        let (program, arguments) = server.command("initdb", &arguments);
        succeed(Command::new(program).args(arguments).stdout(Stdio::null()));
        server.start_again();
        Some(server)
    }

    /// Starts the server, which was killed, and waits until it answers.
    #[track_caller]
    pub fn start_again(&mut self) {
        let log = self.folder.path().join("log");
        let socket = self.folder.path().display().to_string();
        let data = self.data();
        let mut arguments = vec!["-D", &data, "-k", &socket];
        SETTINGS
            .iter()
            .for_each(|setting| arguments.extend(["-c", setting]));
        let (program, arguments) = self.command("postgres", &arguments);
        let postgres = self.database("postgres");
        // It does not start while a process of the one that was killed is left.
        let is_up = eventually(START_LIMIT, || {
            let is_running = |it: &mut Child| matches!(it.try_wait(), Ok(None));
            if !self.process.as_mut().is_some_and(is_running) {
                let log = File::options()
                    .create(true)
                    .append(true)
                    .open(&log)
                    .expect("a file");
                let process =
                    spawn_bound_to_us(program.clone(), arguments.clone(), Vec::new(), log);
                self.process = Some(process.expect("setpriv can be run"));
            }
            postgres.run("SELECT 1").is_ok()
        });
        assert!(
            is_up,
            "PostgreSQL does not start: {}",
            fs::read_to_string(log).unwrap_or_default()
        );
    }

    /// Kills the server with SIGKILL. Its other processes end when they notice that.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// A new database.
    #[track_caller]
    pub fn create(&self, name: &str) -> Database {
        self.database("postgres")
            .run(&format!("CREATE DATABASE {name}"))
            .expect("it is new");
        self.database(name)
    }

    fn database(&self, name: &str) -> Database {
        let psql = self.programs.join("psql");
        Database {
            psql,
            folder: self.folder.path().to_owned(),
            name: name.to_owned(),
        }
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    /// How a program of the server is run: not as root, and ended with its parent in such a way
    /// that it removes its shared memory.
    fn command(&self, program: &str, arguments: &[&str]) -> (PathBuf, Vec<String>) {
        let program = self.programs.join(program).display().to_string();
        let user = [
            "--reuid",
            "postgres",
            "--regid",
            "postgres",
            "--clear-groups",
        ];
        let user = if geteuid().is_root() { &user[..] } else { &[] };
        let words = [user, &["--pdeathsig", "QUIT", &program], arguments].concat();
        (
            "setpriv".into(),
            words.into_iter().map(str::to_owned).collect(),
        )
    }
}

impl Drop for Postgres {
    /// SIGQUIT: it ends its processes at once, and removes its shared memory.
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = kill_process(Pid::from_child(process), Signal::QUIT);
            let _ = process.wait();
        }
    }
}

impl Database {
    /// Runs statements one after another, up to one that fails. Returns the rows, or the errors.
    pub fn run(&self, statements: &str) -> Result<String, String> {
        let mut process = self.psql().spawn().map_err(|error| error.to_string())?;
        // If it has ended, it says why.
        let _ = process
            .stdin
            .take()
            .expect("a pipe")
            .write_all(statements.as_bytes());
        let output = process
            .wait_with_output()
            .map_err(|error| error.to_string())?;
        let text = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stderr))
        }
    }

    /// The command line of the server's own client. All its streams are pipes.
    pub fn psql(&self) -> Command {
        let mut psql = Command::new(&self.psql);
        psql.args(["-qAtX", "-v", "ON_ERROR_STOP=1", "-U", "postgres"]);
        psql.args(["-d", &self.name, "-h"]).arg(&self.folder);
        psql.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        psql
    }
}

/// The folder of the server's programs, those of the latest version.
fn programs() -> Option<PathBuf> {
    let versions = Path::new(VERSIONS)
        .read_dir()
        .into_iter()
        .flatten()
        .flatten();
    let number = |name: &Path| name.file_name()?.to_str()?.parse::<u32>().ok();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path()).collect();
    folders.sort_by_key(|folder| number(folder));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = folders.into_iter().rev().map(|folder| folder.join("bin"));
    folders
        .chain(env::split_paths(&path))
        .find(|folder| folder.join("initdb").exists())
}

#[track_caller]
fn succeed(command: &mut Command) {
    let status = command.status();
    assert!(
        status.as_ref().is_ok_and(ExitStatus::success),
        "{command:?}: {status:?}"
    );
}
