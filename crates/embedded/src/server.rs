//! A server on a loopback port: a thread with a poll, and what it does for a [`Service`].
//!
//! The thread owns all sockets, and closes the listener and the connections when it ends. While it
//! is paused, the kernel still accepts connections and bytes, and no reply is sent, as with a
//! stopped process.

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What a server does for its clients.
pub(super) trait Service: Send + 'static {
    /// What it knows about a connection.
    type Client: Send;
    /// The thread's name is this and the port.
    const NAME: &'static str;

    /// How long the thread may wait before it calls [`advance`](Self::advance).
    fn patience(&self) -> Option<Duration>;
    /// A new connection: its number, which no other has had.
    fn connect(&mut self) -> (usize, Self::Client);
    /// A connection is closed, or could not be opened.
    fn disconnect(&mut self, id: usize, client: &Self::Client);
    /// A connection can be read or written, or was closed.
    fn serve(&mut self, id: usize, connections: &mut Connections<Self::Client>);
    /// Does what time has come for.
    fn advance(&mut self, connections: &mut Connections<Self::Client>);

    fn close(&mut self, id: usize, connections: &mut Connections<Self::Client>) {
        if let Some((_, client)) = connections.remove(&id) {
            self.disconnect(id, &client);
        }
    }
}

/// The open connections by their numbers.
pub(super) type Connections<C> = HashMap<usize, (ClientSocket<TcpStream>, C)>;

// No connection has these numbers.
const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

struct ServerLoop<S: Service> {
    poll: Poll,
    listener: TcpListener,
    service: S,
    connections: Connections<S::Client>,
}

impl<S: Service> ServerLoop<S> {
    /// The main loop. It ends when the [`ServerThread`] is dropped.
    fn run(mut self, orders: &Receiver<Control>) {
        let mut events = Events::with_capacity(256);
        loop {
            match self.poll.poll(&mut events, self.service.patience()) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return,
                Ok(()) => {}
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    WAKER if process(orders).is_none() => return,
                    WAKER => {}
                    Token(id) => self.service.serve(id, &mut self.connections),
                }
            }
            self.service.advance(&mut self.connections);
        }
    }

    /// Accepts connections until there are no more, or until an error: without a free descriptor,
    /// the connection stays in the kernel's queue until the next event.
    fn accept(&mut self) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let (id, client) = self.service.connect();
            let interest = Interest::READABLE.add(Interest::WRITABLE);
            // An error concerns this connection only, which is closed by dropping it.
            let _ = stream.set_nodelay(true);
            if self
                .poll
                .registry()
                .register(&mut stream, Token(id), interest)
                .is_ok()
            {
                self.connections
                    .insert(id, (ClientSocket::new(stream), client));
            } else {
                self.service.disconnect(id, &client);
            }
        }
    }
}

/// The limit of pending replies to a client that does not read, in bytes: 1 MiB. Above it, no more
/// commands or requests of this client are carried out.
pub(super) const UNREAD_MAX: usize = 1024 * 1024;

/// The bytes to and from a client.
pub(super) struct ClientSocket<S> {
    stream: S,
    pub(super) inbound: Vec<u8>,
    /// How much of `inbound` was carried out.
    pub(super) used: usize,
    /// What the kernel has not taken yet.
    pub(super) outbound: Vec<u8>,
}

impl<S: Read + Write> ClientSocket<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            inbound: Vec::new(),
            used: 0,
            outbound: Vec::new(),
        }
    }

    /// Does the client read too little? When it reads again, there is an event.
    pub(super) fn is_full(&self) -> bool {
        self.outbound.len() > UNREAD_MAX
    }

    /// Receives more by means of the buffer. Returns whether there was anything; the end of the
    /// stream is an error.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    self.inbound.drain(..self.used);
                    self.used = 0;
                    self.inbound.extend_from_slice(&buffer[..read]);
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes what the kernel takes.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let mut written = 0;
        while written < self.outbound.len() {
            match self.stream.write(&self.outbound[written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.outbound.drain(..written);
        Ok(())
    }
}

// The thread of a server, and the orders that it gets from outside.
//
// The thread waits in a poll. Orders come through a channel, and a waker ends the poll. While the
// thread is paused, it waits on the channel only.

/// A running thread. Dropping it closes all connections and the port, and waits until that is done.
#[derive(Debug)]
struct ServerThread {
    control: Sender<Control>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Control {
    /// Send no more replies, and confirm this on the channel.
    Pause(Sender<()>),
    Resume,
    Stop,
}

impl ServerThread {
    fn spawn<S: Service>(mut listener: TcpListener, service: S) -> io::Result<Self> {
        let name = format!("{}-{}", S::NAME, listener.local_addr()?.port());
        let poll = Poll::new()?;
        poll.registry()
            .register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let sockets = ServerLoop {
            poll,
            listener,
            service,
            connections: HashMap::new(),
        };
        let (control, orders) = unbounded();
        let thread = thread::Builder::new()
            .name(name)
            .spawn(move || sockets.run(&orders))?;
        Ok(Self {
            control,
            waker,
            thread: Some(thread),
        })
    }

    fn order(&self, order: Control) {
        // Both fail only if the thread has ended.
        let _ = self.control.send(order);
        let _ = self.waker.wake();
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        self.order(Control::Stop);
        if let Some(thread) = self.thread.take() {
            // The thread's panic, if any, was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// Carries out the pending orders; a pause lasts until the next order. `None` if the thread is to
/// end.
fn process(orders: &Receiver<Control>) -> Option<()> {
    let mut paused = false;
    loop {
        match if paused {
            orders.recv().ok()
        } else {
            orders.try_recv().ok()
        } {
            Some(Control::Pause(done)) => {
                paused = true;
                // It fails if the caller no longer waits.
                let _ = done.send(());
            }
            Some(Control::Resume) => paused = false,
            Some(Control::Stop) => return None,
            None => return Some(()),
        }
    }
}

/// How often a restarted server tries to open its port, and the pause between two attempts: five
/// seconds in all.
const BIND_ATTEMPTS: u32 = 100;
const BIND_PAUSE: Duration = Duration::from_millis(50);

/// A server that can be stopped, and started again on the same port.
#[derive(Debug)]
pub(super) struct Server {
    port: u16,
    /// `None` while the server is down.
    thread: Mutex<Option<ServerThread>>,
}

impl Server {
    /// Opens `port` of the loopback address, or any free port if that is 0.
    pub(super) fn listen(port: u16) -> io::Result<TcpListener> {
        TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    pub(super) fn start(listener: TcpListener, service: impl Service) -> io::Result<Self> {
        let port = listener.local_addr()?.port();
        Ok(Self {
            port,
            thread: Mutex::new(Some(ServerThread::spawn(listener, service)?)),
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn stop(&self) {
        drop(self.thread().take());
    }

    /// The port may be taken for a while: while it was closed, the system may have lent it to an
    /// outgoing connection.
    pub(super) fn restart<S: Service>(
        &self,
        mut service: impl FnMut() -> io::Result<S>,
    ) -> io::Result<()> {
        let mut thread = self.thread();
        // The old server must close the port before the new one opens it.
        drop(thread.take());
        let mut attempts_left = BIND_ATTEMPTS;
        loop {
            attempts_left -= 1;
            let started = Self::listen(self.port)
                .and_then(|listener| ServerThread::spawn(listener, service()?));
            match started {
                Err(error) if error.kind() == ErrorKind::AddrInUse && attempts_left > 0 => {
                    thread::sleep(BIND_PAUSE);
                }
                started => {
                    *thread = Some(started?);
                    return Ok(());
                }
            }
        }
    }

    /// Returns when the server sends nothing more.
    pub(super) fn pause(&self) {
        if let Some(thread) = &*self.thread() {
            let (done, wait) = bounded(1);
            thread.order(Control::Pause(done));
            // An error means that the thread has ended: the server is silent too.
            let _ = wait.recv();
        }
    }

    pub(super) fn resume(&self) {
        if let Some(thread) = &*self.thread() {
            thread.order(Control::Resume);
        }
    }

    /// The service has something to send, which no client has caused. Ends the poll, unless the
    /// thread is paused.
    #[cfg(feature = "zookeeper")]
    pub(super) fn wake(&self) {
        if let Some(thread) = &*self.thread() {
            // It fails only if the thread has ended.
            let _ = thread.waker.wake();
        }
    }

    fn thread(&self) -> MutexGuard<'_, Option<ServerThread>> {
        // A panic of another thread leaves the server up or down: both are valid states.
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
