//! The options of a session.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How a session behaves.
#[derive(Clone)]
pub struct SessionOptions {
    /// How many servers there are to connect to; one at least.
    pub servers: usize,
    /// The wanted timeout of the session. The ensemble has the last word: between 2 and 20 ticks.
    pub timeout: Duration,
    /// How far two correct clocks may drift apart: a share of the time measured.
    pub drift_parts_per_billion: u32,
    /// User, colon, password, for every connection.
    pub credentials: Option<Arc<[u8]>>,
    /// How long one attempt to connect may take, the connect reply included.
    pub connect_timeout: Duration,
    /// The upper bounds of the pause when all servers have failed: of the first pause, and of any.
    pub reconnect: (Duration, Duration),
    /// A random number, from which the order of the servers and the pauses follow.
    pub seed: u64,
}

impl SessionOptions {
    /// The defaults, with so many servers.
    pub fn new(servers: usize, seed: u64) -> Self {
        Self {
            servers,
            timeout: Duration::from_secs(10),
            drift_parts_per_billion: 10_000_000,
            credentials: None,
            connect_timeout: Duration::from_secs(2),
            reconnect: (Duration::from_millis(10), Duration::from_millis(500)),
            seed,
        }
    }
}

/// Without the credentials.
impl fmt::Debug for SessionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionOptions")
            .field("servers", &self.servers)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
