//! A server in cluster mode that is alone in its cluster.

use std::ops::Deref;

use super::capability::Capability;
use super::port::Port;
use super::redis::Server;

pub struct ClusterNode {
    server: Server,
    _bus: Port,
}

impl ClusterNode {
    /// Needs [`Capability::Cluster`].
    #[track_caller]
    pub fn start() -> Self {
        let bus = Port::choose();
        let port = bus.number().to_string();
        // Without this setting, which is new in Redis 7, the cluster's port is 10,000 above the
        // other: that may be another test's.
        let setting = ["--cluster-port", &port];
        let is_known = Capability::Setting("cluster-port").is_there();
        let setting = if is_known { &setting[..] } else { &[] };
        let server = Server::start(&[&["--cluster-enabled", "yes"], setting].concat());
        Self { server, _bus: bus }
    }
}

impl Deref for ClusterNode {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}
