//! A TCP proxy between client and server whose behaviour a test can change at any time.
//!
//! Each connection has two pumps, one for each direction, and each pump has two threads: one reads
//! bytes and decides by the current mode what to do with them; the other writes them when they are
//! due. Bytes never overtake each other in any mode.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

pub use super::proxy_mode::Mode;

use super::acceptor::{Acceptor, Streams, finish_sending, mark_for_reset};
use super::port::Port;
use super::redis::Server;
#[cfg(target_os = "linux")]
use super::terminator::Terminator;
use super::transport::{Front, scheme};
use Direction::{ToClient, ToServer};

pub struct Proxy {
    port: Port,
    front: Front,
    acceptor: Mutex<Option<Acceptor>>,
    shared: Arc<Shared>,
}

struct Shared {
    target_port: AtomicU16,
    mode: Mutex<(Mode, usize)>,
    streams: Streams,
    accepted: AtomicUsize,
    forwarded: AtomicUsize,
}

impl Shared {
    /// The mode, and how often it was set before.
    fn mode(&self) -> (Mode, usize) {
        *lock(&self.mode)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Proxy {
    /// A proxy on a free port of 127.0.0.1 in front of another port there. It begins with
    /// forwarding.
    #[track_caller]
    pub fn start(target_port: u16) -> Self {
        Self::with_front(target_port, Front::start)
    }

    /// The same in front of a port for TLS: what it does, it does to the bytes of TLS.
    #[cfg(target_os = "linux")]
    #[track_caller]
    pub fn before_tls(target_port: u16) -> Self {
        Self::with_front(target_port, Front::itself)
    }

    #[track_caller]
    fn with_front(target_port: u16, front: impl FnOnce(u16) -> Front) -> Self {
        let shared = Arc::new(Shared {
            target_port: AtomicU16::new(target_port),
            mode: Mutex::new((Mode::Pass, 0)),
            streams: Streams::default(),
            accepted: AtomicUsize::new(0),
            forwarded: AtomicUsize::new(0),
        });
        let port = Port::choose();
        let acceptor = Mutex::new(Some(accept(&port, &shared)));
        let front = front(port.number());
        Self {
            port,
            front,
            acceptor,
            shared,
        }
    }

    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// `redis://127.0.0.1:PORT` of the proxy, or `rediss` and the port of a terminator before it.
    pub fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", scheme(), self.front.port())
    }

    /// The terminator in front of it, in a program with TLS.
    #[cfg(target_os = "linux")]
    pub fn terminator(&self) -> &Terminator {
        self.front.terminator().expect("this program uses TLS")
    }

    /// How many bytes it has forwarded to clients.
    pub fn forwarded(&self) -> usize {
        self.shared.forwarded.load(Ordering::SeqCst)
    }

    /// The number of connections made through it so far.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Leads to another port from now on, and closes the present connections.
    pub fn lead_to(&self, port: u16) {
        self.shared.target_port.store(port, Ordering::SeqCst);
        self.shared.streams.cut();
    }

    /// Leads new connections to another port from now on. The present ones stay.
    pub fn lead_new_to(&self, port: u16) {
        self.shared.target_port.store(port, Ordering::SeqCst);
    }

    /// The port to which it leads.
    pub fn leads_to(&self) -> u16 {
        self.shared.target_port.load(Ordering::SeqCst)
    }

    /// Changes the mode. Bytes that were read before keep the mode of that time.
    #[track_caller]
    pub fn set(&self, mode: Mode) {
        let mut acceptor = lock(&self.acceptor);
        {
            let mut current = lock(&self.shared.mode);
            *current = (mode, current.1 + 1);
        }
        match mode {
            Mode::Refuse => {
                self.front.refuse();
                *acceptor = None;
                self.shared.streams.cut();
            }
            Mode::Reset => self.shared.streams.reset(),
            _ => {}
        }
        if mode != Mode::Refuse && acceptor.is_none() {
            *acceptor = Some(accept(&self.port, &self.shared));
            self.front.accept();
        }
    }
}

/// Each server behind a proxy of its own, and the URLs of the proxies.
pub fn proxied(servers: &[Server]) -> (Vec<Proxy>, Vec<String>) {
    proxied_by(servers, |server| Proxy::start(server.port()))
}

/// The same, with these proxies.
pub fn proxied_by(
    servers: &[Server],
    proxy: impl Fn(&Server) -> Proxy,
) -> (Vec<Proxy>, Vec<String>) {
    let proxies: Vec<_> = servers.iter().map(proxy).collect();
    let urls = proxies.iter().map(Proxy::url).collect();
    (proxies, urls)
}

impl Drop for Proxy {
    fn drop(&mut self) {
        *lock(&self.acceptor) = None;
        self.shared.streams.cut();
    }
}

#[track_caller]
fn accept(port: &Port, shared: &Arc<Shared>) -> Acceptor {
    let shared = Arc::clone(shared);
    let acceptor = Acceptor::start(port.number(), move |stream| {
        shared.accepted.fetch_add(1, Ordering::SeqCst);
        connect_through(&shared, stream);
    });
    acceptor.unwrap_or_else(|error| {
        panic!("the proxy cannot listen on port {}: {error}", port.number())
    })
}

/// Connects to the server. On the loopback that succeeds or fails at once.
fn connect_through(shared: &Arc<Shared>, client: TcpStream) {
    let client = shared.streams.add(client);
    if shared.mode().0 == Mode::Reset {
        return mark_for_reset(&client);
    }
    let Ok(server) = TcpStream::connect(("127.0.0.1", shared.target_port.load(Ordering::SeqCst)))
    else {
        return;
    };
    let server = shared.streams.add(server);
    for stream in [&client, &server] {
        let _ = stream.set_nodelay(true);
    }
    pump(shared, ToServer, &client, &server);
    pump(shared, ToClient, &server, &client);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToServer,
    ToClient,
}

/// From the reading half of a pump to the writing half.
enum Parcel {
    Bytes {
        due: Instant,
        bytes: Vec<u8>,
        bytewise: bool,
    },
    /// Close the connection after everything before was written.
    Cut,
    /// The same, with a reset.
    Reset,
}

fn pump(
    shared: &Arc<Shared>,
    direction: Direction,
    source: &Arc<TcpStream>,
    sink: &Arc<TcpStream>,
) {
    let (parcels, inbox) = channel();
    let shared = Arc::clone(shared);
    let source_in = Arc::clone(source);
    thread::spawn(move || read_from(&shared, direction, &source_in, &parcels));
    let source = Arc::clone(source);
    let sink = Arc::clone(sink);
    thread::spawn(move || write_to(&source, &sink, &inbox));
}

fn read_from(
    shared: &Shared,
    direction: Direction,
    mut source: &TcpStream,
    parcels: &Sender<Parcel>,
) {
    let mut chunk = [0; 16 * 1024];
    let mut passed = 0;
    let mut passed_since = shared.mode().1;
    let mut is_lost = false;
    while let Ok(read @ 1..) = source.read(&mut chunk) {
        let (mode, switches) = shared.mode();
        if switches != passed_since {
            (passed, passed_since) = (0, switches);
        }
        let mut bytes = chunk[..read].to_vec();
        let mut due = Instant::now();
        let mut end = None;
        is_lost |= mode == Mode::Vanish || (mode, direction) == (Mode::Swallow, ToClient);
        if is_lost {
            continue;
        }
        match (mode, direction) {
            (Mode::CutAfter(limit) | Mode::ResetAfter(limit), ToClient) => {
                bytes.truncate(limit - passed);
                passed += bytes.len();
                let is_cut = matches!(mode, Mode::CutAfter(_));
                end = (passed == limit).then_some(if is_cut { Parcel::Cut } else { Parcel::Reset });
            }
            (Mode::StallAfter(limit), ToClient) => {
                bytes.truncate(limit - passed);
                passed += bytes.len();
                is_lost = passed == limit;
            }
            (Mode::Twice, ToClient) => bytes.extend_from_within(..),
            (Mode::Alter, ToClient) => bytes[read / 2] ^= 1,
            (Mode::Delay { to_server, .. }, ToServer) => due += to_server,
            (Mode::Delay { to_client, .. }, ToClient) => due += to_client,
            _ => {}
        }
        if direction == ToClient {
            shared.forwarded.fetch_add(bytes.len(), Ordering::SeqCst);
        }
        // Sending fails if the writing half has ended, and then the connection is closed.
        let bytewise = mode == Mode::Bytewise;
        let sent = parcels.send(Parcel::Bytes {
            due,
            bytes,
            bytewise,
        });
        let is_over = end.is_some_and(|end| parcels.send(end).is_ok());
        if sent.is_err() || is_over {
            return;
        }
    }
}

fn write_to(source: &TcpStream, mut sink: &TcpStream, inbox: &Receiver<Parcel>) {
    for parcel in inbox {
        let (due, bytes, bytewise) = match parcel {
            Parcel::Bytes {
                due,
                bytes,
                bytewise,
            } => (due, bytes, bytewise),
            Parcel::Cut => {
                let _ = sink.shutdown(Shutdown::Both);
                let _ = source.shutdown(Shutdown::Both);
                return;
            }
            Parcel::Reset => {
                mark_for_reset(sink);
                let _ = source.shutdown(Shutdown::Both);
                return;
            }
        };
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let size = if bytewise { 1 } else { bytes.len().max(1) };
        if bytes
            .chunks(size)
            .any(|piece| sink.write_all(piece).is_err())
        {
            // One side has closed the connection: close the other.
            let _ = source.shutdown(Shutdown::Read);
            return;
        }
    }
    finish_sending(sink);
}
