//! One connection through a [relay](super::relay), and its threads.
//!
//! There is one thread for each direction, and one that repeats replies. They split the bytes into
//! whole commands and replies and forward each with the wire locked, so changes by a test take
//! effect between two of them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::acceptor::finish_sending;
use super::cli::parse;
use super::socket_queues::{has_delivered_all, has_read_all};

/// The orders for all connections through a relay.
#[derive(Default)]
pub(crate) struct Orders {
    /// Does the server get each command twice? The second reply is dropped.
    pub is_doubling: bool,
    /// The delay of repeated replies, if replies are repeated.
    pub repeat_after: Mutex<Option<Duration>>,
    /// The number of repeated replies that are not written yet.
    pub repeats_left: AtomicUsize,
}

/// One connection of a client, and the corresponding one to the server.
pub(crate) struct Wire {
    pub client: TcpStream,
    pub server: TcpStream,
    state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    /// The bytes that the client has written and that are held back.
    pub held: Option<Vec<Vec<u8>>>,
    /// All bytes that the client has written.
    pub written: Vec<Vec<u8>>,
    /// The bytes to send to the client when it writes next, before that is forwarded.
    pub rest: Vec<u8>,
    /// The number of commands without a reply.
    pub unanswered: usize,
    pub has_client_left: bool,
    pub has_server_ended: bool,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wire {
    /// Begins to forward between these two.
    pub(crate) fn open(orders: &Arc<Orders>, client: TcpStream, server: TcpStream) -> Arc<Self> {
        for stream in [&client, &server] {
            let _ = stream.set_nodelay(true);
        }
        let wire = Arc::new(Self {
            client,
            server,
            state: Mutex::default(),
        });
        let (repeats, inbox) = channel();
        wire.work(orders, carry_commands);
        wire.work(orders, move |orders, wire| {
            carry_replies(orders, wire, &repeats);
        });
        wire.work(orders, move |orders, wire| repeat(orders, wire, &inbox));
        wire
    }

    fn work(
        self: &Arc<Self>,
        orders: &Arc<Orders>,
        work: impl FnOnce(&Orders, &Self) + Send + 'static,
    ) {
        let orders = Arc::clone(orders);
        let wire = Arc::clone(self);
        thread::spawn(move || work(&orders, &wire));
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Sends these bytes to the client, as if the server had.
    pub(crate) fn say(&self, bytes: &[u8]) {
        let _state = self.lock();
        self.write_to_client(bytes);
    }

    /// The same, for a caller that has locked the wire.
    fn write_to_client(&self, bytes: &[u8]) {
        // It fails if the client has closed the connection.
        let _ = (&self.client).write_all(bytes);
    }

    /// Has each command its reply, is each reply repeated as ordered, and have all bytes reached
    /// the client's socket? The client must not write meanwhile.
    pub(crate) fn is_quiet(&self, orders: &Orders) -> bool {
        let has_replied =
            || self.lock().unanswered == 0 && orders.repeats_left.load(Ordering::SeqCst) == 0;
        // In the direction of the bytes: bytes that have left one place are in the next, or have
        // arrived. Reading the table of sockets can take long, so it comes last.
        has_replied()
            && has_read_all(&self.client)
            && has_replied()
            && has_delivered_all(&self.client)
    }

    fn pass_command(&self, state: &mut State, command: Vec<u8>, times: usize) {
        self.write_to_client(&std::mem::take(&mut state.rest));
        let commands = command.repeat(times);
        state.written.push(command);
        match &mut state.held {
            Some(held) => held.push(commands),
            None => {
                state.unanswered += times;
                // It fails if the server has closed the connection, which the other direction
                // forwards.
                let _ = (&self.server).write_all(&commands);
            }
        }
    }

    /// Passes each whole command or reply to `each`, with the wire locked. Bytes that are not in
    /// the socket's queue any more are processed when the wire is unlocked.
    fn read_whole(&self, mut stream: &TcpStream, mut each: impl FnMut(&mut State, Vec<u8>)) {
        let mut received = Vec::new();
        let mut chunk = [0; 16 * 1024];
        while let Ok(1) = stream.peek(&mut chunk[..1]) {
            let mut state = self.lock();
            let Ok(read) = stream.read(&mut chunk) else {
                return;
            };
            received.extend_from_slice(&chunk[..read]);
            while let Some((_, used)) = parse(&received) {
                each(&mut state, received.drain(..used).collect());
            }
        }
    }
}

fn carry_commands(orders: &Orders, wire: &Wire) {
    let times = if orders.is_doubling { 2 } else { 1 };
    let pass = |state: &mut State, command| wire.pass_command(state, command, times);
    wire.read_whole(&wire.client, pass);
    let mut state = wire.lock();
    state.has_client_left = true;
    if state.held.is_none() {
        finish_sending(&wire.server);
    }
}

fn carry_replies(orders: &Orders, wire: &Wire, repeats: &Sender<(Instant, Vec<u8>)>) {
    let mut replies = 0;
    wire.read_whole(&wire.server, |state, reply| {
        replies += 1;
        state.unanswered = state.unanswered.saturating_sub(1);
        if orders.is_doubling && replies % 2 == 0 {
            return;
        }
        wire.write_to_client(&reply);
        if let Some(delay) = *lock(&orders.repeat_after) {
            orders.repeats_left.fetch_add(1, Ordering::SeqCst);
            let repeat = repeats.send((Instant::now() + delay, reply));
            repeat.expect("the repeating thread reads until this one has ended");
        }
    });
    let mut state = wire.lock();
    (state.has_server_ended, state.unanswered) = (true, 0);
    if state.held.is_none() {
        finish_sending(&wire.client);
    }
}

fn repeat(orders: &Orders, wire: &Wire, inbox: &Receiver<(Instant, Vec<u8>)>) {
    for (due, reply) in inbox {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        wire.say(&reply);
        orders.repeats_left.fetch_sub(1, Ordering::SeqCst);
    }
}
