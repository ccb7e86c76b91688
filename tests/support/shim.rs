//! Small libraries in C that are loaded before all others into a program, and answer in the place
//! of the C library: about the time, or about names. They are built when they are needed, by the
//! compiler driver with which Rust links programs.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A library, built, and a file by which it is told what to say.
pub struct Shim {
    folder: TempDir,
}

impl Shim {
    /// Moves the wall clock: see `clock.c`.
    pub fn clock() -> Self {
        let shim = Self::build(include_str!("clock.c"));
        fs::write(shim.orders(), 0_i64.to_ne_bytes()).expect("the file can be written");
        shim
    }

    /// Answers for names: see `names.c`.
    pub fn names() -> Self {
        Self::build(include_str!("names.c"))
    }

    /// Forks: see `fork.c`.
    pub fn fork() -> Self {
        Self::build(include_str!("fork.c"))
    }

    /// Stops threads by a signal: see `stop.c`.
    pub fn stop() -> Self {
        Self::build(include_str!("stop.c"))
    }

    fn build(source: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("redlatch-shim-").tempdir();
        let shim = Self { folder: folder.expect("a temporary directory can be made") };
        let code = shim.folder.path().join("shim.c");
        fs::write(&code, source).expect("the source can be written");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-w", "-o"]).arg(shim.library()).arg(&code);
        let output = compiler.arg("-ldl").output();
        let output = output.expect("the C compiler that Rust links programs with can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        shim
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("shim.so")
    }

    /// The file that says what to answer.
    pub fn orders(&self) -> PathBuf {
        self.folder.path().join("orders")
    }

    /// What has to be in the environment of a program into which this is loaded.
    pub fn preload(&self) -> (String, String) {
        let library = self.library();
        let library = library.to_str().expect("temporary paths are text");
        ("LD_PRELOAD".to_owned(), library.to_owned())
    }

    /// What has to be in the environment of a program that is to be told this, the orders under a
    /// name of their own.
    pub fn environment(&self, orders: &str) -> [(String, String); 2] {
        let path = self.orders();
        let path = path.to_str().expect("temporary paths are text");
        [self.preload(), (orders.to_owned(), path.to_owned())]
    }
}

/// Moves the clock of whoever is told by this file, in nanoseconds from the true time.
pub fn set_clock(orders: &Path, nanos: i64) {
    let file = File::options().write(true).open(orders).expect("the shim made it");
    // One write of eight bytes: nobody reads half of it.
    file.write_all_at(&nanos.to_ne_bytes(), 0).expect("it can be written");
}
