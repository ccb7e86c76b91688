//! A server in cluster mode that is alone in its cluster.

use std::ops::{Deref, DerefMut};

use super::capability::Capability;
use super::port::Port;
use super::redis::Server;

pub struct ClusterNode {
    server: Server,
    bus: Port,
}

impl ClusterNode {
    /// Needs [`Capability::Cluster`].
    #[track_caller]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same, with these settings too.
    #[track_caller]
    pub fn start_with(settings: &[&str]) -> Self {
        let bus = Port::choose();
        let port = bus.number().to_string();
        // Without this setting, which is new in Redis 7, the cluster's port is 10,000 above the
        // other: that may be another test's.
        let setting = ["--cluster-port", &port];
        let is_known = Capability::Setting("cluster-port").is_there();
        let setting = if is_known { &setting[..] } else { &[] };
        let server = Server::start(&[&["--cluster-enabled", "yes"], setting, settings].concat());
        Self { server, bus }
    }

    /// The port on which it talks to the others.
    pub fn bus(&self) -> u16 {
        self.bus.number()
    }
}

impl Deref for ClusterNode {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl DerefMut for ClusterNode {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.server
    }
}
