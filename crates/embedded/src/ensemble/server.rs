//! The socket side of an embedded ensemble: a thread with a poll, and connections to the model.

use super::model::{ConnectionId, Model, Output};
use crate::clock;
use crate::server::{Orders, ServerThread};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use redlatch_zookeeper::jute::frame;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
const FIRST_CONNECTION: usize = 2;

/// The model of a server, which stays when the server stops.
#[derive(Clone, Debug)]
pub(super) struct SharedModel(Arc<Mutex<Model>>);

impl SharedModel {
    pub(super) fn new(model: Model) -> Self {
        Self(Arc::new(Mutex::new(model)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Model> {
        // A request that panicked, which would be a mistake of ours, has ended half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running server. Dropping it closes all connections and the port, and waits until that is done.
#[derive(Debug)]
pub(super) struct Server {
    port: u16,
    thread: ServerThread,
}

impl Server {
    /// Starts a server on `port` of the loopback address, or on any free port if that is 0.
    pub(super) fn start(port: u16, model: SharedModel) -> io::Result<Self> {
        let mut listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        let port = listener.local_addr()?.port();
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        model.lock().restart(clock::now());
        let sockets = Sockets { poll, listener, model, connections: HashMap::new() };
        let name = format!("redlatch-zookeeper-{port}");
        let thread = ServerThread::spawn(name, waker, move |orders| sockets.run(&orders))?;
        Ok(Self { port, thread })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns when the server is silent.
    pub(super) fn pause(&self) {
        self.thread.pause();
    }

    pub(super) fn resume(&self) {
        self.thread.resume();
    }

    /// The model has something to send, which no request has caused.
    pub(super) fn wake(&self) {
        self.thread.wake();
    }
}

/// The state of the server's thread.
struct Sockets {
    poll: Poll,
    listener: TcpListener,
    model: SharedModel,
    connections: HashMap<Token, (ConnectionId, Connection<TcpStream>)>,
}

fn token(id: ConnectionId) -> Token {
    Token(FIRST_CONNECTION.wrapping_add(id.number() as usize))
}

impl Sockets {
    /// The main loop. It ends when the [`Server`] is dropped.
    fn run(mut self, orders: &Orders) {
        let mut events = Events::with_capacity(256);
        loop {
            let timeout = self.model.lock().next_deadline().since(clock::now());
            match self.poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
                Ok(()) => {}
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    WAKER if orders.process().is_none() => return,
                    WAKER => {}
                    connection => self.serve(connection),
                }
            }
            self.model.lock().advance(clock::now());
            self.deliver();
        }
    }

    /// Accepts connections until there are no more, or until an error: without a free descriptor,
    /// the connection stays in the kernel's queue until the next event.
    fn accept(&mut self) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let id = self.model.lock().connect();
            let interest = Interest::READABLE.add(Interest::WRITABLE);
            // An error concerns this connection only, which is closed by dropping it.
            let _ = stream.set_nodelay(true);
            if self.poll.registry().register(&mut stream, token(id), interest).is_ok() {
                self.connections.insert(token(id), (id, Connection::new(stream)));
            } else {
                self.model.lock().disconnect(id);
            }
        }
    }

    /// Carries out what a connection has received.
    fn serve(&mut self, token: Token) {
        while let Some((id, connection)) = self.connections.get_mut(&token) {
            let id = *id;
            match connection.poll() {
                Ok(None) => return,
                Ok(Some(Inbound::Frame(frame))) => {
                    self.model.lock().received(clock::now(), id, &frame);
                    self.deliver();
                }
                Ok(Some(Inbound::FourLetters(word))) => {
                    self.model.lock().four_letters(id, word);
                    self.deliver();
                }
                Err(_) => self.close(token),
            }
        }
    }

    /// Sends what the model has to send, and closes what it closes.
    fn deliver(&mut self) {
        loop {
            let Some(output) = self.model.lock().poll() else { return };
            let (Output::Send(id, _) | Output::Close(id)) = output;
            let Some((_, connection)) = self.connections.get_mut(&token(id)) else { continue };
            match output {
                Output::Send(_, bytes) => connection.send(&bytes),
                Output::Close(_) => connection.end(),
            }
            if connection.flush().is_err() || connection.has_ended() {
                self.close(token(id));
            }
        }
    }

    fn close(&mut self, token: Token) {
        if let Some((id, _)) = self.connections.remove(&token) {
            self.model.lock().disconnect(id);
        }
    }
}

// How an ensemble behaves.

/// The settings of a server, as its administrator would write them.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Sessions end at whole ticks.
    pub(super) tick: Duration,
    /// Which timeouts are granted as asked for. `None`: two to twenty ticks.
    pub(super) timeouts: Option<RangeInclusive<Duration>>,
    /// How often empty containers are removed.
    pub(super) sweep_interval: Duration,
}

impl Settings {
    pub(super) fn new() -> Self {
        Self {
            tick: Duration::from_millis(50),
            timeouts: Some(Duration::from_millis(100)..=Duration::from_secs(60)),
            sweep_interval: Duration::from_secs(60),
        }
    }

    /// The timeouts of sessions that are granted as asked for.
    pub(super) fn timeouts(&self) -> RangeInclusive<Duration> {
        let ticks = self.tick.saturating_mul(2)..=self.tick.saturating_mul(20);
        self.timeouts.clone().unwrap_or(ticks)
    }
}

// One connection to an embedded ensemble: bytes to frames, and frames to bytes.

/// The longest frame that is accepted, as by ZooKeeper by default (`jute.maxbuffer`).
const FRAME_MAX: usize = 1_048_575;

/// The limit of pending replies to a client that does not read, in bytes: 1 MiB. Above it, no more
/// requests of this client are carried out.
const UNREAD_MAX: usize = 1024 * 1024;

/// The bytes of a frame's length, or of a command of four letters.
const WORD: usize = 4;

pub(super) struct Connection<S> {
    stream: S,
    inbound: Vec<u8>,
    /// How much of `inbound` was taken.
    used: usize,
    /// What the kernel has not taken yet.
    outbound: Vec<u8>,
    /// Was the first frame received?
    is_greeted: bool,
    /// The connection ends when all was sent.
    is_ending: bool,
}

/// What a client has sent.
#[derive(Debug, PartialEq)]
pub(super) enum Inbound {
    /// A frame, without its length.
    Frame(Vec<u8>),
    /// A command of four letters.
    FourLetters([u8; WORD]),
}

impl<S: Read + Write> Connection<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            inbound: Vec::new(),
            used: 0,
            outbound: Vec::new(),
            is_greeted: false,
            is_ending: false,
        }
    }

    /// What the client sent next. `None`: nothing before the socket can be read or written again.
    /// An error means that the connection is to be closed.
    pub(super) fn poll(&mut self) -> io::Result<Option<Inbound>> {
        let mut chunk = [0; 16 * 1024];
        loop {
            self.flush()?;
            if self.outbound.len() > UNREAD_MAX || (self.is_ending && !self.outbound.is_empty()) {
                // When the client reads again, a writable event calls this again.
                return Ok(None);
            }
            if self.has_ended() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            if let Some(inbound) = self.take()? {
                return Ok(Some(inbound));
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    self.inbound.drain(..self.used);
                    self.used = 0;
                    self.inbound.extend_from_slice(&chunk[..read]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self) -> io::Result<Option<Inbound>> {
        let rest = &self.inbound[self.used..];
        let Some(&word) = rest.first_chunk::<WORD>() else { return Ok(None) };
        if !self.is_greeted && word.iter().all(u8::is_ascii_lowercase) {
            self.used += WORD;
            return Ok(Some(Inbound::FourLetters(word)));
        }
        // A negative length is a large one here.
        if u32::from_be_bytes(word) as usize > FRAME_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let found = frame(rest).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        let Some((body, taken)) = found else { return Ok(None) };
        let inbound = Inbound::Frame(body.to_vec());
        self.used += taken;
        self.is_greeted = true;
        Ok(Some(inbound))
    }

    /// Sends these bytes, now or when the client reads.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.outbound.extend_from_slice(bytes);
    }

    /// Ends the connection when all was sent.
    pub(super) fn end(&mut self) {
        self.is_ending = true;
    }

    /// Is all sent, and is nothing to follow?
    pub(super) fn has_ended(&self) -> bool {
        self.is_ending && self.outbound.is_empty()
    }

    /// Writes what the kernel takes.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let mut written = 0;
        while written < self.outbound.len() {
            match self.stream.write(&self.outbound[written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.outbound.drain(..written);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that sends these pieces and then nothing, and reads all.
    struct Pieces(Vec<Vec<u8>>);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some(piece) = self.0.pop() else { return Err(io::ErrorKind::WouldBlock.into()) };
            buffer[..piece.len()].copy_from_slice(&piece);
            Ok(piece.len())
        }
    }

    impl Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn received(pieces: &[&[u8]]) -> io::Result<Vec<Inbound>> {
        let pieces = pieces.iter().rev().map(|piece| piece.to_vec()).collect();
        let mut connection = Connection::new(Pieces(pieces));
        std::iter::from_fn(|| connection.poll().transpose()).collect()
    }

    #[test]
    fn frames_are_the_same_however_they_are_cut() {
        let stream = [0, 0, 0, 2, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1, 9];
        let expected = [vec![7, 8], vec![], vec![9]].map(Inbound::Frame);
        for cut in 1..stream.len() {
            assert_eq!(received(&[&stream[..cut], &stream[cut..]]).unwrap(), expected, "{cut}");
        }
    }

    #[test]
    fn four_letters_count_at_the_beginning_only() {
        assert_eq!(received(&[b"ru", b"ok"]).unwrap(), [Inbound::FourLetters(*b"ruok")]);
        assert!(received(&[&[0, 0, 0, 0], b"ruok"]).is_err());
        assert!(received(&[b"ru\n\n"]).is_err());
    }

    #[test]
    fn long_frames_are_refused_before_they_are_there() {
        assert!(received(&[&1_048_575_u32.to_be_bytes()]).unwrap().is_empty());
        assert!(received(&[&1_048_576_u32.to_be_bytes()]).is_err());
        assert!(received(&[&(-1_i32).to_be_bytes()]).is_err());
    }
}
