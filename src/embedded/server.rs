//! One node on a loopback port: a thread with a poll and the model.
//!
//! The thread owns all sockets. The [`Server`] sends it orders through a channel and wakes its
//! poll. When the channel is closed, the thread ends and closes the listener and the connections.
//! While it is paused, it waits on the channel only: the kernel still accepts connections and
//! bytes, and no reply is sent, as with a stopped process.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, unbounded};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

use super::connection::{Connection, Push};
use super::keyspace::Keyspace;
use super::options::Options;
use crate::clock::{self, Time};

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
const FIRST_CONNECTION: usize = 2;

/// How often a node looks for tracked keys that have expired, as often as Redis by default.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(100);

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
        let (now, wall) = (clock::now(), clock::wall_micros());
        let options = options.run_id(random_run_id()?).port(port);
        let options = options.started(now).wall_clock(now, wall);
        let (control, orders) = unbounded();
        let node = Node {
            poll,
            listener,
            orders,
            keyspace: Keyspace::new(options),
            connections: HashMap::new(),
            next_connection: FIRST_CONNECTION,
            next_expiry: clock::now(),
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
    connections: HashMap<Token, Connection<TcpStream>>,
    next_connection: usize,
    next_expiry: Time,
}

impl Node {
    /// The main loop. It ends when the [`Server`] closes the channel.
    fn run(mut self) {
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
                    WAKER if self.process_orders().is_none() => return,
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
