//! The machine of a node.

use core::net::IpAddr;

/// The machine of a node, as the connection shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its address, if the connection is a network connection.
    pub address: Option<IpAddr>,
    /// Is it the machine on which this program runs?
    pub is_here: bool,
}

impl Host {
    /// This machine: the connection is not a network connection.
    pub const HERE: Self = Self {
        address: None,
        is_here: true,
    };

    /// The other end of a network connection between these addresses.
    pub fn at(peer: IpAddr, own: Option<IpAddr>) -> Self {
        let peer = peer.to_canonical();
        let own = own.map(|own| own.to_canonical());
        Self {
            address: Some(peer),
            is_here: peer.is_loopback() || own == Some(peer),
        }
    }

    pub(super) fn is_same(self, other: Self) -> bool {
        self.is_here && other.is_here || self.address.is_some() && self.address == other.address
    }
}
