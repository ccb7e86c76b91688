//! A node behind its sockets: bytes in, commands, replies and push messages out.

use super::clock;
use super::keyspace::Keyspace;
use super::nodes::NodeOptions;
use super::reply::OwnedReply;
use super::server::{ClientSocket, Connections, Service, UNREAD_MAX};
use super::session::ConnectionState;
use redlatch_protocol::resp::{Decoder, Reply};
use redlatch_protocol::time::Time;
use std::io::{self, Read, Write};
use std::time::Duration;

/// How often a node looks for tracked keys that have expired, as often as Redis by default.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(100);

/// A node that runs: its clock is the process's.
pub(super) struct RunningNode {
    keyspace: Keyspace,
    next_expiry: Time,
}

impl RunningNode {
    /// Its uptime counts from now.
    pub(super) fn new(options: NodeOptions) -> Self {
        let now = clock::now();
        let options = NodeOptions {
            started: now,
            ..options
        };
        let options = options.wall_clock(now, clock::wall_micros());
        Self {
            keyspace: Keyspace::new(options),
            next_expiry: now,
        }
    }

    /// Sends each message to its connection, if that is still there. One whose client reads too
    /// little is closed.
    fn deliver(&mut self, pushes: Vec<Push>, connections: &mut Connections<NodeClient>) {
        for (id, message) in pushes {
            let Some((socket, client)) = connections.get_mut(&(id as usize)) else {
                continue;
            };
            message.encode(client.session.protocol, &mut socket.outbound);
            if socket.flush().is_err() || socket.outbound.len() > 2 * UNREAD_MAX {
                self.close(id as usize, connections);
            }
        }
    }
}

impl Service for RunningNode {
    type Client = NodeClient;
    const NAME: &'static str = "redlatch-node";

    fn patience(&self) -> Option<Duration> {
        self.keyspace.is_tracking().then_some(EXPIRY_INTERVAL)
    }

    fn connect(&mut self) -> (usize, NodeClient) {
        let session = self.keyspace.connect();
        let decoder = Decoder::new();
        (
            session.id as usize,
            NodeClient {
                session,
                decoder,
                interrupted: false,
                refused: false,
            },
        )
    }

    fn disconnect(&mut self, _: usize, client: &NodeClient) {
        self.keyspace.disconnect(&client.session);
    }

    fn serve(&mut self, id: usize, connections: &mut Connections<NodeClient>) {
        let Some((socket, client)) = connections.get_mut(&id) else {
            return;
        };
        let mut pushes = Vec::new();
        if !client
            .progress(socket, &mut self.keyspace, &mut pushes)
            .unwrap_or(false)
        {
            self.close(id, connections);
        }
        self.deliver(pushes, connections);
        while let Some(id) = self.keyspace.poll_killed() {
            self.close(id as usize, connections);
        }
    }

    /// Reports tracked keys that have expired, unless the last look was less than an interval ago.
    fn advance(&mut self, connections: &mut Connections<NodeClient>) {
        let now = clock::now();
        if self.keyspace.is_tracking() && now >= self.next_expiry {
            self.next_expiry = now.after(EXPIRY_INTERVAL);
            self.keyspace.expire_tracked(now);
            let pushes = std::iter::from_fn(|| self.keyspace.poll_push()).collect();
            self.deliver(pushes, connections);
        }
    }
}

/// A push message, and the id of the connection that it is for.
type Push = (i64, OwnedReply);

/// One connection, apart from its bytes.
pub(super) struct NodeClient {
    session: ConnectionState,
    decoder: Decoder,
    /// There may be commands that were not run because too many replies were pending.
    interrupted: bool,
    /// The client sent bytes that are not a command, and the error was sent.
    refused: bool,
}

impl NodeClient {
    /// Reads and runs commands and writes replies until the socket would block. Returns whether the
    /// connection stays open. Adds the messages for other connections to `pushes`.
    fn progress<S: Read + Write>(
        &mut self,
        socket: &mut ClientSocket<S>,
        keyspace: &mut Keyspace,
        pushes: &mut Vec<Push>,
    ) -> io::Result<bool> {
        let mut buffer = [0; 16 * 1024];
        loop {
            socket.flush()?;
            if self.session.is_closing || self.refused {
                return Ok(false);
            }
            if socket.is_full() {
                return Ok(true);
            }
            if !std::mem::take(&mut self.interrupted) && !socket.receive(&mut buffer)? {
                return Ok(true);
            }
            self.run_commands(socket, keyspace, pushes);
        }
    }

    fn run_commands<S>(
        &mut self,
        socket: &mut ClientSocket<S>,
        keyspace: &mut Keyspace,
        pushes: &mut Vec<Push>,
    ) {
        let Self {
            session,
            decoder,
            interrupted,
            ..
        } = self;
        let ClientSocket {
            inbound,
            used,
            outbound,
            ..
        } = socket;
        let outcome = each_command(decoder, inbound, used, |words| {
            let reply = keyspace.execute(clock::now(), session, words);
            reply.encode(session.protocol, outbound);
            while let Some((id, message)) = keyspace.poll_push() {
                if id == session.id {
                    message.encode(session.protocol, outbound);
                } else {
                    pushes.push((id, message));
                }
            }
            *interrupted = outbound.len() > UNREAD_MAX;
            !*interrupted && !session.is_closing
        });
        if let Err(fault) = outcome {
            let reply = OwnedReply::Error(format!("ERR Protocol error: {fault}").into_bytes());
            reply.encode(session.protocol, outbound);
            self.refused = true;
        }
    }
}

// Parses the bytes that a client sent into the words of its commands.
//
// A command is an array of bulk strings or an inline command: a line of words, as typed into `nc`
// (without quotes, which Redis also supports). The limits of [`resp`](redlatch_protocol::resp)
// also apply to commands: an embedded node accepts no value above 64 KiB.

/// The longest inline command, in bytes: 64 KiB, as in Redis.
const INLINE_MAX: usize = 64 * 1024;

/// Calls `run` with the words of each complete command in `bytes`, until it returns `false`. The
/// first `used` bytes were run before.
///
/// An error describes the malformed bytes. The bytes after them cannot be understood.
fn each_command(
    decoder: &mut Decoder,
    bytes: &[u8],
    used: &mut usize,
    mut run: impl FnMut(&[&[u8]]) -> bool,
) -> Result<(), String> {
    while *used < bytes.len() {
        let input = &bytes[*used..];
        let next = match input[0] {
            b'*' => match decoder.decode(input).map_err(|error| error.to_string())? {
                Some((reply, length)) => Some((words_of_array(reply)?, length)),
                None => None,
            },
            _ => words_of_line(input)?,
        };
        let Some((words, length)) = next else { break };
        // An empty line or array is not a command and gets no reply.
        let go_on = words.is_empty() || run(&words);
        *used += length;
        if !go_on {
            break;
        }
    }
    Ok(())
}

type Words<'a> = Vec<&'a [u8]>;

/// A null array, the only other value that begins with `*`, counts as an empty array.
fn words_of_array(reply: Reply<'_>) -> Result<Words<'_>, String> {
    let Reply::Array(elements) = reply else {
        return Ok(Vec::new());
    };
    elements
        .iter()
        .map(|element| match element {
            Reply::Bulk(word) => Ok(word),
            _ => Err("expected '$', got another type".to_owned()),
        })
        .collect()
}

/// The words of the first line of `input`, and the length of this line with its end.
fn words_of_line(input: &[u8]) -> Result<Option<(Words<'_>, usize)>, String> {
    let end = input
        .iter()
        .take(INLINE_MAX)
        .position(|byte| *byte == b'\n');
    match end {
        Some(end) => {
            let words = input[..end].split(u8::is_ascii_whitespace);
            Ok(Some((
                words.filter(|word| !word.is_empty()).collect(),
                end + 1,
            )))
        }
        None if input.len() >= INLINE_MAX => Err("too big inline request".to_owned()),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands in `chunks`, each as its words joined by `,`.
    fn commands(chunks: &[&[u8]]) -> Result<Vec<String>, String> {
        let mut decoder = Decoder::new();
        let mut bytes = Vec::new();
        let mut used = 0;
        let mut seen = Vec::new();
        for chunk in chunks {
            bytes.drain(..std::mem::take(&mut used));
            bytes.extend_from_slice(chunk);
            each_command(&mut decoder, &bytes, &mut used, |words| {
                let words: Vec<_> = words.iter().map(|w| String::from_utf8_lossy(w)).collect();
                seen.push(words.join(","));
                true
            })?;
        }
        Ok(seen)
    }

    #[test]
    fn commands_do_not_depend_on_how_the_bytes_were_split() {
        let bytes = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n\r\n*0\r\n*-1\r\n*1\r\n$4\r\nQUIT\r\n";
        let whole = commands(&[bytes]).unwrap();
        assert_eq!(whole, ["GET,k", "PING", "QUIT"]);
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(commands(&single).unwrap(), whole);
        for cut in 0..bytes.len() {
            let (before, after) = bytes.split_at(cut);
            assert_eq!(commands(&[before, after]).unwrap(), whole);
        }
    }

    #[test]
    fn bytes_that_are_no_command_are_an_error_that_says_why() {
        assert!(
            commands(&[b"*1\r\n:4\r\n"])
                .unwrap_err()
                .contains("expected '$'")
        );
        assert!(commands(&[b"*x\r\n"]).is_err());
        assert!(
            commands(&[&[b'a'; INLINE_MAX]])
                .unwrap_err()
                .contains("too big")
        );
    }

    #[test]
    fn no_command_runs_after_one_that_returned_false() {
        let mut seen = 0;
        let count = |_: &[&[u8]]| {
            seen += 1;
            false
        };
        each_command(&mut Decoder::new(), b"QUIT\r\nPING\r\n", &mut 0, count).unwrap();
        assert_eq!(seen, 1);
    }
}
