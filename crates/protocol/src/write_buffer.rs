//! Bytes that are to be written to a peer, which may take them slowly.

/// How much memory is kept when all is written: that of a burst is freed.
const KEPT: usize = 32 * 1024;

/// The output of a connection.
#[derive(Debug, Default)]
pub struct WriteBuffer {
    bytes: Vec<u8>,
    written: usize,
}

impl WriteBuffer {
    /// The bytes to write next.
    pub fn unwritten(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// What is appended to this is written behind the rest.
    pub fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The first `count` bytes were written.
    pub fn wrote(&mut self, count: usize) {
        self.written += count;
        debug_assert!(
            self.written <= self.bytes.len(),
            "no more is written than there was"
        );
        if self.written >= self.bytes.len() {
            self.clear();
            self.bytes.shrink_to(KEPT);
        } else if self.written > self.bytes.len() / 2 {
            // A peer that reads slowly may never read everything, and the written bytes must not
            // accumulate. Fewer bytes are moved than were written, so this costs no more than the
            // writing did.
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }

    /// Drops what is not written.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.written = 0;
    }

    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}
