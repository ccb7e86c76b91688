//! Child processes that end when this process does, even if it is killed.
//!
//! Linux can send a child a signal when its parent dies, and util-linux's `setpriv` can ask for it.
//! The parent in this sense is the *thread* that spawned the child, and the threads of tests end
//! with their tests; so one thread spawns all children and runs as long as the process. Without
//! `setpriv`, children are started without this.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::thread;

type Environment = Vec<(String, String)>;

/// Spawns `program` with `args` and additional environment variables. Its output and errors go to
/// `log`.
pub(crate) fn spawn_bound_to_us(
    program: PathBuf,
    args: Vec<String>,
    environment: Environment,
    log: File,
) -> io::Result<Child> {
    type Order = (
        PathBuf,
        Vec<String>,
        Environment,
        File,
        Sender<io::Result<Child>>,
    );
    static SPAWNER: OnceLock<Mutex<Sender<Order>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (orders, inbox) = channel::<Order>();
        thread::spawn(move || {
            for (program, args, environment, log, done) in inbox {
                let _ = done.send(spawn(&program, &args, environment, log));
            }
        });
        Mutex::new(orders)
    });
    let (done, result) = channel();
    let orders = spawner
        .lock()
        .expect("nothing panics with this lock held")
        .clone();
    orders
        .send((program, args, environment, log, done))
        .expect("the spawner outlives every test");
    result.recv().expect("the spawner answers every order")
}

fn spawn(
    program: &Path,
    args: &[String],
    environment: Environment,
    log: File,
) -> io::Result<Child> {
    let mut command = Command::new(program);
    if setpriv_works() {
        command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if !environment.is_empty() {
            // These variables are for the dynamic linker; they must not affect setpriv itself.
            command.arg("env");
            let variables = environment.iter();
            command.args(variables.map(|(name, value)| format!("{name}={value}")));
        }
        command.arg(program);
    } else {
        command.envs(environment);
    }
    let errors = log.try_clone()?;
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .spawn()
}

fn setpriv_works() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    *WORKS.get_or_init(|| {
        let mut probe = Command::new("setpriv");
        silent(probe.args(["--pdeathsig", "KILL", "true"]))
            .status()
            .is_ok_and(|s| s.success())
    })
}

fn silent(command: &mut Command) -> &mut Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
}
