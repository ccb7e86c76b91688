//! A link to a port: a TCP proxy that keeps bytes back in one direction, counts them, and closes
//! its connections when a test says so. Bytes that were kept back are delivered later, as after a
//! fault of a network.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::acceptor::{Acceptor, Streams};
use crate::eventually;
use crate::port::Port;

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the side that connects to the target.
    Forth,
    /// From the target to the side that has connected.
    Back,
}

/// How long a follower may wait for the port of its leader.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is replaced in the first bytes of each connection: see [`Link::between_servers`].
type Replacement = (Vec<u8>, Vec<u8>);

/// A proxy on a port of 127.0.0.1 before another one. It begins with forwarding everything.
pub struct Link {
    port: u16,
    _kept: Option<Port>,
    _acceptor: Acceptor,
    shared: Arc<Shared>,
}

struct Shared {
    target: u16,
    /// Does it wait for a target that does not listen yet?
    is_patient: bool,
    replacement: Option<Replacement>,
    gate: Mutex<Gate>,
    /// The gate has changed.
    changed: Condvar,
    streams: Streams,
}

#[derive(Default)]
struct Gate {
    is_held: [bool; 2],
    received: [usize; 2],
    delivered: [usize; 2],
    refuses: bool,
    /// How often the connections were cut: a pump of an earlier time ends.
    cuts: usize,
}

impl Link {
    /// A link to this port of 127.0.0.1.
    #[track_caller]
    pub fn to(target: u16) -> Self {
        Self::open(0, None, target, None)
    }

    /// The same on this port, between servers. One text in the first bytes that go forth is
    /// replaced by another one: servers tell each other their addresses, which must be those of
    /// links.
    #[track_caller]
    pub(super) fn between_servers(
        port: Port,
        target: u16,
        replacement: Option<Replacement>,
    ) -> Self {
        Self::open(port.number(), Some(port), target, replacement)
    }

    #[track_caller]
    fn open(port: u16, kept: Option<Port>, target: u16, replacement: Option<Replacement>) -> Self {
        let shared = Arc::new(Shared {
            target,
            is_patient: kept.is_some(),
            replacement,
            gate: Mutex::default(),
            changed: Condvar::new(),
            streams: Streams::default(),
        });
        let connecting = Arc::clone(&shared);
        let acceptor = Acceptor::start(port, move |stream| connect_through(&connecting, stream));
        let acceptor = acceptor.expect("the loopback has a free port");
        Self {
            port: acceptor.port(),
            _kept: kept,
            _acceptor: acceptor,
            shared,
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Keeps back what goes in this direction from now on.
    pub fn hold(&self, direction: Direction) {
        self.shared.gate().is_held[direction as usize] = true;
    }

    /// Delivers what was kept back in this direction, and what follows.
    pub fn release(&self, direction: Direction) {
        self.shared.gate().is_held[direction as usize] = false;
        self.shared.changed.notify_all();
    }

    /// How many bytes have come from the sender in this direction, those kept back included.
    pub fn received(&self, direction: Direction) -> usize {
        self.shared.gate().received[direction as usize]
    }

    /// How many bytes of this direction were written to where they go.
    pub fn delivered(&self, direction: Direction) -> usize {
        self.shared.gate().delivered[direction as usize]
    }

    /// Closes the connections. What was kept back is lost. New ones are accepted.
    pub fn cut(&self) {
        self.shared.gate().cuts += 1;
        self.shared.changed.notify_all();
        self.shared.streams.cut();
    }

    /// Closes the connections, and each new one at once, or no longer.
    pub fn refuse(&self, refuses: bool) {
        self.shared.gate().refuses = refuses;
        if refuses {
            self.cut();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Shared {
    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until bytes may pass. Returns whether they may, or the connection was cut.
    fn pass(&self, direction: Direction, cuts: usize) -> bool {
        let is_closed = |gate: &mut Gate| gate.is_held[direction as usize] && gate.cuts == cuts;
        let gate = self.changed.wait_while(self.gate(), is_closed);
        gate.unwrap_or_else(PoisonError::into_inner).cuts == cuts
    }
}

/// Connects to the target, and if that is not a client's link, as soon as it listens: a follower
/// that finds its leader's port closed tries again, but gives up a leader that closes the
/// connection.
fn connect_through(shared: &Arc<Shared>, client: TcpStream) {
    let cuts = {
        let gate = shared.gate();
        if gate.refuses {
            return;
        }
        gate.cuts
    };
    if let Ok(server) = TcpStream::connect(("127.0.0.1", shared.target)) {
        return join(shared, cuts, client, server);
    }
    if !shared.is_patient {
        return;
    }
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        let mut server = None;
        eventually(PATIENCE, || {
            server = TcpStream::connect(("127.0.0.1", shared.target)).ok();
            server.is_some() || shared.gate().cuts != cuts
        });
        if let Some(server) = server {
            join(&shared, cuts, client, server);
        }
    });
}

/// Forwards between the two streams.
fn join(shared: &Arc<Shared>, cuts: usize, client: TcpStream, server: TcpStream) {
    let client = shared.streams.add(client);
    let server = shared.streams.add(server);
    for stream in [&client, &server] {
        let _ = stream.set_nodelay(true);
    }
    for (direction, source, sink) in [
        (Direction::Forth, &client, &server),
        (Direction::Back, &server, &client),
    ] {
        let shared = Arc::clone(shared);
        let source = Arc::clone(source);
        let sink = Arc::clone(sink);
        thread::spawn(move || pump(&shared, direction, cuts, &source, &sink));
    }
}

fn pump(
    shared: &Shared,
    direction: Direction,
    cuts: usize,
    mut source: &TcpStream,
    mut sink: &TcpStream,
) {
    let mut chunk = [0; 16 * 1024];
    let mut is_first = direction == Direction::Forth;
    while let Ok(count @ 1..) = source.read(&mut chunk) {
        shared.gate().received[direction as usize] += count;
        let bytes = &mut chunk[..count];
        if is_first {
            shared.replace(bytes);
            is_first = false;
        }
        if !shared.pass(direction, cuts) || sink.write_all(bytes).is_err() {
            break;
        }
        shared.gate().delivered[direction as usize] += count;
    }
    // An end goes the way of the bytes before it.
    let _ = shared.pass(direction, cuts);
    let _ = sink.shutdown(Shutdown::Write);
    let _ = source.shutdown(Shutdown::Read);
}

impl Shared {
    fn replace(&self, bytes: &mut [u8]) {
        let Some((old, new)) = &self.replacement else {
            return;
        };
        assert_eq!(old.len(), new.len(), "the message has its length in it");
        let found = bytes.windows(old.len()).position(|window| window == old);
        if let Some(at) = found {
            bytes[at..at + new.len()].copy_from_slice(new);
        }
    }
}
