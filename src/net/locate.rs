//! Where a node is: its name is resolved, or other servers are asked for the master of a group.
//!
//! All of this blocks, so each lookup runs on a short-lived thread of its own.

use super::{Endpoint, descriptors, masters};
use crate::clock::{self, Time};
use crate::node::NodeError;
use crate::node_url::Address;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// Where a node is at present.
#[derive(Debug)]
pub(super) struct Location {
    pub(super) host: String,
    pub(super) addresses: Vec<SocketAddr>,
    /// The place that others have named, and who has, in words.
    pub(super) announced: Option<Arc<str>>,
    /// The epoch of the failover authority, if it has one.
    pub(super) epoch: u64,
    pub(super) asked_at: Time,
}

pub(super) type Found = Result<Location, NodeError>;

/// Looks up this node, within this time except for the resolver of the operating system.
pub(super) fn locate(endpoint: &Endpoint, timeout: Duration) -> Found {
    match &endpoint.address {
        Address::Tcp { host, port } => resolve(host, *port, clock::now()),
        address => masters::find(address, &endpoint.auth, timeout),
    }
}

/// The error where there is nothing to look up.
pub(super) fn no_name() -> NodeError {
    NodeError::Unresolved("it has no name".to_owned())
}

pub(super) fn resolve(host: &str, port: u16, asked_at: Time) -> Found {
    descriptors::keep_standard_ones();
    let addresses: Vec<_> = match (host, port).to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(error) => return Err(NodeError::Unresolved(error.to_string())),
    };
    if addresses.is_empty() {
        return Err(NodeError::Unresolved("no address".to_owned()));
    }
    Ok(Location {
        host: host.to_owned(),
        addresses,
        announced: None,
        epoch: 0,
        asked_at,
    })
}
