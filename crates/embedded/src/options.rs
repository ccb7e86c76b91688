//! The settings of one node: its identity and its password.

use std::fmt;
use std::time::Duration;

use redlatch_protocol::time::Time;
use redlatch_registers::Member;

/// The settings of one [`Keyspace`](super::keyspace::Keyspace).
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    pub(super) password: Option<String>,
    pub(super) run_id: String,
    /// Which member of a group the node is, if it is one.
    pub(super) member: Option<Member>,
    pub(super) redis_version: String,
    pub(super) port: u16,
    pub(super) uptime: Duration,
    pub(super) started: Time,
    /// Microseconds since 1970 at [`Time::ZERO`].
    pub(super) epoch: u64,
}

impl Options {
    /// No password, run id of forty zeroes, version 7.0.15, port 6379, just started at
    /// [`Time::ZERO`], which is 1970.
    pub fn new() -> Self {
        Self {
            password: None,
            run_id: "0".repeat(40),
            member: None,
            redis_version: "7.0.15".to_owned(),
            port: 6379,
            uptime: Duration::ZERO,
            started: Time::ZERO,
            epoch: 0,
        }
    }

    /// Requires this password (user `default`), as `requirepass` does.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// The run id in `INFO`: forty hexadecimal digits, different for every start of every server.
    /// The model has no source of randomness, so the caller must set a different one for each node.
    pub fn run_id(mut self, run_id: impl Into<String>) -> Self {
        self.run_id = run_id.into();
        self
    }

    /// The version that `INFO` and `HELLO` report. The commands always behave as in 7.0.15.
    pub fn redis_version(mut self, version: impl Into<String>) -> Self {
        self.redis_version = version.into();
        self
    }

    /// The port that `INFO` reports.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// The uptime of the node at [`started`](Options::started).
    pub fn uptime(mut self, uptime: Duration) -> Self {
        self.uptime = uptime;
        self
    }

    /// The node's wall clock, for `TIME`: it shows `micros` microseconds since 1970 at `now`, and
    /// goes on evenly from there. Without this, it shows 1970 at [`Time::ZERO`].
    pub fn wall_clock(mut self, now: Time, micros: u64) -> Self {
        self.epoch = micros.saturating_sub(now.as_nanos() / 1_000);
        self
    }

    /// What the wall clock shows.
    pub(super) fn wall_micros(&self, now: Time) -> u64 {
        self.epoch.saturating_add(now.as_nanos() / 1_000)
    }

    /// When the node was started. Its uptime counts from here.
    pub fn started(mut self, started: Time) -> Self {
        self.started = started;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// Never shows the password.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("run_id", &self.run_id)
            .field("redis_version", &self.redis_version)
            .field("port", &self.port)
            .field("uptime", &self.uptime)
            .field("started", &self.started)
            .finish()
    }
}
