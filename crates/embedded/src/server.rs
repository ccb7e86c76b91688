//! One node on a loopback port: a thread with a poll and the model.
//!
//! The thread owns all sockets, and closes the listener and the connections when it ends. While it
//! is paused, the kernel still accepts connections and bytes, and no reply is sent, as with a
//! stopped process.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

use super::connection::{Connection, Push};
use super::keyspace::Keyspace;
use super::options::Options;
use super::server_thread::{Orders, ServerThread};
use crate::clock;
use redlatch_protocol::time::Time;

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
const FIRST_CONNECTION: usize = 2;

/// How often a node looks for tracked keys that have expired, as often as Redis by default.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(100);

/// A running node. Dropping it closes all connections and the port, and waits until that is done.
#[derive(Debug)]
pub(super) struct Server {
    port: u16,
    thread: ServerThread,
}

impl Server {
    /// Opens `port` of the loopback address, or any free port if that is 0.
    pub(super) fn listen(port: u16) -> io::Result<TcpListener> {
        TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Starts a node. It gets a random run id, and its uptime counts from now.
    pub(super) fn start(mut listener: TcpListener, options: Options) -> io::Result<Self> {
        let port = listener.local_addr()?.port();
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let (now, wall) = (clock::now(), clock::wall_micros());
        let options = options.run_id(random_run_id()?).port(port);
        let options = options.started(now).wall_clock(now, wall);
        let node = Node {
            poll,
            listener,
            keyspace: Keyspace::new(options),
            connections: HashMap::new(),
            next_connection: FIRST_CONNECTION,
            next_expiry: clock::now(),
        };
        let name = format!("redlatch-node-{port}");
        let thread = ServerThread::spawn(name, waker, move |orders| node.run(&orders))?;
        Ok(Self { port, thread })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns when the node is silent.
    pub(super) fn pause(&self) {
        self.thread.pause();
    }

    pub(super) fn resume(&self) {
        self.thread.resume();
    }
}

/// Forty random hexadecimal digits, as Redis draws at each start.
fn random_run_id() -> io::Result<String> {
    let mut bytes = [0; 20];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The state of the node's thread.
struct Node {
    poll: Poll,
    listener: TcpListener,
    keyspace: Keyspace,
    connections: HashMap<Token, Connection<TcpStream>>,
    next_connection: usize,
    next_expiry: Time,
}

impl Node {
    /// The main loop. It ends when the [`Server`] is dropped.
    fn run(mut self, orders: &Orders) {
        let mut events = Events::with_capacity(256);
        loop {
            let timeout = self.keyspace.is_tracking().then_some(EXPIRY_INTERVAL);
            match self.poll.poll(&mut events, timeout) {
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
            self.expire();
        }
    }

    /// Reports tracked keys that have expired, unless the last look was less than an interval ago.
    fn expire(&mut self) {
        let now = clock::now();
        if self.keyspace.is_tracking() && now >= self.next_expiry {
            self.next_expiry = now.after(EXPIRY_INTERVAL);
            self.keyspace.expire_tracked(now);
            let pushes = std::iter::from_fn(|| self.keyspace.poll_push()).collect();
            self.deliver(pushes);
        }
    }

    /// Accepts connections until there are no more, or until an error: without a free descriptor,
    /// the connection stays in the kernel's queue until the next event.
    fn accept(&mut self) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let token = Token(self.next_connection);
            self.next_connection += 1;
            let interest = Interest::READABLE.add(Interest::WRITABLE);
            // An error concerns this connection only, which is closed by dropping it.
            let _ = stream.set_nodelay(true);
            if self.poll.registry().register(&mut stream, token, interest).is_ok() {
                let connection = Connection::new(stream, self.keyspace.connect());
                self.connections.insert(token, connection);
            }
        }
    }

    fn serve(&mut self, token: Token) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let mut pushes = Vec::new();
        if !connection.progress(&mut self.keyspace, &mut pushes).unwrap_or(false) {
            self.close(token);
        }
        self.deliver(pushes);
        while let Some(id) = self.keyspace.poll_killed() {
            self.token(id).into_iter().for_each(|token| self.close(token));
        }
    }

    /// Sends each message to its connection, if that is still there.
    fn deliver(&mut self, pushes: Vec<Push>) {
        for (id, message) in pushes {
            let Some(token) = self.token(id) else { continue };
            let connection = self.connections.get_mut(&token);
            if connection.is_some_and(|connection| connection.push(&message).is_err()) {
                self.close(token);
            }
        }
    }

    fn token(&self, id: i64) -> Option<Token> {
        let mut connections = self.connections.iter();
        connections.find(|(_, it)| it.session().id() == id).map(|(token, _)| *token)
    }

    fn close(&mut self, token: Token) {
        if let Some(connection) = self.connections.remove(&token) {
            self.keyspace.disconnect(connection.session());
        }
    }
}
