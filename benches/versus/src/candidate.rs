//! Libraries on their servers: one beside others, where servers are of several kinds.

use crate::ensemble::Ensemble;
use crate::peers::Peer;
use crate::servers::Servers;
use crate::services::Service;

/// A library and its servers.
pub struct Candidate<'a> {
    /// The name in tables.
    pub name: String,
    pub peer: Peer,
    pub urls: Vec<String>,
    pub backend: Backend<'a>,
}

#[derive(Clone, Copy)]
pub enum Backend<'a> {
    /// The servers that all scenarios share.
    Redis,
    ZooKeeper(&'a Ensemble),
    Etcd,
}

impl<'a> Candidate<'a> {
    pub fn on_redis(servers: &Servers, name: &str, peer: Peer) -> Self {
        Self { name: name.to_owned(), peer, urls: servers.urls(), backend: Backend::Redis }
    }

    /// Those of these libraries that are installed.
    pub fn on_zookeeper<const N: usize>(
        ensemble: &'a Ensemble,
        libraries: [(&str, Peer); N],
    ) -> Vec<Self> {
        let candidate = |(name, peer): (&str, Peer)| Self {
            name: format!("{name}, {}", ensemble.name()),
            peer,
            urls: vec![ensemble.url()],
            backend: Backend::ZooKeeper(ensemble),
        };
        libraries.into_iter().filter(|(_, peer)| peer.can_run()).map(candidate).collect()
    }

    pub fn on_etcd(service: &Service) -> Self {
        Self {
            name: Peer::Etcd.name().to_owned(),
            peer: Peer::Etcd,
            urls: vec![service.url.clone()],
            backend: Backend::Etcd,
        }
    }
}
