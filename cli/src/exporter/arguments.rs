//! The command line of `redlatch exporter`.

use crate::duration;
use clap::Args;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

/// Serve metrics of the nodes, and of locks, for Prometheus.
///
/// Answers GET /metrics over HTTP, without encryption and to everybody who can connect. Prints its
/// URL when it does. It looks at the nodes and locks once in each interval, however often it is
/// asked.
#[derive(Debug, Args)]
pub(crate) struct ExporterArguments {
    /// Where to listen. Port 0 is any port that is free.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9785")]
    pub(crate) listen: SocketAddr,
    /// Locks whose names match, such as 'orders:*'; may be given again [default: no locks].
    #[arg(long, value_name = "GLOB")]
    pub(crate) pattern: Vec<OsString>,
    /// How often it looks at the nodes and locks.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = duration::parse)]
    pub(crate) interval: Duration,
    /// Of how many locks there are metrics at most: those whose names come first in the order of
    /// bytes. The number of those that are left out is a metric.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) max_locks: usize,
}
