//! A port of 127.0.0.1 that belongs to one part of a test, also while nothing listens on it.

use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

/// On Linux a socket that never listens stays bound to it: the kernel gives the port to nobody who
/// asks for a free one or connects from one, and refuses connections until another socket listens.
/// That one needs the option `SO_REUSEADDR`, which servers set. Elsewhere the port is one that was
/// free a moment ago.
pub struct Port {
    number: u16,
    _bound: Option<Socket>,
}

impl Port {
    #[track_caller]
    pub fn choose() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket can be made");
        socket
            .set_reuse_address(true)
            .expect("an option of every socket");
        socket
            .bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())
            .expect("a port is free");
        let address = socket
            .local_addr()
            .ok()
            .and_then(|address| address.as_socket());
        let number = address.expect("a bound socket has an address").port();
        Self {
            number,
            _bound: cfg!(target_os = "linux").then_some(socket),
        }
    }

    pub fn number(&self) -> u16 {
        self.number
    }
}
