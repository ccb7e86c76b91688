//! A TLS terminator: it accepts TLS and passes what is inside to a plain port, such as a proxy or a
//! peer that is not Redis, and what comes from there back over TLS.
//!
//! Each connection has a thread for each direction. An end or a reset behind it is passed on: an
//! end with or without a `close_notify` alert before it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread;

use rustls::{HandshakeKind, ServerConfig, ServerConnection};

use super::acceptor::{Acceptor, Streams, finish_sending, mark_for_reset};
use super::certificates::{Authority, Identity, Purpose};
use super::eventually;
use super::locks::LIMIT;
use super::port::Port;
use super::socket_queues::{has_delivered_all, has_read_all};
use super::wire::lock;

/// How connections end whose plain side has ended in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With the alert that says so.
    CloseNotify,
    /// Without it, as when a server is killed.
    Abrupt,
}

struct Shared {
    plain_port: u16,
    config: Arc<ServerConfig>,
    streams: Streams,
    links: Mutex<Vec<Arc<Link>>>,
    ending: Mutex<Ending>,
}

pub struct Terminator {
    port: Port,
    acceptor: Mutex<Option<Acceptor>>,
    shared: Arc<Shared>,
}

/// A server with this certificate, which asks clients for none.
pub fn server_config(identity: &Identity) -> Arc<ServerConfig> {
    let (chain, key) = identity.chain_and_key();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key);
    Arc::new(config.expect("the key belongs to the certificate"))
}

impl Terminator {
    /// On a free port of 127.0.0.1 in front of a plain port there, with a certificate that the
    /// tests' clients trust.
    #[track_caller]
    pub fn start(plain_port: u16) -> Self {
        let identity = Authority::trusted().issue(Purpose::Server);
        Self::with_config(plain_port, server_config(&identity))
    }

    #[track_caller]
    pub fn with_config(plain_port: u16, config: Arc<ServerConfig>) -> Self {
        let shared = Arc::new(Shared {
            plain_port,
            config,
            streams: Streams::default(),
            links: Mutex::default(),
            ending: Mutex::new(Ending::CloseNotify),
        });
        let port = Port::choose();
        let acceptor = Mutex::new(Some(accept(&port, &shared)));
        Self {
            port,
            acceptor,
            shared,
        }
    }

    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Closes all connections and refuses new ones.
    #[track_caller]
    pub fn refuse(&self) {
        *lock(&self.acceptor) = None;
        self.shared.streams.cut();
        // A process that another test is starting has a copy of the socket that listened, until it
        // executes its program.
        let is_refused = || TcpStream::connect(("127.0.0.1", self.port())).is_err();
        assert!(eventually(LIMIT, is_refused), "nothing listens");
    }

    /// Accepts connections, also again.
    #[track_caller]
    pub fn accept(&self) {
        let mut acceptor = lock(&self.acceptor);
        if acceptor.is_none() {
            *acceptor = Some(accept(&self.port, &self.shared));
        }
    }

    /// How connections end from now on.
    pub fn set_ending(&self, ending: Ending) {
        *lock(&self.shared.ending) = ending;
    }

    /// The kinds of all handshakes so far, in the order of their connections.
    pub fn handshakes(&self) -> Vec<HandshakeKind> {
        let links = lock(&self.shared.links);
        links
            .iter()
            .filter_map(|link| link.lock().tls.handshake_kind())
            .collect()
    }

    /// Has any connection begun with data before the end of its handshake (0-RTT)?
    pub fn has_early_data(&self) -> bool {
        lock(&self.shared.links)
            .iter()
            .any(|link| link.lock().has_early_data)
    }

    /// Have all connections ended towards their clients?
    pub fn has_ended(&self) -> bool {
        lock(&self.shared.links)
            .iter()
            .all(|link| link.lock().has_sent_end)
    }

    /// How many of the connections were ended by the client, and with `close_notify`.
    pub fn closed_in_order(&self) -> usize {
        let links = lock(&self.shared.links);
        links
            .iter()
            .filter(|link| link.lock().is_closed_in_order)
            .count()
    }

    /// Has everything that the clients wrote been passed on?
    pub fn has_passed_commands(&self) -> bool {
        self.open_links().all(|(link, [client, _])| {
            let has_read = has_read_all(&client);
            // What was read is passed on before the lock is free.
            drop(link.lock());
            has_read
        })
    }

    /// Has everything that came from the plain port reached the clients' sockets?
    pub fn has_passed_replies(&self) -> bool {
        self.open_links().all(|(link, [client, plain])| {
            let has_read = has_read_all(&plain);
            drop(link.lock());
            has_read && has_delivered_all(&client)
        })
    }

    fn open_links(&self) -> impl Iterator<Item = (Arc<Link>, [Arc<TcpStream>; 2])> {
        let links = lock(&self.shared.links).clone();
        links
            .into_iter()
            .filter_map(|link| link.sockets().map(|sockets| (link, sockets)))
    }
}

impl Drop for Terminator {
    fn drop(&mut self) {
        self.refuse();
    }
}

#[track_caller]
fn accept(port: &Port, shared: &Arc<Shared>) -> Acceptor {
    let shared = Arc::clone(shared);
    let acceptor = Acceptor::start(port.number(), move |client| {
        connect_through(&shared, client);
    });
    acceptor.unwrap_or_else(|error| panic!("no TLS on port {}: {error}", port.number()))
}

/// Connects to the plain port. If that is down, the client's connection is closed by dropping it.
fn connect_through(shared: &Arc<Shared>, client: TcpStream) {
    let Ok(plain) = TcpStream::connect(("127.0.0.1", shared.plain_port)) else {
        return;
    };
    let [client, plain] = [client, plain].map(|stream| {
        let _ = stream.set_nodelay(true);
        shared.streams.add(stream)
    });
    let mut tls = ServerConnection::new(Arc::clone(&shared.config)).expect("the settings are good");
    tls.set_buffer_limit(None);
    let state = State {
        tls,
        has_ended: false,
        has_sent_end: false,
        is_closed_in_order: false,
        has_early_data: false,
    };
    let sockets = Mutex::new([Arc::downgrade(&client), Arc::downgrade(&plain)]);
    let link = Arc::new(Link {
        state: Mutex::new(state),
        handshake: Condvar::new(),
        sockets,
    });
    lock(&shared.links).push(Arc::clone(&link));
    let to_plain = Arc::clone(&link);
    let to_client = link;
    let from = Arc::clone(&client);
    let to = Arc::clone(&plain);
    thread::spawn(move || to_plain.carry_to_plain(&from, &to));
    let shared = Arc::clone(shared);
    thread::spawn(move || to_client.carry_to_client(&shared, &plain, &client));
}

/// One connection of a client, and its plain counterpart.
struct Link {
    state: Mutex<State>,
    /// The handshake is over, or the connection.
    handshake: Condvar,
    sockets: Mutex<[Weak<TcpStream>; 2]>,
}

struct State {
    tls: ServerConnection,
    has_ended: bool,
    has_sent_end: bool,
    is_closed_in_order: bool,
    has_early_data: bool,
}

impl State {
    /// Sends what the TLS side has to say.
    fn flush(&mut self, mut client: &TcpStream) -> io::Result<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut client)?;
        }
        Ok(())
    }

    /// Takes bytes from the client, and returns what was inside.
    fn receive(&mut self, mut bytes: &[u8], client: &TcpStream) -> io::Result<Vec<u8>> {
        let mut plaintext = Vec::new();
        while !bytes.is_empty() {
            self.tls.read_tls(&mut bytes)?;
            let processed = self.tls.process_new_packets();
            // An alert that says what was wrong is sent in any case.
            let flushed = self.flush(client);
            let processed = processed.map_err(io::Error::other)?;
            flushed?;
            let mut part = vec![0; processed.plaintext_bytes_to_read()];
            self.tls.reader().read_exact(&mut part)?;
            plaintext.append(&mut part);
            self.has_early_data |= self.tls.early_data().is_some();
            self.is_closed_in_order |= processed.peer_has_closed();
        }
        Ok(plaintext)
    }
}

impl Link {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn sockets(&self) -> Option<[Arc<TcpStream>; 2]> {
        let [client, plain] = &*lock(&self.sockets);
        Some([client.upgrade()?, plain.upgrade()?])
    }

    /// Bytes that have left a socket's queue are in the next one when the lock is free again.
    fn carry_to_plain(&self, client: &TcpStream, plain: &TcpStream) {
        let mut chunk = [0; 16 * 1024];
        while let Ok(1) = client.peek(&mut chunk[..1]) {
            let mut state = self.lock();
            let Ok(read) = (&*client).read(&mut chunk) else {
                break;
            };
            let Ok(plaintext) = state.receive(&chunk[..read], client) else {
                // What the client sent is not TLS, or it refused the handshake.
                let _ = client.shutdown(Shutdown::Both);
                break;
            };
            if !state.tls.is_handshaking() {
                self.handshake.notify_all();
            }
            if (&*plain).write_all(&plaintext).is_err() {
                let _ = client.shutdown(Shutdown::Read);
                break;
            }
        }
        self.lock().has_ended = true;
        self.handshake.notify_all();
        finish_sending(plain);
    }

    fn carry_to_client(&self, shared: &Shared, plain: &TcpStream, client: &TcpStream) {
        let is_waiting = |state: &mut State| state.tls.is_handshaking() && !state.has_ended;
        drop(self.handshake.wait_while(self.lock(), is_waiting));
        let mut chunk = [0; 16 * 1024];
        loop {
            let peeked = plain.peek(&mut chunk[..1]);
            let mut state = self.lock();
            let read = peeked.and_then(|_| (&*plain).read(&mut chunk));
            let sent = match read {
                Ok(read @ 1..) => state.tls.writer().write_all(&chunk[..read]),
                Ok(0) => {
                    if *lock(&shared.ending) == Ending::CloseNotify {
                        state.tls.send_close_notify();
                    }
                    let _ = state.flush(client);
                    finish_sending(client);
                    state.has_sent_end = true;
                    return;
                }
                Err(_) => return mark_for_reset(client),
            };
            if sent.and_then(|()| state.flush(client)).is_err() {
                let _ = plain.shutdown(Shutdown::Read);
                return;
            }
        }
    }
}
