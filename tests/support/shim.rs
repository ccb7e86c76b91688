//! Small libraries in C that are preloaded into a program and replace functions of the C library:
//! for the time, names, processes, signals and sockets. They are built when needed, with the
//! compiler driver with which Rust links programs.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A built library, and the file with its orders.
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

    /// Resolves names: see `names.c`.
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

    /// Delays parents: see `spawn.c`.
    pub fn spawn() -> Self {
        Self::build(include_str!("spawn.c"))
    }

    /// Counts system calls: see `calls.c`.
    pub fn calls() -> Self {
        Self::build(include_str!("calls.c"))
    }

    fn build(source: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("redlatch-shim-").tempdir();
        let shim = Self {
            folder: folder.expect("a temporary directory can be made"),
        };
        let code = shim.folder.path().join("shim.c");
        fs::write(&code, source).expect("the source can be written");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-shared", "-fPIC", "-O1", "-w", "-o"])
            .arg(shim.library())
            .arg(&code);
        let output = compiler.arg("-ldl").output();
        let output = output.expect("the C compiler that Rust links programs with can be run");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        shim
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("shim.so")
    }

    /// The file with its orders.
    pub fn orders(&self) -> PathBuf {
        self.folder.path().join("orders")
    }

    /// The environment variable that loads this into a program.
    pub fn preload(&self) -> (String, String) {
        let library = self.library();
        let library = library.to_str().expect("temporary paths are text");
        ("LD_PRELOAD".to_owned(), library.to_owned())
    }

    /// The environment variables that load this into a program and name the file of orders.
    pub fn environment(&self, orders: &str) -> [(String, String); 2] {
        let path = self.orders();
        let path = path.to_str().expect("temporary paths are text");
        [self.preload(), (orders.to_owned(), path.to_owned())]
    }
}

/// Sets the clock of programs with this file of orders, in nanoseconds from the true time.
pub fn set_clock(orders: &Path, nanos: i64) {
    let file = File::options()
        .write(true)
        .open(orders)
        .expect("the shim made it");
    // One write of eight bytes, so the shim never reads half of it.
    file.write_all_at(&nanos.to_ne_bytes(), 0)
        .expect("it can be written");
}
