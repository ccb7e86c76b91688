//! Unsolicited replies: repeated by a proxy, or sent by the server.

use crate::clock::{MICROS, MILLIS};
use crate::context::Context;
use crate::queue::Event;

/// An unsolicited reply in flight to the client.
#[derive(Debug)]
pub(crate) struct Stray {
    pub(crate) connection: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) what: What,
}

/// The kind of an unsolicited reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A repeated reply.
    Repeated,
    /// An error.
    Error,
    /// A push message of RESP3, or an attribute of the next reply.
    Push,
}

/// Errors that a server sends without a command.
const ERRORS: [&[u8]; 5] = [
    b"-ERR max number of clients reached\r\n",
    b"-DENIED Redis is running in protected mode\r\n",
    b"-ERR Protocol error: expected '$', got ' '\r\n",
    b"-LOADING Redis is loading the dataset in memory\r\n",
    b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
];

/// Messages that a RESP3 server may send at any time.
const PUSHES: [&[u8]; 3] = [
    b">2\r\n$10\r\ninvalidate\r\n*1\r\n$6\r\nlock:0\r\n",
    b">3\r\n+message\r\n+channel\r\n:1\r\n",
    b"|1\r\n+key-popularity\r\n,0.5\r\n",
];

impl Stray {
    /// An error, or a message of RESP3.
    pub(crate) fn unasked(context: &mut Context, connection: usize) -> Self {
        let (what, texts) = match context.random.chance(500) {
            true => (What::Error, &ERRORS[..]),
            false => (What::Push, &PUSHES[..]),
        };
        let bytes = context.random.pick(texts).to_vec();
        Self {
            connection,
            bytes,
            what,
        }
    }

    /// Is it an error? An error does not say which command it is the reply to.
    pub(crate) fn is_error(&self) -> bool {
        self.bytes.starts_with(b"-")
    }
}

impl Context {
    /// Sends an unsolicited reply.
    pub(crate) fn send_stray(&mut self, stray: Stray) {
        let most = self.random.pick(&[
            100 * MICROS,
            5 * MILLIS,
            60 * MILLIS,
            60 * MILLIS,
            400 * MILLIS,
        ]);
        let delay = self.random.below(most);
        self.queue.after(
            delay,
            Event::Stray {
                stray: self.strays.len(),
            },
        );
        self.strays.push(stray);
    }

    /// A node has sent a reply, which on some connections arrives a second time.
    pub(crate) fn repeat(&mut self, connection: usize, reply: &[u8]) {
        let is_repeating = self.network.connections[connection].repeated_until > self.queue.now();
        if is_repeating && !reply.is_empty() && self.random.chance(700) {
            let stray = Stray {
                connection,
                bytes: reply.to_vec(),
                what: What::Repeated,
            };
            self.send_stray(stray);
        }
    }
}
