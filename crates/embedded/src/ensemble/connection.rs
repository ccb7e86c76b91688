//! One connection to an embedded ensemble: bytes to frames, and frames to bytes.

use std::io::{self, Read, Write};

use redlatch_zookeeper::jute::frame;

/// The longest frame that is accepted, as by ZooKeeper by default (`jute.maxbuffer`).
const FRAME_MAX: usize = 1_048_575;

/// The limit of pending replies to a client that does not read, in bytes: 1 MiB. Above it, no more
/// requests of this client are carried out.
const UNREAD_MAX: usize = 1024 * 1024;

/// The bytes of a frame's length, or of a command of four letters.
const WORD: usize = 4;

pub(super) struct Connection<S> {
    stream: S,
    inbound: Vec<u8>,
    /// How much of `inbound` was taken.
    used: usize,
    /// What the kernel has not taken yet.
    outbound: Vec<u8>,
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

impl<S: Read + Write> Connection<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            inbound: Vec::new(),
            used: 0,
            outbound: Vec::new(),
            is_greeted: false,
            is_ending: false,
        }
    }

    /// What the client sent next. `None`: nothing before the socket can be read or written again.
    /// An error means that the connection is to be closed.
    pub(super) fn poll(&mut self) -> io::Result<Option<Inbound>> {
        let mut chunk = [0; 16 * 1024];
        loop {
            self.flush()?;
            if self.outbound.len() > UNREAD_MAX || (self.is_ending && !self.outbound.is_empty()) {
                // When the client reads again, a writable event calls this again.
                return Ok(None);
            }
            if self.has_ended() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            if let Some(inbound) = self.take()? {
                return Ok(Some(inbound));
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    self.inbound.drain(..self.used);
                    self.used = 0;
                    self.inbound.extend_from_slice(&chunk[..read]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self) -> io::Result<Option<Inbound>> {
        let rest = &self.inbound[self.used..];
        let Some(&word) = rest.first_chunk::<WORD>() else { return Ok(None) };
        if !self.is_greeted && word.iter().all(u8::is_ascii_lowercase) {
            self.used += WORD;
            return Ok(Some(Inbound::FourLetters(word)));
        }
        // A negative length is a large one here.
        if u32::from_be_bytes(word) as usize > FRAME_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let found = frame(rest).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        let Some((body, taken)) = found else { return Ok(None) };
        let inbound = Inbound::Frame(body.to_vec());
        self.used += taken;
        self.is_greeted = true;
        Ok(Some(inbound))
    }

    /// Sends these bytes, now or when the client reads.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.outbound.extend_from_slice(bytes);
    }

    /// Ends the connection when all was sent.
    pub(super) fn end(&mut self) {
        self.is_ending = true;
    }

    /// Is all sent, and is nothing to follow?
    pub(super) fn has_ended(&self) -> bool {
        self.is_ending && self.outbound.is_empty()
    }

    /// Writes what the kernel takes.
    pub(super) fn flush(&mut self) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that sends these pieces and then nothing, and reads all.
    struct Pieces(Vec<Vec<u8>>);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some(piece) = self.0.pop() else { return Err(io::ErrorKind::WouldBlock.into()) };
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
        let mut connection = Connection::new(Pieces(pieces));
        std::iter::from_fn(|| connection.poll().transpose()).collect()
    }

    #[test]
    fn frames_are_the_same_however_they_are_cut() {
        let stream = [0, 0, 0, 2, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1, 9];
        let expected = [vec![7, 8], vec![], vec![9]].map(Inbound::Frame);
        for cut in 1..stream.len() {
            assert_eq!(received(&[&stream[..cut], &stream[cut..]]).unwrap(), expected, "{cut}");
        }
    }

    #[test]
    fn four_letters_count_at_the_beginning_only() {
        assert_eq!(received(&[b"ru", b"ok"]).unwrap(), [Inbound::FourLetters(*b"ruok")]);
        assert!(received(&[&[0, 0, 0, 0], b"ruok"]).is_err());
        assert!(received(&[b"ru\n\n"]).is_err());
    }

    #[test]
    fn long_frames_are_refused_before_they_are_there() {
        assert!(received(&[&1_048_575_u32.to_be_bytes()]).unwrap().is_empty());
        assert!(received(&[&1_048_576_u32.to_be_bytes()]).is_err());
        assert!(received(&[&(-1_i32).to_be_bytes()]).is_err());
    }
}
