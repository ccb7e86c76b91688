//! One node on a loopback port: a thread, a poll, and the model behind it.
//!
//! The thread owns everything. Whoever holds the [`Server`] speaks to it through a channel and
//! wakes its poll; when the channel closes, the thread ends and takes listener and connections
//! with it. While it is paused it waits on the channel alone, so the kernel goes on accepting
//! connections and bytes and nothing answers, which is what a stopped process looks like.

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

/// How many bytes of replies may wait for a client that does not read before the node stops
/// running its commands: 1 MiB.
const UNREAD_MAX: usize = 1024 * 1024;

/// A running node.
#[derive(Debug)]
pub(super) struct Server {
    port: u16,
    control: Option<Sender<Control>>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// What the holder of a [`Server`] asks of its thread.
#[derive(Debug)]
enum Control {
    /// Answer nothing from now on, and say when "now" is.
    Pause(Sender<()>),
    Resume,
}

impl Server {
    /// Starts a node on `port` of the loopback address; port 0 is any free one. It gets a run id
    /// of its own, and its uptime counts from now.
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

    /// Returns when the node has fallen silent.
    pub(super) fn pause(&self) {
        let (done, wait) = bounded(1);
        self.order(Control::Pause(done));
        // An error means that the thread is gone, and that is silent enough.
        let _ = wait.recv();
    }

    pub(super) fn resume(&self) {
        self.order(Control::Resume);
    }

    fn order(&self, order: Control) {
        if let Some(control) = &self.control {
            // Both fail only once the thread is gone.
            let _ = control.send(order);
            let _ = self.waker.wake();
        }
    }
}

/// Cuts every connection, closes the port and waits until that is done.
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

/// Forty hexadecimal digits, as Redis makes up for every start of a server.
fn random_run_id() -> io::Result<String> {
    let mut bytes = [0; 20];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What the node's thread owns.
struct Node {
    poll: Poll,
    listener: TcpListener,
    orders: Receiver<Control>,
    keyspace: Keyspace,
    connections: HashMap<Token, Connection>,
    next_connection: usize,
}

impl Node {
    /// The main loop: it ends when the holder of the [`Server`] lets go of the channel.
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
                    WAKER if self.obey().is_none() => return,
                    WAKER => {}
                    connection => self.serve(connection),
                }
            }
        }
    }

    /// Does what was ordered, which may take as long as a pause lasts. `None`: it is over.
    fn obey(&mut self) -> Option<()> {
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
                    // Whoever asked may have given up waiting.
                    let _ = done.send(());
                }
                Control::Resume => paused = false,
            }
        }
    }

    /// Accepts until there is nothing more to accept, or until it fails: a connection that the
    /// process has no descriptor for stays in the kernel's queue until the next one comes.
    fn accept(&mut self) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let token = Token(self.next_connection);
            self.next_connection += 1;
            let interest = Interest::READABLE.add(Interest::WRITABLE);
            // A failure concerns this connection alone: it is closed when dropped here.
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
    /// Commands may be left in `inbound` because too many replies were waiting.
    interrupted: bool,
    /// The client sent what is no command, and was told so.
    refused: bool,
}

impl Connection {
    /// Reads, runs and answers until the kernel has nothing to give or takes nothing any more.
    /// Says whether the connection goes on.
    fn progress(&mut self, keyspace: &mut Keyspace) -> io::Result<bool> {
        let mut chunk = [0; 16 * 1024];
        loop {
            self.flush()?;
            if self.session.is_closing() || self.refused {
                return Ok(false);
            }
            if self.outbound.len() > UNREAD_MAX {
                // The event that says that the client reads again brings us back here.
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
