//! A copy of the source in which mutants are applied, and tests are built and run.

use crate::change::Change;
use sha1_smol::Sha1;
use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The files that cargo needs to build the library and its tests.
const COPIED: [&str; 8] = [
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "src",
    "tests",
    "examples",
    "benches/micro.rs",
    "fuzz/properties",
];

/// The file with the digests of the scripts.
const DIGESTS: &str = "src/node/script.rs";

/// The time limit of a test, which takes seconds at most.
const TEST_LIMIT: Duration = Duration::from_secs(120);

/// The signal that ends a program with a panic during a panic.
const SIGABRT: i32 = 6;

/// The number of histories of a simulator test, about a second.
const SEEDS: &str = "60";

/// A mutant's copy of the source, and the builds of it.
#[derive(Debug)]
pub(crate) struct Workshop {
    source: PathBuf,
    builds: PathBuf,
    log: PathBuf,
}

/// The result of tests.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// All ran and passed.
    Passed,
    /// All ran and failed, with this output.
    Failed(String),
    /// It was not built: cargo's output.
    NotBuilt(String),
    /// They did not end in time.
    Hung(String),
    /// Anything else: no such test, or an unusual end.
    Odd(String),
}

impl Outcome {
    pub(crate) fn told(&self) -> String {
        let (what, output) = match self {
            Self::Passed => return "the test passes".to_owned(),
            Self::Failed(output) => ("the test fails", output),
            Self::NotBuilt(output) => ("it does not compile", output),
            Self::Hung(output) => ("the test does not come to an end", output),
            Self::Odd(output) => ("the test neither passes nor fails", output),
        };
        format!("{what}:\n{output}")
    }
}

/// An unchanged file of this repository.
pub(crate) fn original(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Workshop {
    /// Updates the copy. Earlier builds are used again.
    pub(crate) fn open(number: usize) -> Self {
        // Another directory than the one of this program: cargo would wait for its lock.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mutants-{number}"));
        let source = folder.join("source");
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = BTreeSet::new();
        for name in COPIED {
            list(root, &root.join(name), &mut files);
        }
        fs::create_dir_all(&source).unwrap();
        let mut old = BTreeSet::new();
        list(&source, &source, &mut old);
        for file in old.difference(&files) {
            fs::remove_file(source.join(file)).unwrap();
        }
        for file in &files {
            let (text, copy) = (fs::read(root.join(file)).unwrap(), source.join(file));
            // Cargo compares the times of files, so unchanged files are not written.
            if fs::read(&copy).ok().as_ref() != Some(&text) {
                fs::create_dir_all(copy.parent().unwrap()).unwrap();
                fs::write(&copy, text).unwrap();
            }
        }
        Self { source, builds: folder.join("builds"), log: folder.join("log") }
    }

    /// Runs `work` while the copy has this mistake.
    pub(crate) fn with<T>(&self, change: &Change, work: impl FnOnce() -> T) -> T {
        let text = fs::read_to_string(self.source.join(&change.file)).unwrap();
        let mutated = change.apply(&text).unwrap_or_else(|why| panic!("{}: {why}", change.mutant));
        let mut mistakes = vec![(self.source.join(&change.file), mutated.clone(), text.clone())];
        if change.file.ends_with(".lua") {
            // The digest is updated with the script. With a wrong digest, the tests would fail for
            // any mistake.
            let path = self.source.join(DIGESTS);
            let digests = fs::read_to_string(&path).unwrap();
            let [old, new] = [&text, &mutated].map(|lua| Sha1::from(lua).digest().to_string());
            assert!(digests.contains(&old), "{}: its digest is not in {DIGESTS}", change.file);
            mistakes.push((path, digests.replace(&old, &new), digests));
        }
        for (path, mutated, _) in &mistakes {
            fs::write(path, mutated).unwrap();
        }
        let result = work();
        for (path, _, original) in &mistakes {
            fs::write(path, original).unwrap();
        }
        result
    }

    /// Builds what cargo's arguments name, and returns the path of the first program.
    pub(crate) fn build(&self, targets: &[String]) -> Result<PathBuf, Outcome> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["test", "--no-run", "--locked"]).args(targets);
        // Fast, and without denied warnings: a mistake often leaves something unused.
        cargo.env("CARGO_TARGET_DIR", &self.builds).env("CARGO_PROFILE_DEV_DEBUG", "0");
        cargo.env("CARGO_TERM_COLOR", "never").env("CARGO_INCREMENTAL", "1");
        cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        cargo.env_remove("CARGO_TERM_VERBOSE").env_remove("CARGO_TERM_QUIET");
        let (status, output) = self.finish(&mut cargo, Duration::MAX);
        let program = executable(&output).filter(|_| status.is_some_and(|s| s.success()));
        program.map(|program| self.source.join(program)).ok_or(Outcome::NotBuilt(output))
    }

    /// Runs tests of one program. The result is passed if all pass, and failed if none does.
    pub(crate) fn run(&self, program: &Path, tests: &[&str]) -> Outcome {
        let mut command = Command::new(program);
        command.arg("--exact").args(tests);
        command.env("REDLATCH_SEEDS", SEEDS).env_remove("REDLATCH_SEED");
        let (status, output) = self.finish(&mut command, TEST_LIMIT);
        let passed = format!("result: ok. {} passed;", tests.len());
        let failed = format!("result: FAILED. 0 passed; {} failed;", tests.len());
        match status {
            None => Outcome::Hung(output),
            Some(status) if status.success() && output.contains(&passed) => Outcome::Passed,
            Some(status) if status.code() == Some(101) && output.contains(&failed) => {
                Outcome::Failed(output)
            }
            // For loom, a deadlock is a panic, and dropping the blocked threads is another.
            Some(status) if status.signal() == Some(SIGABRT) && output.contains("panicked at") => {
                Outcome::Failed(output)
            }
            Some(status) => Outcome::Odd(format!("{status}\n{output}")),
        }
    }

    /// Runs a command to its end, or kills it after the time limit.
    fn finish(&self, command: &mut Command, limit: Duration) -> (Option<ExitStatus>, String) {
        let log = File::create(&self.log).unwrap();
        let errors = log.try_clone().unwrap();
        command.current_dir(&self.source).stdin(Stdio::null()).stdout(log).stderr(errors);
        let mut child = command.spawn().unwrap();
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if start.elapsed() > limit {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            thread::sleep(Duration::from_millis(5));
        };
        (status, String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned())
    }
}

/// The program that cargo has built: the last word of `Executable … (path)`.
fn executable(output: &str) -> Option<&str> {
    let line = output.lines().find(|line| line.trim_start().starts_with("Executable "))?;
    Some(line.rsplit_once('(')?.1.trim_end_matches(')'))
}

/// All files at or below `path`, relative to `root`.
fn list(root: &Path, path: &Path, files: &mut BTreeSet<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            list(root, &entry.unwrap().path(), files);
        }
    } else {
        files.insert(path.strip_prefix(root).unwrap().to_owned());
    }
}
