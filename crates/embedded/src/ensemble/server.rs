//! An ensemble behind its sockets: bytes to frames, and frames to bytes.

use super::model::{ConnectionId, Model, Output};
use crate::clock;
use crate::server::{ClientSocket, Connections, Service};
use redlatch_zookeeper::jute::frame;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The model of a server, which stays when the server stops.
#[derive(Clone, Debug)]
pub(super) struct SharedModel(Arc<Mutex<Model>>);

impl SharedModel {
    pub(super) fn new(model: Model) -> Self {
        Self(Arc::new(Mutex::new(model)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Model> {
        // A request that panicked, which would be a mistake of ours, has ended half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A server with this model starts.
    pub(super) fn restarted(&self) -> Self {
        self.lock().restart(clock::now());
        self.clone()
    }

    /// Sends what the model has to send, and closes what it closes.
    fn deliver(&mut self, connections: &mut Connections<EnsembleClient>) {
        loop {
            let Some(output) = self.lock().poll() else {
                return;
            };
            let (Output::Send(id, _) | Output::Close(id)) = output;
            let Some((socket, client)) = connections.get_mut(&id.0) else {
                continue;
            };
            match output {
                Output::Send(_, bytes) => socket.outbound.extend_from_slice(&bytes),
                Output::Close(_) => client.is_ending = true,
            }
            if socket.flush().is_err() || client.is_ending && socket.outbound.is_empty() {
                self.close(id.0, connections);
            }
        }
    }
}

impl Service for SharedModel {
    type Client = EnsembleClient;
    const NAME: &'static str = "redlatch-zookeeper";

    fn patience(&self) -> Option<Duration> {
        Some(self.lock().next_deadline().since(clock::now()))
    }

    fn connect(&mut self) -> (usize, EnsembleClient) {
        (self.lock().connect().0, EnsembleClient::default())
    }

    fn disconnect(&mut self, id: usize, _: &EnsembleClient) {
        self.lock().disconnect(ConnectionId(id));
    }

    /// Carries out what a connection has received.
    fn serve(&mut self, id: usize, connections: &mut Connections<EnsembleClient>) {
        while let Some((socket, client)) = connections.get_mut(&id) {
            match client.poll(socket) {
                Ok(None) => return,
                Ok(Some(Inbound::Frame(frame))) => {
                    self.lock().received(clock::now(), ConnectionId(id), &frame);
                }
                Ok(Some(Inbound::FourLetters(word))) => {
                    self.lock().four_letters(ConnectionId(id), word);
                }
                Err(_) => return self.close(id, connections),
            }
            self.deliver(connections);
        }
    }

    fn advance(&mut self, connections: &mut Connections<EnsembleClient>) {
        self.lock().advance(clock::now());
        self.deliver(connections);
    }
}

// One connection to an embedded ensemble: bytes to frames.

/// The longest frame that is accepted, as by ZooKeeper by default (`jute.maxbuffer`).
const FRAME_MAX: usize = 1_048_575;

/// The bytes of a frame's length, or of a command of four letters.
const WORD: usize = 4;

/// One connection, apart from its bytes.
#[derive(Default)]
pub(super) struct EnsembleClient {
    /// Was the first frame received?
    is_greeted: bool,
    /// The connection ends when all was sent.
    is_ending: bool,
}

/// What a client has sent.
#[derive(Debug, PartialEq)]
pub(super) enum Inbound {
    /// A frame, without its length.
    Frame(Vec<u8>),
    /// A command of four letters.
    FourLetters([u8; WORD]),
}

impl EnsembleClient {
    /// What the client sent next. `None`: nothing before the socket can be read or written again.
    /// An error means that the connection is to be closed.
    fn poll<S: Read + Write>(
        &mut self,
        socket: &mut ClientSocket<S>,
    ) -> io::Result<Option<Inbound>> {
        let mut buffer = [0; 16 * 1024];
        loop {
            socket.flush()?;
            if self.is_ending && socket.outbound.is_empty() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            if socket.is_full() || self.is_ending {
                return Ok(None);
            }
            if let Some(inbound) = self.take(socket)? {
                return Ok(Some(inbound));
            }
            if !socket.receive(&mut buffer)? {
                return Ok(None);
            }
        }
    }

    fn take<S>(&mut self, socket: &mut ClientSocket<S>) -> io::Result<Option<Inbound>> {
        let rest = &socket.inbound[socket.used..];
        let Some(&word) = rest.first_chunk::<WORD>() else {
            return Ok(None);
        };
        if !self.is_greeted && word.iter().all(u8::is_ascii_lowercase) {
            socket.used += WORD;
            return Ok(Some(Inbound::FourLetters(word)));
        }
        // A negative length is a large one here.
        if u32::from_be_bytes(word) as usize > FRAME_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let found = frame(rest).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        let Some((body, taken)) = found else {
            return Ok(None);
        };
        let inbound = Inbound::Frame(body.to_vec());
        socket.used += taken;
        self.is_greeted = true;
        Ok(Some(inbound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that sends these pieces and then nothing, and reads all.
    struct Pieces(Vec<Vec<u8>>);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some(piece) = self.0.pop() else {
                return Err(io::ErrorKind::WouldBlock.into());
            };
            buffer[..piece.len()].copy_from_slice(&piece);
            Ok(piece.len())
        }
    }

    impl Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn received(pieces: &[&[u8]]) -> io::Result<Vec<Inbound>> {
        let pieces = pieces.iter().rev().map(|piece| piece.to_vec()).collect();
        let (mut socket, mut client) =
            (ClientSocket::new(Pieces(pieces)), EnsembleClient::default());
        std::iter::from_fn(|| client.poll(&mut socket).transpose()).collect()
    }

    #[test]
    fn frames_are_the_same_however_they_are_cut() {
        let stream = [0, 0, 0, 2, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1, 9];
        let expected = [vec![7, 8], vec![], vec![9]].map(Inbound::Frame);
        for cut in 1..stream.len() {
            assert_eq!(
                received(&[&stream[..cut], &stream[cut..]]).unwrap(),
                expected,
                "{cut}"
            );
        }
    }

    #[test]
    fn four_letters_count_at_the_beginning_only() {
        assert_eq!(
            received(&[b"ru", b"ok"]).unwrap(),
            [Inbound::FourLetters(*b"ruok")]
        );
        assert!(received(&[&[0, 0, 0, 0], b"ruok"]).is_err());
        assert!(received(&[b"ru\n\n"]).is_err());
    }

    #[test]
    fn long_frames_are_refused_before_they_are_there() {
        assert!(
            received(&[&1_048_575_u32.to_be_bytes()])
                .unwrap()
                .is_empty()
        );
        assert!(received(&[&1_048_576_u32.to_be_bytes()]).is_err());
        assert!(received(&[&(-1_i32).to_be_bytes()]).is_err());
    }
}
