//! What the tests' server can do: a test that needs what it lacks is skipped.
//!
//! The server itself is asked, by the command in question. Each skip is printed to standard error
//! with its reason and its number, past the capture of output; with the server that the tests are
//! written for, a skip is a failure.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::cli::{Client, Value};
use super::redis::Server;
use super::server_program::{ServerProgram, say};

/// Something that only some servers have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capability {
    /// `HELLO 3`: Redis 6 and later.
    Resp3,
    /// `CLIENT TRACKING`, by which waiters are woken: Redis 6 and later.
    Tracking,
    /// `CLIENT ID`, without which no connection can be ended by its number: Redis 5 and later.
    ClientIds,
    /// Cluster mode: Redis 3 and later.
    Cluster,
    /// `ACL`: Redis 6 and later.
    Users,
    /// `ACL` with rights for single subcommands: Redis 7 and later.
    RightsToSubcommands,
    /// Readers and permits, whose scripts write after they have read the clock: Redis 5 and later.
    Shares,
    /// The start of the process in microseconds, from `INFO server`: Redis 7 and later.
    ExactUptime,
    /// A setting that `CONFIG GET` knows.
    Setting(&'static str),
}

impl Capability {
    fn is_found_in(self, server: &Server) -> bool {
        let mut client = server.client();
        match self {
            Self::Resp3 => is_accepted(&mut client, &["HELLO", "3"]),
            Self::Tracking => {
                is_accepted(&mut client, &["HELLO", "3"])
                    && is_accepted(&mut client, &["CLIENT", "TRACKING", "ON", "OPTIN"])
            }
            Self::ClientIds => is_accepted(&mut client, &["CLIENT", "ID"]),
            Self::Cluster => !client
                .command(&["CLUSTER", "INFO"])
                .text()
                .contains("unknown command"),
            Self::Users => is_accepted(&mut client, &["ACL", "SETUSER", "probe"]),
            Self::RightsToSubcommands => is_accepted(
                &mut client,
                &["ACL", "SETUSER", "probe", "-client|tracking"],
            ),
            Self::Shares => {
                let script = "redis.call('TIME') return redis.call('SET', KEYS[1], 'x')";
                is_accepted(&mut client, &["EVAL", script, "1", "redlatch:probe"])
            }
            Self::ExactUptime => client
                .command(&["INFO", "server"])
                .field("server_time_usec")
                .is_some(),
            Self::Setting(name) => client.command(&["CONFIG", "GET", name]) != Value::Array(vec![]),
        }
    }

    /// Has the tests' server this? It is asked once for each capability and test program.
    #[track_caller]
    pub fn is_there(self) -> bool {
        static FOUND: OnceLock<[bool; 8]> = OnceLock::new();
        const ASKED: [Capability; 8] = [
            Capability::Resp3,
            Capability::Tracking,
            Capability::ClientIds,
            Capability::Cluster,
            Capability::Users,
            Capability::RightsToSubcommands,
            Capability::Shares,
            Capability::ExactUptime,
        ];
        let Some(place) = ASKED.iter().position(|capability| *capability == self) else {
            return self.is_found_in(&Server::start(&[]));
        };
        let ask = || {
            let server = Server::start(&[]);
            ASKED.map(|capability| capability.is_found_in(&server))
        };
        FOUND.get_or_init(ask)[place]
    }
}

fn is_accepted(client: &mut Client, words: &[&str]) -> bool {
    !matches!(client.command(words), Value::Error(_))
}

/// Must this test be skipped, because the server lacks one of these? For the macro `needs`.
#[track_caller]
pub fn is_skipped(needed: &[Capability]) -> bool {
    static SKIPPED: AtomicUsize = AtomicUsize::new(0);
    let Some(missing) = needed.iter().find(|capability| !capability.is_there()) else {
        return false;
    };
    let program = ServerProgram::tested();
    assert!(
        !program.is_default(),
        "{program} has {missing:?}, so this test must run"
    );
    let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    say(&format!(
        "skipped ({count}): {test}: {} lacks {missing:?}",
        program
    ));
    true
}

/// At the start of a test: skips it, with the reason, on a server that lacks one of these.
#[macro_export]
macro_rules! needs {
    ($($capability:expr),+) => {
        #[allow(unused_imports, reason = "a setting is named by its path")]
        {
            use $crate::capability::Capability::*;
            if $crate::capability::is_skipped(&[$($capability),+]) {
                return;
            }
        }
    };
}
