//! Locks of other libraries on the same servers, in processes of their own: who excludes whom, as
//! the guide's page of this name says.
//!
//! The scripts, and the versions that `.ci/run` installs, are beside this file. The test of a
//! library that is not installed is skipped, and says so.

#![expect(clippy::unwrap_used, reason = "a call that fails fails the test")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use redlatch::{LockClient, LockState, NotALock, OtherProgram};
use support::locks::{LIMIT, LONG, take, with_long_timeout};
use support::queue::{finish, spawn_waiter};
use support::redis::Server;
use support::servers::Servers;
use support::skip::skip;
use support::{eventually, needs};

struct Library {
    name: &'static str,
    /// What it puts in front of a lock's name.
    prefix: &'static str,
    servers: usize,
    form: OtherProgram,
}

const REDLOCK_PY: Library = Library {
    name: "redlock-py",
    prefix: "",
    servers: 3,
    form: OtherProgram::RedlockPy,
};
const NPM_REDLOCK: Library = Library {
    name: "npm redlock",
    prefix: "",
    servers: 3,
    form: OtherProgram::NpmRedlock,
};
const REDIS_PY: Library = Library {
    name: "redis-py",
    prefix: "",
    servers: 1,
    form: OtherProgram::RedisPy,
};
const POTTERY: Library = Library {
    name: "pottery",
    prefix: "redlock:",
    servers: 3,
    form: OtherProgram::Pottery,
};
const PYTHON_REDIS_LOCK: Library = Library {
    name: "python-redis-lock",
    prefix: "lock:",
    servers: 1,
    form: OtherProgram::PythonRedisLock,
};

/// The name of the lock.
const NAME: &str = "orders:42";

/// The process of another library, which ends with the test.
struct Other {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Library {
    /// Starts it, if it is installed. Otherwise the test is skipped.
    fn start(&self, ttl: Duration, servers: &[Server]) -> Option<Other> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("api/other_programs");
        let mut command = if self.name == NPM_REDLOCK.name {
            let mut command = Command::new("node");
            command
                .env("NODE_PATH", node_modules())
                .arg(folder.join("lock.js"));
            command
        } else {
            let mut command = Command::new("python3");
            command.arg(folder.join("lock.py"));
            command
        };
        command.args([self.name, NAME, &ttl.as_secs().to_string()]);
        command.args(servers.iter().map(|server| server.port().to_string()));
        let first = match command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
            Ok(mut process) => {
                let output = BufReader::new(process.stdout.take().expect("it is a pipe"));
                let mut other = Other { process, output };
                match other.line() {
                    line if line == "ready" => return Some(other),
                    line => line,
                }
            }
            Err(error) => error.to_string(),
        };
        skip(
            "REDLATCH_REQUIRE_OTHER_PROGRAMS",
            &format!("{} cannot run: {first}", self.name),
        );
        None
    }

    /// A client of this library whose keys have this prefix.
    fn client(&self, servers: &Servers, prefix: &str) -> LockClient {
        let builder = with_long_timeout(servers.urls()).wait_for_all(true);
        builder
            .key_prefix(prefix)
            .build()
            .expect("the settings are good")
    }
}

/// Where `.ci/run` installs packages of npm.
fn node_modules() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests are in the workspace");
    std::env::var_os("NODE_PATH").map_or_else(|| root.join("target/npm/node_modules"), Into::into)
}

impl Other {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it prints text");
        line.trim_end().to_owned()
    }

    fn send(&mut self, call: &str) {
        let mut input = self.process.stdin.as_ref().expect("it is a pipe");
        writeln!(input, "{call}").expect("it reads lines");
    }

    fn call(&mut self, call: &str) -> String {
        self.send(call);
        self.line()
    }

    /// Takes the lock if it is free.
    #[track_caller]
    fn takes(&mut self) -> bool {
        match self.call("try").as_str() {
            "True" => true,
            "False" => false,
            other => panic!("{other}"),
        }
    }

    #[track_caller]
    fn release(&mut self) {
        assert_eq!(self.call("release"), "None");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // Both fail if it has ended, as it has if its library is missing.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// With the same key, the library excludes all locks of this one, and is excluded by them.
fn exclude_each_other(library: &Library) {
    let servers = Servers::start(library.servers);
    let Some(mut other) = library.start(LONG, &servers) else {
        return;
    };
    let client = library.client(&servers, library.prefix);

    assert!(other.takes(), "{}", library.name);
    assert!(client.try_lock(NAME, LONG).unwrap().is_none());
    assert!(
        client
            .request(NAME)
            .ttl(LONG)
            .shared()
            .try_lock()
            .unwrap()
            .is_none()
    );
    let LockState::Held(holder) = client.inspect(NAME).unwrap().state else {
        panic!()
    };
    // One in 64 of the random values of npm's redlock has the form of a UUID of version 1.
    let looks_like_uuid = (library.form, holder.other_program)
        == (OtherProgram::NpmRedlock, Some(OtherProgram::RedisPy));
    assert!(
        looks_like_uuid || holder.other_program == Some(library.form),
        "{holder:?}"
    );
    assert_eq!(holder.owner(), None);
    let waiting = {
        let client = client.clone();
        spawn_waiter(move || client.lock(NAME, LONG).unwrap())
    };
    other.release();
    let ours = finish(waiting);

    assert!(!other.takes(), "{}", library.name);
    let LockState::Held(holder) = client.inspect(NAME).unwrap().state else {
        panic!()
    };
    assert_eq!(holder.other_program, None, "it is this library's");
    ours.release().unwrap();
    let reader = client
        .request(NAME)
        .ttl(LONG)
        .shared()
        .try_lock()
        .unwrap()
        .unwrap();
    assert!(!other.takes(), "{}", library.name);
    reader.release().unwrap();
    assert!(eventually(LIMIT, || other.takes()), "{}", library.name);
    other.release();
}

#[test]
fn redlock_py_and_this_library_exclude_each_other() {
    needs!(Resp3, Shares);
    exclude_each_other(&REDLOCK_PY);
}

#[test]
fn npm_redlock_and_this_library_exclude_each_other() {
    needs!(Resp3, Shares);
    exclude_each_other(&NPM_REDLOCK);
}

#[test]
fn redis_py_and_this_library_exclude_each_other_on_one_server() {
    needs!(Resp3, Shares);
    exclude_each_other(&REDIS_PY);
}

#[test]
fn pottery_and_python_redis_lock_exclude_this_library_with_their_prefix() {
    needs!(Resp3, Shares);
    exclude_each_other(&POTTERY);
    exclude_each_other(&PYTHON_REDIS_LOCK);
}

#[test]
fn pottery_and_python_redis_lock_hold_the_lock_too_without_their_prefix() {
    needs!(Resp3);
    for library in [POTTERY, PYTHON_REDIS_LOCK] {
        let servers = Servers::start(library.servers);
        let Some(mut other) = library.start(LONG, &servers) else {
            continue;
        };
        let client = library.client(&servers, "");
        let _held = take(&client, NAME, LONG);
        assert!(other.takes(), "{}: the page warns of it", library.name);
    }
}

#[test]
fn another_library_gets_the_lock_when_no_client_of_this_one_waits_for_it() {
    needs!(Resp3);
    for library in [REDLOCK_PY, NPM_REDLOCK, REDIS_PY, POTTERY] {
        let servers = Servers::start(library.servers);
        // If a machine stalls for so long that it gets the lock before the others, this is its end.
        let ttl = Duration::from_secs(5);
        let Some(mut other) = library.start(ttl, &servers) else {
            continue;
        };
        let client = library.client(&servers, library.prefix);
        let first = take(&client, NAME, LONG);
        other.send("wait");
        let waiting = [(); 3].map(|()| {
            let client = library.client(&servers, library.prefix);
            spawn_waiter(move || client.lock(NAME, LONG).unwrap().release().unwrap())
        });
        first.release().unwrap();
        waiting.into_iter().for_each(finish);
        assert_eq!(other.line(), "True", "{}", library.name);
    }
}

#[test]
fn a_release_does_not_wake_python_redis_lock_which_sleeps_for_its_ttl() {
    needs!(Resp3);
    let servers = Servers::start(1);
    let ttl = Duration::from_secs(3);
    let Some(mut other) = PYTHON_REDIS_LOCK.start(ttl, &servers) else {
        return;
    };
    let client = PYTHON_REDIS_LOCK.client(&servers, PYTHON_REDIS_LOCK.prefix);
    let held = take(&client, NAME, LONG);
    let began = Instant::now();
    other.send("wait");
    let mut server = servers[0].client();
    let sleeps = || {
        let clients = server.command(&["INFO", "clients"]);
        clients
            .field("blocked_clients")
            .is_some_and(|count| count == "1")
    };
    assert!(eventually(LIMIT, sleeps));
    held.release().unwrap();
    assert_eq!(other.line(), "True");
    assert!(began.elapsed() >= ttl, "{:?}", began.elapsed());
}

/// Redisson's lock is a hash, in which its script counts how often the thread has it.
const REDISSON: &str = "if redis.call('exists', KEYS[1]) == 0 or \
    redis.call('hexists', KEYS[1], ARGV[2]) == 1 then \
    redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) \
    return nil end return redis.call('pttl', KEYS[1])";

#[test]
fn redisson_and_this_library_never_both_hold_but_it_gets_an_error() {
    let servers = Servers::start(1);
    let client = REDIS_PY.client(&servers, "");
    let redisson = || {
        let thread = "b983c153-7421-469a-addb-44fb92259a1b:1";
        let call = ["EVAL", REDISSON, "1", NAME, "50000", thread];
        servers[0].client().command(&call)
    };
    let ours = take(&client, NAME, LONG);
    let error = redisson();
    assert!(error.text().contains("WRONGTYPE"), "{error:?}");
    ours.release().unwrap();
    redisson();
    assert!(client.try_lock(NAME, LONG).unwrap().is_none());
    let state = client.inspect(NAME).unwrap().state;
    assert_eq!(state, LockState::NotALock(NotALock::NotAString));
}
