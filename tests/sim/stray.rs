//! Replies that nobody asked for: repeated by a proxy, or of the server's own accord.

use crate::clock::{MICROS, MILLIS};
use crate::queue::Event;
use crate::stage::Stage;

/// A reply that nobody asked for, on its way to the client.
#[derive(Debug)]
pub(crate) struct Stray {
    pub(crate) connection: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) what: What,
}

/// What it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// An answer that has been given before.
    Repeated,
    /// An error.
    Error,
    /// A message of RESP3 that is no reply, or an attribute of the next one.
    Push,
}

/// Errors of a server that is asked for nothing.
const ERRORS: [&[u8]; 5] = [
    b"-ERR max number of clients reached\r\n",
    b"-DENIED Redis is running in protected mode\r\n",
    b"-ERR Protocol error: expected '$', got ' '\r\n",
    b"-LOADING Redis is loading the dataset in memory\r\n",
    b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
];

/// What a server of RESP3 may say at any time.
const PUSHES: [&[u8]; 3] = [
    b">2\r\n$10\r\ninvalidate\r\n*1\r\n$6\r\nlock:0\r\n",
    b">3\r\n+message\r\n+channel\r\n:1\r\n",
    b"|1\r\n+key-popularity\r\n,0.5\r\n",
];

impl Stray {
    /// An error, or one of RESP3's messages.
    pub(crate) fn unasked(stage: &mut Stage, connection: usize) -> Self {
        let (what, texts) = match stage.random.chance(500) {
            true => (What::Error, &ERRORS[..]),
            false => (What::Push, &PUSHES[..]),
        };
        let bytes = stage.random.pick(texts).to_vec();
        Self { connection, bytes, what }
    }

    /// Is it an error? No error says which command it answers.
    pub(crate) fn is_error(&self) -> bool {
        self.bytes.starts_with(b"-")
    }
}

impl Stage {
    /// Sends a reply that nobody asked for.
    pub(crate) fn send_stray(&mut self, stray: Stray) {
        let most =
            self.random.pick(&[100 * MICROS, 5 * MILLIS, 60 * MILLIS, 60 * MILLIS, 400 * MILLIS]);
        let delay = self.random.below(most);
        self.queue.after(delay, Event::Stray { stray: self.strays.len() });
        self.strays.push(stray);
    }

    /// A node has answered. On some connections the answer arrives once more.
    pub(crate) fn repeat(&mut self, connection: usize, reply: &[u8]) {
        let is_repeating = self.network.connections[connection].repeated_until > self.queue.now();
        if is_repeating && !reply.is_empty() && self.random.chance(700) {
            let stray = Stray { connection, bytes: reply.to_vec(), what: What::Repeated };
            self.send_stray(stray);
        }
    }
}
