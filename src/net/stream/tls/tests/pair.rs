//! A client and a server of TLS, over a socket, in one thread.

use crate::net::stream::{Received, Stream, Target, TlsTarget};
use mio::{Poll, Token};
use rustls::client::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// A client's stream and its server.
pub(super) struct Pair {
    pub(super) client: Stream,
    pub(super) server: ServerConnection,
    pub(super) peer: TcpStream,
    pub(super) poll: Poll,
}

/// Configurations of a client and of a server that it trusts.
pub(super) struct Configs {
    pub(super) client: Arc<ClientConfig>,
    pub(super) server: ServerConfig,
}

impl Configs {
    pub(super) fn new() -> Self {
        let certificate = include_bytes!("../../../../config/tls/tests/a.crt");
        let certificate = CertificateDer::from_pem_slice(certificate).expect("a certificate");
        let key = include_bytes!("../../../../config/tls/tests/a.key");
        let key = PrivateKeyDer::from_pem_slice(key).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).expect("a certificate");
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("they fit");
        Self {
            client: Arc::new(client),
            server,
        }
    }

    /// A connected socket, and a handshake that has not begun.
    pub(super) fn connect(&self) -> Pair {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = Target::Tcp(listener.local_addr().expect("an address"));
        let target = TlsTarget::new(Arc::clone(&self.client), "a.test").expect("a name");
        let poll = Poll::new().expect("a poll");
        let client = Stream::connect(&address, Some(&target), poll.registry(), Token(0));
        let client = client.expect("a socket");
        let (peer, _) = listener.accept().expect("a connection");
        peer.set_nonblocking(true).expect("a socket");
        while client.is_connected().is_none() {}
        let server = ServerConnection::new(Arc::new(self.server.clone())).expect("a server");
        Pair {
            client,
            server,
            peer,
            poll,
        }
    }

    /// A connection whose handshake is completed.
    pub(super) fn secured(&self) -> Pair {
        let mut pair = self.connect();
        while pair.client.is_handshaking() || pair.server.is_handshaking() {
            pair.advance();
        }
        pair
    }
}

impl Pair {
    /// Moves what there is to move in each direction.
    pub(super) fn advance(&mut self) {
        passing(self.client.flush());
        self.serve();
        if self.client.is_handshaking() {
            passing(self.client.receive().map(drop));
        }
    }

    /// The server reads and writes what it can.
    pub(super) fn serve(&mut self) {
        while passing(
            self.server
                .read_tls(&mut self.peer)
                .map(|count| assert_ne!(count, 0)),
        ) {
            self.server
                .process_new_packets()
                .expect("the client speaks TLS");
        }
        while self.server.wants_write() && passing(self.server.write_tls(&mut self.peer).map(drop))
        {
        }
    }

    /// The server sends these bytes.
    pub(super) fn say(&mut self, bytes: &[u8]) {
        self.server
            .writer()
            .write_all(bytes)
            .expect("it is buffered");
        self.serve();
    }

    /// Reads until there is something else than nothing.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        loop {
            match self.client.read(buffer) {
                Ok(Received::Bytes { count: 0, .. }) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }
}

/// Did it succeed? It may also have found the socket not ready.
pub(super) fn passing(result: io::Result<()>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    }
}
