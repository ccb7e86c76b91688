//! Runs this test program again, as another process that runs one test: for tests that would affect
//! the process of all tests.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::transport::trust_the_same;

/// The command that runs the test of this name in a process of its own, in its main thread. Its
/// input is a pipe: it ends when the pipe is closed.
pub fn test_process(test: &str) -> Command {
    let itself = env::current_exe().expect("a running program has a path");
    let mut command = Command::new(itself);
    command.args(["--exact", test, "--test-threads=1", "--nocapture"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    trust_the_same(&mut command);
    command
}

/// Runs a program to its end, which must be successful.
#[track_caller]
pub fn succeed(command: &mut Command) {
    let process = command.spawn().expect("this program can be started again");
    let output = process
        .wait_with_output()
        .expect("a child can be waited for");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {text}", output.status);
}

/// cargo, without what it has told this program: build scripts look at variables of these names,
/// and their crates would be built anew, there and after that.
pub fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    let is_told = |name: &str| {
        let is_of_package = name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        // A program whose package has a build script is told its folder.
        is_of_package || name == "OUT_DIR"
    };
    let told = env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_told));
    told.for_each(|(name, _)| _ = cargo.env_remove(name));
    cargo
}

/// Ends this process when the thread that started it ends, which is the thread of a test. Only
/// Linux can do that. Elsewhere a process whose parent was killed ends by itself, later.
pub fn end_with_parent() {
    #[cfg(target_os = "linux")]
    end_with_starting_thread();
}

#[cfg(target_os = "linux")]
fn end_with_starting_thread() {
    use rustix::process::{Signal, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL)).expect("a signal can be asked for");
}

/// A folder in memory: a busy disk could delay a thread for longer than its lock is valid.
pub fn in_memory() -> TempDir {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() {
        memory
    } else {
        env::temp_dir()
    };
    tempfile::tempdir_in(folder).expect("a folder can be made")
}
