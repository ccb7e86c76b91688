//! Values to bytes.

use super::{JuteError, NULL, SENT_MAX};

/// Writes one frame behind what `out` has. Its length is known at the end, and written then.
#[derive(Debug)]
pub struct FrameWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Where the frame begins, with its length.
    start: usize,
}

impl<'a> FrameWriter<'a> {
    /// Begins a frame. It is complete with [`finish`](Self::finish).
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        Self { out, start }
    }

    /// Appends four bytes.
    pub fn int(&mut self, value: i32) -> &mut Self {
        self.out.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// Appends eight bytes.
    pub fn long(&mut self, value: i64) -> &mut Self {
        self.out.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// Appends one byte.
    pub fn boolean(&mut self, value: bool) -> &mut Self {
        self.out.push(value.into());
        self
    }

    /// Appends a buffer that is not null.
    pub fn buffer(&mut self, bytes: &[u8]) -> &mut Self {
        // A buffer whose length is no int makes the frame longer than any that is sent.
        self.int(i32::try_from(bytes.len()).unwrap_or(NULL));
        self.out.extend_from_slice(bytes);
        self
    }

    /// Appends a text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.buffer(text.as_bytes())
    }

    /// Writes the frame's length.
    ///
    /// # Errors
    ///
    /// The frame is longer than [`SENT_MAX`]. Then `out` is as it was before the frame.
    pub fn finish(self) -> Result<(), JuteError> {
        self.finish_within(SENT_MAX)
    }

    /// The same with another limit: for a server, whose lists of children may be longer.
    ///
    /// # Errors
    ///
    /// The frame is longer than `max`. Then `out` is as it was before the frame.
    pub fn finish_within(self, max: usize) -> Result<(), JuteError> {
        let body = self.start + 4;
        let length = self.out.len() - body;
        match i32::try_from(length) {
            Ok(number) if length <= max => {
                self.out[self.start..body].copy_from_slice(&number.to_be_bytes());
                Ok(())
            }
            _ => {
                self.out.truncate(self.start);
                Err(JuteError::SentTooLong(length))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Reader, frame};
    use super::*;

    #[test]
    fn what_was_written_is_read_again() {
        let mut out = vec![9];
        let mut writer = FrameWriter::begin(&mut out);
        writer.int(-101).long(i64::MIN).boolean(true).buffer(b"").text("schlüssel");
        writer.finish().unwrap();
        let (body, used) = frame(&out[1..]).unwrap().unwrap();
        assert_eq!(used, out.len() - 1);
        let mut reader = Reader::new(body);
        assert_eq!((reader.int(), reader.long()), (Ok(-101), Ok(i64::MIN)));
        assert_eq!((reader.boolean(), reader.buffer()), (Ok(true), Ok(Some(&[][..]))));
        assert_eq!(reader.text(), Ok("schlüssel"));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn a_frame_above_the_limit_leaves_nothing() {
        for (length, is_sent) in [(SENT_MAX - 4, true), (SENT_MAX - 3, false)] {
            let mut out = vec![9];
            let mut writer = FrameWriter::begin(&mut out);
            writer.buffer(&vec![0; length]);
            let written = writer.finish();
            assert_eq!(written.is_ok(), is_sent, "{written:?}");
            assert_eq!(out.len(), if is_sent { 1 + 4 + SENT_MAX } else { 1 });
        }
    }
}
