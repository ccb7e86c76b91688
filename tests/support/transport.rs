//! How clients of the library reach servers, proxies and other peers: over TLS in the program
//! `tls`, and in all others if `REDLATCH_TLS` is in the environment. So tests run both ways, as
//! they are written.

use std::env;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use redlatch::Builder;
#[cfg(target_os = "linux")]
use redlatch::TlsSettings;

#[cfg(target_os = "linux")]
use super::certificates::Authority;
use super::cli::Client;
#[cfg(target_os = "linux")]
use super::terminator::Terminator;
#[cfg(target_os = "linux")]
use super::tls_client;

/// Do clients of the library use TLS in this program?
pub fn is_tls() -> bool {
    static IS_TLS: OnceLock<bool> = OnceLock::new();
    *IS_TLS.get_or_init(|| {
        let program = env::current_exe().expect("the program has a path");
        let name = program.file_name().expect("it is a file");
        // As cargo names programs: `tls-` and a digest.
        name.to_string_lossy().starts_with("tls-") || env::var_os("REDLATCH_TLS").is_some()
    })
}

/// `redis` or `rediss`.
pub fn scheme() -> &'static str {
    if is_tls() { "rediss" } else { "redis" }
}

/// Settings with which servers, their replicas, clusters and Sentinels talk to each other as
/// clients talk to them.
pub fn between_servers() -> &'static [&'static str] {
    if is_tls() {
        &["--tls-replication", "yes", "--tls-cluster", "yes"]
    } else {
        &[]
    }
}

/// The settings, with the tests' certificate authority if it is needed.
#[cfg(target_os = "linux")]
pub fn trusting(builder: Builder) -> Builder {
    if !is_tls() {
        return builder;
    }
    let settings = TlsSettings::default().ca_file(Authority::trusted_file());
    // In a process that a test has started, that test's servers as well.
    builder.tls(
        env::var_os(PARENTS_FILE)
            .into_iter()
            .fold(settings, TlsSettings::ca_file),
    )
}

#[cfg(not(target_os = "linux"))]
pub fn trusting(builder: Builder) -> Builder {
    builder
}

/// The path of the certificate of the authority that the tests of the parent process trust.
#[cfg(target_os = "linux")]
const PARENTS_FILE: &str = "REDLATCH_TEST_AUTHORITY";

/// Clients in a process that this one starts trust the authority of this one's servers.
#[cfg(target_os = "linux")]
pub fn trust_the_same(command: &mut Command) {
    if is_tls() {
        command.env(PARENTS_FILE, Authority::trusted_file());
    }
}

#[cfg(not(target_os = "linux"))]
pub fn trust_the_same(_command: &mut Command) {}

/// A connection to the server at this URL that does not use the library, in any process.
#[track_caller]
pub fn client_at(url: &str) -> Client {
    let port = url
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok())
        .expect("a port");
    #[cfg(target_os = "linux")]
    if url.starts_with("rediss:") {
        let roots = env::var_os(PARENTS_FILE).map_or_else(Authority::trusted_file, PathBuf::from);
        return tls_client::connect(&tls_client::config(&roots), port);
    }
    Client::connect(port).expect("a running server accepts")
}

/// The port of a proxy or peer for clients of the library: its own, or that of a terminator.
pub struct Front {
    plain_port: u16,
    #[cfg(target_os = "linux")]
    terminator: Option<Terminator>,
}

impl Front {
    #[track_caller]
    pub fn start(plain_port: u16) -> Self {
        Self {
            plain_port,
            #[cfg(target_os = "linux")]
            terminator: is_tls().then(|| Terminator::start(plain_port)),
        }
    }
}

#[cfg(target_os = "linux")]
impl Front {
    /// The port itself, because TLS passes through it.
    pub fn itself(plain_port: u16) -> Self {
        Self {
            plain_port,
            terminator: None,
        }
    }

    pub fn port(&self) -> u16 {
        self.terminator
            .as_ref()
            .map_or(self.plain_port, Terminator::port)
    }

    /// The terminator, in a program with TLS.
    pub fn terminator(&self) -> Option<&Terminator> {
        self.terminator.as_ref()
    }

    /// Closes connections and refuses new ones, if it is not the port itself.
    pub fn refuse(&self) {
        self.terminator().inspect(|terminator| terminator.refuse());
    }

    #[track_caller]
    pub fn accept(&self) {
        self.terminator().inspect(|terminator| terminator.accept());
    }

    /// Has everything that the clients wrote been passed on?
    pub fn has_passed_commands(&self) -> bool {
        self.terminator()
            .is_none_or(Terminator::has_passed_commands)
    }

    /// Has everything that came for the clients reached their sockets?
    pub fn has_passed_replies(&self) -> bool {
        self.terminator().is_none_or(Terminator::has_passed_replies)
    }
}

#[cfg(not(target_os = "linux"))]
impl Front {
    pub fn port(&self) -> u16 {
        self.plain_port
    }

    pub fn refuse(&self) {}

    pub fn accept(&self) {}

    pub fn has_passed_commands(&self) -> bool {
        true
    }

    pub fn has_passed_replies(&self) -> bool {
        true
    }
}
