//! A port that does not answer connection requests, as with a firewall that drops them.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::eventually;

/// A listen queue of one that is full and never emptied: the kernel ignores further requests.
pub struct DeafPort {
    socket: Socket,
    _queued: Vec<TcpStream>,
}

impl DeafPort {
    /// At this address. Port 0 is any free one.
    #[track_caller]
    pub fn open(address: &str) -> Self {
        let address: SocketAddr = address.parse().expect("an address");
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None);
        let socket = socket.expect("a socket can be made");
        socket.bind(&address.into()).expect("the address is free");
        socket.listen(0).expect("it can listen");
        let address = socket
            .local_addr()
            .expect("it is bound")
            .as_socket()
            .expect("it is TCP");
        let mut queued = Vec::new();
        let is_full = || match TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
            Ok(stream) => {
                queued.push(stream);
                false
            }
            Err(_) => true,
        };
        assert!(eventually(Duration::from_secs(60), is_full));
        Self {
            socket,
            _queued: queued,
        }
    }

    pub fn address(&self) -> SocketAddr {
        let address = self.socket.local_addr().expect("it is bound");
        address.as_socket().expect("it is TCP")
    }
}
