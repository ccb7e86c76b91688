//! The socket side of an embedded ensemble: a thread with a poll, and connections to the model.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

use super::connection::{Connection, Inbound};
use super::model::{ConnectionId, Model, Output};
use crate::clock;
use crate::server_thread::{Orders, ServerThread};

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
