//! One node on a loopback port: a thread with a poll and the model.
//!
//! The thread owns all sockets. The [`Server`] sends it orders through a channel and wakes its
//! poll. When the channel is closed, the thread ends and closes the listener and the connections.
//! While it is paused, it waits on the channel only: the kernel still accepts connections and
//! bytes, and no reply is sent, as with a stopped process.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, unbounded};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

use super::inbound::Inbound;
use super::keyspace::Keyspace;
use super::options::Options;
use super::reply::OwnedReply;
use super::session::ConnectionState;
use crate::clock;

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
const FIRST_CONNECTION: usize = 2;

/// The limit of pending replies to a client that does not read, in bytes: 1 MiB. Above it, the node
/// runs no more commands of this client.
const UNREAD_MAX: usize = 1024 * 1024;

/// A running node.
#[derive(Debug)]
pub(super) struct Server {
    port: u16,
    control: Option<Sender<Control>>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// An order to the thread of a [`Server`].
#[derive(Debug)]
enum Control {
    /// Send no more replies, and confirm this on the channel.
    Pause(Sender<()>),
    Resume,
}

impl Server {
    /// Starts a node on `port` of the loopback address, or on any free port if that is 0. It gets a
    /// random run id, and its uptime counts from now.
    pub(super) fn start(port: u16, options: Options) -> io::Result<Self> {
        let mut listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        let port = listener.local_addr()?.port();
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let options = options.run_id(random_run_id()?).port(port).started(clock::now());
        let (control, orders) = unbounded();
        let node = Node {
            poll,
            listener,
            orders,
            keyspace: Keyspace::new(options),
            connections: HashMap::new(),
            next_connection: FIRST_CONNECTION,
        };
        let thread = thread::Builder::new()
            .name(format!("redlatch-node-{port}"))
            .spawn(move || node.run())?;
        Ok(Self { port, control: Some(control), waker, thread: Some(thread) })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns when the node is silent.
    pub(super) fn pause(&self) {
        let (done, wait) = bounded(1);
        self.order(Control::Pause(done));
        // An error means that the thread has ended: the node is silent too.
        let _ = wait.recv();
    }

    pub(super) fn resume(&self) {
        self.order(Control::Resume);
    }

    fn order(&self, order: Control) {
        if let Some(control) = &self.control {
            // Both fail only if the thread has ended.
            let _ = control.send(order);
            let _ = self.waker.wake();
        }
    }
}

/// Closes all connections and the port, and waits until that is done.
impl Drop for Server {
    fn drop(&mut self) {
        self.control = None;
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // The thread's panic, if any, was reported when it happened.
            let _ = thread.join();
        }
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
    orders: Receiver<Control>,
    keyspace: Keyspace,
    connections: HashMap<Token, Connection>,
    next_connection: usize,
}

impl Node {
    /// The main loop. It ends when the [`Server`] closes the channel.
    fn run(mut self) {
        let mut events = Events::with_capacity(256);
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
                Ok(()) => {}
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    WAKER if self.process_orders().is_none() => return,
                    WAKER => {}
                    connection => self.serve(connection),
                }
            }
        }
    }

    /// Carries out the pending orders; a pause lasts until the next order. `None` if the channel is
    /// closed.
    fn process_orders(&mut self) -> Option<()> {
        let mut paused = false;
        loop {
            let order = if paused {
                self.orders.recv().ok()?
            } else {
                match self.orders.try_recv() {
                    Ok(order) => order,
                    Err(TryRecvError::Empty) => return Some(()),
                    Err(TryRecvError::Disconnected) => return None,
                }
            };
            match order {
                Control::Pause(done) => {
                    paused = true;
                    // It fails if the caller no longer waits.
                    let _ = done.send(());
                }
                Control::Resume => paused = false,
            }
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
                let connection = Connection {
                    stream,
                    session: self.keyspace.connect(),
                    inbound: Inbound::new(),
                    outbound: Vec::new(),
                    interrupted: false,
                    refused: false,
                };
                self.connections.insert(token, connection);
            }
        }
    }

    fn serve(&mut self, token: Token) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        if !connection.progress(&mut self.keyspace).unwrap_or(false) {
            self.close(token);
        }
        while let Some(id) = self.keyspace.poll_killed() {
            let mut tokens = self.connections.iter();
            let killed = tokens.find(|(_, it)| it.session.id() == id).map(|(token, _)| *token);
            killed.into_iter().for_each(|token| self.close(token));
        }
    }

    fn close(&mut self, token: Token) {
        if let Some(connection) = self.connections.remove(&token) {
            self.keyspace.disconnect(&connection.session);
        }
    }
}

struct Connection {
    stream: TcpStream,
    session: ConnectionState,
    inbound: Inbound,
    /// Encoded replies that the kernel has not taken yet.
    outbound: Vec<u8>,
    /// `inbound` may contain commands that were not run because too many replies were pending.
    interrupted: bool,
    /// The client sent bytes that are no command, and the error was sent.
    refused: bool,
}

impl Connection {
    /// Reads and runs commands and writes replies until the socket would block. Returns whether the
    /// connection stays open.
    fn progress(&mut self, keyspace: &mut Keyspace) -> io::Result<bool> {
        let mut chunk = [0; 16 * 1024];
        loop {
            self.flush()?;
            if self.session.is_closing() || self.refused {
                return Ok(false);
            }
            if self.outbound.len() > UNREAD_MAX {
                // When the client reads again, a writable event calls this again.
                return Ok(true);
            }
            if std::mem::take(&mut self.interrupted) {
                self.run_commands(keyspace);
                continue;
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(false),
                Ok(read) => {
                    self.inbound.receive(&chunk[..read]);
                    self.run_commands(keyspace);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn run_commands(&mut self, keyspace: &mut Keyspace) {
        let Self { session, inbound, outbound, interrupted, .. } = self;
        let outcome = inbound.each_command(|words| {
            let reply = keyspace.execute(clock::now(), session, words);
            reply.encode(session.protocol(), outbound);
            *interrupted = outbound.len() > UNREAD_MAX;
            !*interrupted && !session.is_closing()
        });
        if let Err(fault) = outcome {
            let reply = OwnedReply::Error(format!("ERR Protocol error: {fault}").into_bytes());
            reply.encode(session.protocol(), outbound);
            self.refused = true;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
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
