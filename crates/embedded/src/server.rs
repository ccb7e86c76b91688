//! One node on a loopback port: a thread with a poll and the model.
//!
//! The thread owns all sockets, and closes the listener and the connections when it ends. While it
//! is paused, the kernel still accepts connections and bytes, and no reply is sent, as with a
//! stopped process.

use super::clock;
use super::connection::{Connection, Push};
use super::keyspace::Keyspace;
use super::nodes::Options;
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, unbounded};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use redlatch_protocol::time::Time;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::{self, JoinHandle};
use std::time::Duration;

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

// The thread of a server, and the orders that it gets from outside.
//
// The thread waits in a poll. Orders come through a channel, and a waker ends the poll. When the
// channel is closed, the thread ends. While it is paused, it waits on the channel only.

/// A running thread. Dropping it ends the thread, and waits until that is done.
#[derive(Debug)]
pub(super) struct ServerThread {
    control: Option<Sender<Control>>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// An order to the thread.
#[derive(Debug)]
enum Control {
    /// Send no more replies, and confirm this on the channel.
    Pause(Sender<()>),
    Resume,
}

/// The orders, at the side of the thread.
#[derive(Debug)]
pub(super) struct Orders(Receiver<Control>);

impl ServerThread {
    /// Starts a thread with this name. The waker ends the poll of `run`.
    pub(super) fn spawn(
        name: String,
        waker: Waker,
        run: impl FnOnce(Orders) + Send + 'static,
    ) -> io::Result<Self> {
        let (control, orders) = unbounded();
        let thread = thread::Builder::new().name(name).spawn(move || run(Orders(orders)))?;
        Ok(Self { control: Some(control), waker, thread: Some(thread) })
    }

    /// Returns when the thread sends nothing more.
    pub(super) fn pause(&self) {
        let (done, wait) = bounded(1);
        self.order(Control::Pause(done));
        // An error means that the thread has ended: the server is silent too.
        let _ = wait.recv();
    }

    pub(super) fn resume(&self) {
        self.order(Control::Resume);
    }

    /// Ends the poll, unless the thread is paused.
    #[cfg(feature = "zookeeper")]
    pub(super) fn wake(&self) {
        // It fails only if the thread has ended.
        let _ = self.waker.wake();
    }

    fn order(&self, order: Control) {
        if let Some(control) = &self.control {
            // Both fail only if the thread has ended.
            let _ = control.send(order);
            let _ = self.waker.wake();
        }
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        self.control = None;
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // The thread's panic, if any, was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl Orders {
    /// Carries out the pending orders; a pause lasts until the next order. `None` if the thread is
    /// to end.
    pub(super) fn process(&self) -> Option<()> {
        let mut paused = false;
        loop {
            let order = if paused {
                self.0.recv().ok()?
            } else {
                match self.0.try_recv() {
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
}

// Opening a port again that a server had before.

/// How often a restarted server tries to open its port, and the pause between two attempts: five
/// seconds in all.
const BIND_ATTEMPTS: u32 = 100;
const BIND_PAUSE: Duration = Duration::from_millis(50);

/// Starts a server whose port may be taken for a while: while it was closed, the system may have
/// lent it to an outgoing connection.
pub(super) fn start_again<T>(mut start: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..BIND_ATTEMPTS {
        match start() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => thread::sleep(BIND_PAUSE),
            started => return started,
        }
    }
    start()
}
