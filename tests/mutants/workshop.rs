//! A copy of the source in which mutants are applied, and tests are built and run.

use crate::source::{Change, original, root};
use crate::switch::VARIABLE;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The files that cargo needs to build the library and its tests.
const COPIED: [&str; 16] = [
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "bindings/c/Cargo.toml",
    "bindings/c/src",
    "bindings/python/Cargo.toml",
    "bindings/python/src",
    "check",
    "cli",
    "crates",
    "docs/faults.md",
    "src",
    "tests",
    "examples",
    "benches/micro.rs",
    "fuzz/properties",
];

/// The directory in which this program was built.
const TARGET_DIR: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/..");

/// The packages with mutants, with tests that kill them, and all others whose tests have been
/// built: with the features that these need together, other crates are not built once more.
const PACKAGES: [&str; 8] = [
    "redlatch",
    "redlatch-cli",
    "redlatch-embedded",
    "redlatch-protocol",
    "redlatch-registers",
    "redlatch-zookeeper",
    "redlatch-tests",
    "redlatch-models",
];

/// The time limit of a test, which takes seconds at most.
const TEST_LIMIT: Duration = Duration::from_secs(300);

/// The signal that ends a program with a panic during a panic.
const SIGABRT: i32 = 6;

/// How many tests of a program run at a time: nearly all of them wait, for servers or time limits.
const TEST_THREADS: &str = "8";

/// The number of histories of a simulator test, about a second.
const SEEDS: &str = "60";

/// A copy of the source, and the builds of it.
#[derive(Debug)]
pub(crate) struct Workshop {
    folder: PathBuf,
    source: PathBuf,
    /// Files that the copy has with another text.
    replaced: BTreeMap<String, String>,
}

/// Test programs that were built, by their names. The library's unit tests have the crate's.
pub(crate) type Programs = BTreeMap<String, PathBuf>;

/// What came of tests.
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
    pub(crate) fn text(&self) -> String {
        let (what, output) = match self {
            Self::Passed => return "the test passes".to_owned(),
            Self::Failed(output) => ("the test fails", output),
            Self::NotBuilt(output) => ("it does not compile", output),
            Self::Hung(output) => ("the test does not end", output),
            Self::Odd(output) => ("the test neither passes nor fails", output),
        };
        format!("{what}:\n{output}")
    }
}

impl Workshop {
    /// Brings the copy up to date. Builds of an earlier copy are reused.
    pub(crate) fn open(replaced: BTreeMap<String, String>) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants");
        let source = folder.join("source");
        let root = root();
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
        let workshop = Self {
            folder,
            source,
            replaced,
        };
        for file in &files {
            workshop.write(file, &fs::read(root.join(file)).unwrap());
        }
        workshop
    }

    /// Writes a file of the copy, unless it has this text already: cargo looks at the times of
    /// files. A file that was replaced stays so.
    fn write(&self, file: &Path, text: &[u8]) {
        let replaced = file.to_str().and_then(|file| self.replaced.get(file));
        let text = replaced.map_or(text, String::as_bytes);
        let copy = self.source.join(file);
        if fs::read(&copy).ok().as_deref() != Some(text) {
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::write(&copy, text).unwrap();
        }
    }

    /// Does `work` while these files of the copy have these texts.
    pub(crate) fn with_texts<T>(
        &self,
        texts: &BTreeMap<String, String>,
        work: impl FnOnce() -> T,
    ) -> T {
        for (file, text) in texts {
            self.write(file.as_ref(), text.as_bytes());
        }
        let result = work();
        for file in texts.keys() {
            self.write(file.as_ref(), original(file).as_bytes());
        }
        result
    }

    /// Runs `work` while the copy has this mistake.
    pub(crate) fn with<T>(&self, change: &Change, work: impl FnOnce() -> T) -> T {
        let mutated = change.apply(&original(&change.file));
        let texts = BTreeMap::from([(change.file.clone(), mutated)]);
        self.with_texts(&texts, work)
    }

    /// Builds what cargo's arguments name.
    pub(crate) fn build(&self, targets: &[String]) -> Result<Programs, Outcome> {
        let mut cargo = support::program::cargo();
        cargo.args(["test", "--no-run", "--locked", "--message-format", "short"]);
        // Other crates are those that were built for the tests. Optimized as for these: the models
        // run on small stacks, which a function with many switches would overflow.
        for package in PACKAGES {
            cargo.args(["--package", package]);
        }
        cargo
            .args(targets)
            .env("CARGO_TARGET_DIR", TARGET_DIR)
            .env("CARGO_INCREMENTAL", "1");
        cargo.env("CARGO_TERM_COLOR", "never");
        cargo
            .env_remove("CARGO_TERM_VERBOSE")
            .env_remove("CARGO_TERM_QUIET");
        let (status, output) = self.finish(&mut cargo, Duration::MAX);
        if status.is_some_and(|status| status.success()) {
            Ok(programs(&output)
                .map(|(name, path)| (name, self.source.join(path)))
                .collect())
        } else {
            Err(Outcome::NotBuilt(output))
        }
    }

    /// Copies programs to where the next build does not write.
    pub(crate) fn keep(&self, programs: Programs) -> Programs {
        let folder = self.folder.join("programs");
        fs::create_dir_all(&folder).unwrap();
        let copy = |(name, path): (String, PathBuf)| {
            let kept = folder.join(&name);
            // One that runs still, of an earlier call, cannot be written to.
            let _ = fs::remove_file(&kept);
            fs::copy(path, &kept).unwrap();
            (name, kept)
        };
        programs.into_iter().map(copy).collect()
    }

    /// Runs tests of one program, with the mistake of this number. They have passed if all have,
    /// and failed if none has.
    pub(crate) fn run(&self, program: &Path, tests: &[&str], mistake: Option<usize>) -> Outcome {
        let mut command = Command::new(program);
        command
            .args(["--exact", "--test-threads", TEST_THREADS])
            .args(tests);
        command
            .env("REDLATCH_SEEDS", SEEDS)
            .env_remove("REDLATCH_SEED");
        command.env(
            VARIABLE,
            mistake.map_or(String::new(), |number| number.to_string()),
        );
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
        let name = format!("{:?}.log", thread::current().id());
        let path = self.folder.join(name);
        let log = File::create(&path).unwrap();
        let errors = log.try_clone().unwrap();
        command
            .current_dir(&self.source)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors);
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
        (
            status,
            String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
        )
    }
}

/// The programs that cargo says it has built, each `Executable … (path/name-digest)`.
fn programs(output: &str) -> impl Iterator<Item = (String, &str)> {
    let lines = output
        .lines()
        .filter(|line| line.trim_start().starts_with("Executable "));
    lines.filter_map(|line| {
        let path = line.rsplit_once('(')?.1.trim_end_matches(')');
        let file = path.rsplit('/').next()?;
        Some((file.rsplit_once('-')?.0.to_owned(), path))
    })
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
