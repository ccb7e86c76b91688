//! A client's TLS stream and a server, in memory, with a network between them that does what the
//! fuzzer says: it cuts the server's bytes into pieces, alters, drops, repeats and inserts some.
//!
//! The keys of a handshake are random, so an input is not the same bytes each time; what it does to
//! them is.

#[path = "tls_stream/network.rs"]
mod network;

use super::input::Input;
use network::{Network, Tampering};
use redlatch::internal::tls::{Received, TlsSession, TlsTarget, UNSENT_MAX};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection};
use std::io::{ErrorKind, Read, Write};
use std::sync::{Arc, OnceLock};

/// The most that the client writes at once.
const ASK_MAX: usize = 32 * 1024;

/// A target, and the server's settings, for each version of TLS.
type Configs = [(TlsTarget, Arc<ServerConfig>); 2];

fn configs() -> &'static Configs {
    static CONFIGS: OnceLock<Configs> = OnceLock::new();
    CONFIGS.get_or_init(|| {
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(vec!["a.test".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("a certificate");
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der().clone()).expect("a certificate");
        [&rustls::version::TLS12, &rustls::version::TLS13].map(|version| {
            let client = ClientConfig::builder_with_protocol_versions(&[version])
                .with_root_certificates(roots.clone())
                .with_no_client_auth();
            let key = PrivateKeyDer::try_from(key.serialize_der()).expect("PKCS 8");
            let server = ServerConfig::builder_with_protocol_versions(&[version])
                .with_no_client_auth()
                .with_single_cert(vec![certificate.der().clone()], key);
            let target = TlsTarget::new(Arc::new(client), "a.test").expect("a name");
            (target, Arc::new(server.expect("they fit")))
        })
    })
}

/// The byte at this place of what a side writes: no two near places have the same.
fn pattern(places: std::ops::Range<usize>) -> Vec<u8> {
    places.map(|place| (place % 251) as u8).collect()
}

/// Both sides, and what they have written and read.
struct Scene {
    client: TlsSession,
    server: ServerConnection,
    network: Network,
    /// How many bytes the server has written, and the client read; and the other way round.
    said: usize,
    heard: usize,
    asked: usize,
    served: usize,
    /// How many bytes the client has taken since it was able to send all that it had.
    unsent: usize,
    /// The client has got an error, or the end.
    is_over: bool,
}

/// Panics unless the properties hold.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input(data);
    let version = usize::from(input.byte().unwrap_or_default() & 1);
    let (target, config) = &configs()[version];
    let mut scene = Scene {
        client: TlsSession::new(target).expect("the settings are good"),
        server: ServerConnection::new(Arc::clone(config)).expect("the settings are good"),
        network: Network::default(),
        said: 0,
        heard: 0,
        asked: 0,
        served: 0,
        unsent: 0,
        is_over: false,
    };
    // Most inputs are about what comes behind the handshake.
    if input.byte().unwrap_or_default() % 4 != 0 {
        scene.finish_handshake();
    }
    while let Some(event) = input.byte() {
        let size = usize::from(input.byte().unwrap_or_default());
        match event % 12 {
            0 => scene.say(size * 80),
            1 | 2 => scene.deliver(1 + size * size / 8),
            3 | 4 => drop(scene.read(1 + size * 16)),
            5 => scene.ask(size * ASK_MAX / 255),
            6 => scene.network.is_blocked = size % 2 == 0,
            7 => scene.network.tamper(Tampering::Alter {
                at: size,
                bits: 1 << (event / 12 % 8),
            }),
            8 => scene.network.tamper(Tampering::Drop {
                count: 1 + size % 64,
            }),
            9 => scene.network.tamper(Tampering::Repeat {
                count: 1 + size * 4,
            }),
            10 => scene
                .network
                .tamper(Tampering::Insert(input.bytes(size % 64))),
            _ => scene.serve(),
        }
        scene.check_bounds();
    }
    scene.end();
}

impl Scene {
    fn finish_handshake(&mut self) {
        for _ in 0..20 {
            self.advance();
            self.serve();
            self.network.deliver(usize::MAX);
        }
        assert!(!self.client.is_handshaking() && !self.server.is_handshaking());
    }

    /// The client writes and reads what its handshake needs.
    fn advance(&mut self) {
        let flushed = self.client.flush(&mut self.network);
        let mut is_over = flushed.is_err_and(|error| error.kind() != ErrorKind::WouldBlock);
        if self.client.is_handshaking() {
            let received = self.client.receive(&mut self.network);
            is_over |= received.is_err_and(|error| error.kind() != ErrorKind::WouldBlock);
        }
        self.is_over |= is_over;
    }

    /// The server reads what has come, and its records enter the network.
    fn serve(&mut self) {
        let bytes = std::mem::take(&mut self.network.to_server);
        let mut bytes = bytes.as_slice();
        while !bytes.is_empty()
            && self
                .server
                .read_tls(&mut bytes)
                .is_ok_and(|count| count > 0)
        {
            let Ok(state) = self.server.process_new_packets() else {
                break;
            };
            let mut plain = vec![0; state.plaintext_bytes_to_read()];
            self.server
                .reader()
                .read_exact(&mut plain)
                .expect("it is there");
            assert_eq!(plain, pattern(self.served..self.served + plain.len()));
            self.served += plain.len();
        }
        assert!(self.served <= self.asked);
        let mut records = Vec::new();
        while self.server.wants_write() {
            self.server
                .write_tls(&mut records)
                .expect("memory takes all");
        }
        self.network.enter(&records, self.said);
    }

    fn say(&mut self, count: usize) {
        if !self.server.is_handshaking() {
            let bytes = pattern(self.said..self.said + count);
            self.server
                .writer()
                .write_all(&bytes)
                .expect("it is buffered");
            self.said += count;
        }
        self.serve();
    }

    fn deliver(&mut self, count: usize) {
        self.network.deliver(count);
        if self.client.is_handshaking() && !self.is_over {
            self.advance();
            self.serve();
        }
    }

    fn ask(&mut self, count: usize) {
        if self.client.is_handshaking() || self.is_over {
            return;
        }
        let bytes = pattern(self.asked..self.asked + count);
        match self.client.write(&mut self.network, &bytes) {
            Ok(count) => {
                self.asked += count;
                self.unsent += count;
            }
            Err(error) => self.is_over |= error.kind() != ErrorKind::WouldBlock,
        }
    }

    /// Reads once into a buffer of this size. Returns whether there may be more.
    fn read(&mut self, size: usize) -> bool {
        if self.client.is_handshaking() {
            return false;
        }
        let mut buffer = vec![0; size];
        match self.client.read(&mut self.network, &mut buffer) {
            Ok(Received::Bytes { count, is_drained }) => {
                assert_eq!(buffer[..count], pattern(self.heard..self.heard + count));
                self.heard += count;
                !is_drained
            }
            Ok(Received::End) => {
                self.is_over = true;
                false
            }
            Err(error) => {
                self.is_over |= error.kind() != ErrorKind::WouldBlock;
                false
            }
        }
    }

    fn check_bounds(&mut self) {
        assert!(self.heard <= self.said && self.heard <= self.network.readable());
        if !self.client.has_unsent() {
            self.unsent = 0;
        }
        assert!(
            self.unsent <= UNSENT_MAX + ASK_MAX,
            "{} bytes wait",
            self.unsent
        );
    }

    /// The server ends the stream, everything is delivered, and the client reads to its end.
    fn end(mut self) {
        self.network.is_blocked = false;
        for _ in 0..20 {
            self.advance();
            self.serve();
            self.network.deliver(usize::MAX);
        }
        self.server.send_close_notify();
        self.serve();
        self.network.deliver(usize::MAX);
        self.network.has_ended = true;
        // Each read takes a byte, a record, or the end.
        for _ in 0..=self.said + 100 {
            if self.client.is_handshaking() {
                self.advance();
            } else if !self.read(4096) && self.is_over {
                break;
            }
        }
        self.check_bounds();
        assert!(self.is_over, "the stream has an end");
        if !self.network.is_tampered() {
            assert_eq!(
                self.heard, self.said,
                "nothing was done to it, so all of it arrives"
            );
        }
    }
}
