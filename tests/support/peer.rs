//! A listener that is not Redis: it is silent, closes connections, sends single bytes, replies with
//! any bytes, or speaks another protocol.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::acceptor::{Acceptor, Streams, mark_for_reset};
use super::cli::{Value, parse};
use super::transport::{Front, scheme};

/// A listener on a free port of 127.0.0.1 that treats each connection by a script.
pub struct Peer {
    acceptor: Option<Acceptor>,
    port: u16,
    front: Front,
    streams: Arc<Streams>,
    accepted: Arc<AtomicUsize>,
}

impl Peer {
    /// Runs `script` for each connection, on a thread of its own. When it returns, the connection
    /// is closed.
    #[track_caller]
    pub fn start(script: impl Fn(&mut Conversation) + Send + Sync + 'static) -> Self {
        let script = Arc::new(script);
        let streams = Arc::new(Streams::default());
        let accepted = Arc::new(AtomicUsize::new(0));
        let all = Arc::clone(&streams);
        let count = Arc::clone(&accepted);
        let acceptor = Acceptor::start(0, move |stream| {
            let _ = stream.set_nodelay(true);
            let number = count.fetch_add(1, Ordering::SeqCst);
            let mut conversation = Conversation {
                stream: all.add(stream),
                number,
                received: Vec::new(),
            };
            let script = Arc::clone(&script);
            thread::spawn(move || script(&mut conversation));
        });
        let acceptor = acceptor.expect("the loopback has a free port");
        let port = acceptor.port();
        let front = Front::start(acceptor.port());
        Self {
            port,
            front,
            acceptor: Some(acceptor),
            streams,
            accepted,
        }
    }

    /// Accepts connections and sends nothing.
    pub fn silent() -> Self {
        Self::start(Conversation::stay_silent)
    }

    /// Closes each connection at once.
    pub fn closing() -> Self {
        Self::start(|_| {})
    }

    /// Resets each connection at once.
    pub fn resetting() -> Self {
        Self::start(Conversation::reset)
    }

    /// Replies to each command with the same bytes.
    pub fn answering(bytes: &[u8]) -> Self {
        let bytes = bytes.to_vec();
        Self::start(
            move |conversation| {
                while conversation.read_command().is_some() && conversation.send(&bytes) {}
            },
        )
    }

    /// Waits for a command, sends these bytes, and closes.
    pub fn answering_once(bytes: &[u8]) -> Self {
        let bytes = bytes.to_vec();
        Self::start(move |conversation| {
            let _ = conversation.read_command();
            conversation.send(&bytes);
        })
    }

    /// An HTTP server, which replies with an error.
    pub fn http() -> Self {
        Self::start(|conversation| {
            let _ = conversation.read_some();
            conversation.send(
                b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\
                  Content-Length: 15\r\n\r\n400 Bad Request",
            );
        })
    }

    /// An SSH server, which sends first.
    pub fn ssh() -> Self {
        Self::start(|conversation| {
            conversation.send(b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n");
            conversation.stay_silent();
        })
    }

    /// A TLS server that gets plain text: it sends a fatal alert, `unexpected_message`.
    pub fn tls_alert() -> Self {
        Self::start(|conversation| {
            let _ = conversation.read_some();
            conversation.send(&[0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x0a]);
        })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// `redis://127.0.0.1:PORT`, or `rediss` and the port of a terminator in front of it.
    pub fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", scheme(), self.front.port())
    }

    /// How many connections were made to it so far.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.acceptor = None;
        // Scripts that wait for bytes read the end of the stream and return.
        self.streams.cut();
    }
}

/// One connection to a [`Peer`], as its script sees it.
pub struct Conversation {
    stream: Arc<TcpStream>,
    number: usize,
    received: Vec<u8>,
}

impl Conversation {
    /// How many connections came before this one.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The next bytes that arrive; empty at the end of the stream.
    pub fn read_some(&mut self) -> Vec<u8> {
        if self.received.is_empty() {
            self.receive();
        }
        std::mem::take(&mut self.received)
    }

    /// The words of the next command; `None` at the end of the stream.
    pub fn read_command(&mut self) -> Option<Vec<Vec<u8>>> {
        loop {
            if let Some((value, used)) = parse(&self.received) {
                self.received.drain(..used);
                let Value::Array(words) = value else {
                    panic!("{value:?} is not a command")
                };
                let word = |word| match word {
                    Value::Bulk(bytes) => bytes,
                    other => panic!("{other:?} in a command"),
                };
                return Some(words.into_iter().map(word).collect());
            }
            if !self.receive() {
                return None;
            }
        }
    }

    fn receive(&mut self) -> bool {
        let mut chunk = [0; 16 * 1024];
        match (&*self.stream).read(&mut chunk) {
            Ok(read @ 1..) => {
                self.received.extend_from_slice(&chunk[..read]);
                true
            }
            _ => false,
        }
    }

    /// Sends all of `bytes`. Returns whether that worked.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        (&*self.stream).write_all(bytes).is_ok()
    }

    /// Sends `bytes` one at a time with a pause after each.
    pub fn trickle(&mut self, bytes: &[u8], pause: Duration) -> bool {
        bytes.iter().all(|byte| {
            let sent = self.send(&[*byte]);
            thread::sleep(pause);
            sent
        })
    }

    /// Reads everything and sends nothing, until the peer closes the connection.
    pub fn stay_silent(&mut self) {
        while !self.read_some().is_empty() {}
    }

    /// Makes the close at the end of the script a reset.
    pub fn reset(&mut self) {
        mark_for_reset(&self.stream);
    }
}
