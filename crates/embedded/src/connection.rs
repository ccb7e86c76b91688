//! One connection to an embedded node: bytes in, commands, replies and push messages out.

use super::clock;
use super::keyspace::Keyspace;
use super::reply::OwnedReply;
use super::session::ConnectionState;
use redlatch_protocol::resp::{Decoder, Reply};
use std::io::{self, Read, Write};

/// The limit of pending replies to a client that does not read, in bytes: 1 MiB. Above it, the node
/// runs no more commands of this client; above twice as much, push messages close the connection.
const UNREAD_MAX: usize = 1024 * 1024;

/// A push message, and the id of the connection that it is for.
pub(super) type Push = (i64, OwnedReply);

pub(super) struct Connection<S> {
    stream: S,
    session: ConnectionState,
    inbound: Inbound,
    /// Encoded replies that the kernel has not taken yet.
    outbound: Vec<u8>,
    /// `inbound` may contain commands that were not run because too many replies were pending.
    interrupted: bool,
    /// The client sent bytes that are no command, and the error was sent.
    refused: bool,
}

impl<S: Read + Write> Connection<S> {
    pub(super) fn new(stream: S, session: ConnectionState) -> Self {
        let (inbound, outbound) = (Inbound::new(), Vec::new());
        Self { stream, session, inbound, outbound, interrupted: false, refused: false }
    }

    pub(super) fn session(&self) -> &ConnectionState {
        &self.session
    }

    /// Reads and runs commands and writes replies until the socket would block. Returns whether the
    /// connection stays open. Adds the messages for other connections to `pushes`.
    pub(super) fn progress(
        &mut self,
        keyspace: &mut Keyspace,
        pushes: &mut Vec<Push>,
    ) -> io::Result<bool> {
        let mut chunk = [0; 16 * 1024];
        loop {
            self.flush()?;
            if self.session.is_closing() || self.refused {
                return Ok(false);
            }
            if self.outbound.len() > UNREAD_MAX {
                // When the client reads again, a writable event calls this again.
                return Ok(true);
            }
            if std::mem::take(&mut self.interrupted) {
                self.run_commands(keyspace, pushes);
                continue;
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(false),
                Ok(read) => {
                    self.inbound.receive(&chunk[..read]);
                    self.run_commands(keyspace, pushes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a message that is no reply. An error, also if the client reads too little, means that
    /// the connection is to be closed.
    pub(super) fn push(&mut self, message: &OwnedReply) -> io::Result<()> {
        message.encode(self.session.protocol(), &mut self.outbound);
        self.flush()?;
        if self.outbound.len() > 2 * UNREAD_MAX {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(())
    }

    fn run_commands(&mut self, keyspace: &mut Keyspace, pushes: &mut Vec<Push>) {
        let Self { session, inbound, outbound, interrupted, .. } = self;
        let outcome = inbound.each_command(|words| {
            let reply = keyspace.execute(clock::now(), session, words);
            reply.encode(session.protocol(), outbound);
            while let Some((id, message)) = keyspace.poll_push() {
                if id == session.id() {
                    message.encode(session.protocol(), outbound);
                } else {
                    pushes.push((id, message));
                }
            }
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

// Parses the bytes that a client sent into the words of its commands.

/// The longest inline command, in bytes: 64 KiB, as in Redis.
const INLINE_MAX: usize = 64 * 1024;

/// The bytes that one connection has received and whose commands were not run yet.
///
/// A command is an array of bulk strings or an inline command: a line of words, as typed into `nc`
/// (without quotes, which Redis also supports). The limits of [`resp`](redlatch_protocol::resp)
/// also apply to commands: an embedded node accepts no value above 64 KiB.
#[derive(Debug)]
pub(super) struct Inbound {
    bytes: Vec<u8>,
    /// The start of the first command that was not run.
    start: usize,
    decoder: Decoder,
}

impl Inbound {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), start: 0, decoder: Decoder::new() }
    }

    /// Appends bytes that have arrived.
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Calls `run` with the words of each complete command, until it returns `false`.
    ///
    /// An error describes the malformed bytes. The bytes after them cannot be understood.
    pub(super) fn each_command(
        &mut self,
        mut run: impl FnMut(&[&[u8]]) -> bool,
    ) -> Result<(), String> {
        while self.start < self.bytes.len() {
            let input = &self.bytes[self.start..];
            let next = match input[0] {
                b'*' => match self.decoder.decode(input).map_err(|error| error.to_string())? {
                    Some((reply, used)) => Some((words_of_array(reply)?, used)),
                    None => None,
                },
                _ => words_of_line(input)?,
            };
            let Some((words, used)) = next else { break };
            // An empty line or array is no command and gets no reply.
            let go_on = words.is_empty() || run(&words);
            self.start += used;
            if !go_on {
                break;
            }
        }
        Ok(())
    }
}

/// The name of a command and its arguments.
type Words<'a> = Vec<&'a [u8]>;

/// A null array, the only other value that begins with `*`, counts as an empty array.
fn words_of_array(reply: Reply<'_>) -> Result<Words<'_>, String> {
    let Reply::Array(elements) = reply else { return Ok(Vec::new()) };
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
    let end = input.iter().take(INLINE_MAX).position(|byte| *byte == b'\n');
    match end {
        Some(end) => {
            let words = input[..end].split(u8::is_ascii_whitespace);
            Ok(Some((words.filter(|word| !word.is_empty()).collect(), end + 1)))
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
        let mut inbound = Inbound::new();
        let mut seen = Vec::new();
        for chunk in chunks {
            inbound.receive(chunk);
            inbound.each_command(|words| {
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
        assert!(commands(&[b"*1\r\n:4\r\n"]).unwrap_err().contains("expected '$'"));
        assert!(commands(&[b"*x\r\n"]).is_err());
        assert!(commands(&[&[b'a'; INLINE_MAX]]).unwrap_err().contains("too big"));
    }

    #[test]
    fn no_command_runs_after_one_that_returned_false() {
        let mut inbound = Inbound::new();
        inbound.receive(b"QUIT\r\nPING\r\n");
        let mut seen = 0;
        let mut count = |_: &[&[u8]]| {
            seen += 1;
            false
        };
        inbound.each_command(&mut count).unwrap();
        assert_eq!(seen, 1);
    }
}
