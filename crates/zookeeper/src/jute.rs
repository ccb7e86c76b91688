//! Jute, ZooKeeper's encoding: numbers, texts and lists, in frames.
//!
//! | type | bytes | here |
//! |---|---|---|
//! | frame | its length as an int, then that many bytes | [`frame`], [`FrameWriter`] |
//! | int, long | 4 and 8, the most significant first | `i32`, `i64` |
//! | boolean | 1: zero or one | `bool` |
//! | buffer | its length as an int, then the bytes; length -1: null | `Option<&[u8]>` |
//! | ustring | the same, UTF-8 | `&str`; null is refused |
//! | vector | the number of items as an int, then the items | [`Reader::count`] |
//!
//! [`Reader`] takes a slice and never waits. It neither allocates nor recurses, and checks each
//! length against the bytes that are there before it uses it.

use std::fmt;

/// The longest frame that is accepted, in bytes without its length: 16 MiB.
///
/// Servers limit the data of a znode to `jute.maxbuffer`, 1 MB by default, but a list of children
/// may be longer: 100,000 contenders have 6 MB.
pub const FRAME_MAX: usize = 16 * 1024 * 1024;

/// The longest frame that is sent, in bytes without its length. Servers close the connection above
/// `jute.maxbuffer`, which is 1,048,575 by default.
pub const SENT_MAX: usize = 1_000_000;

/// The length that stands for null.
const NULL: i32 = -1;

/// The bytes are not what the protocol allows, or exceed a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JuteError {
    /// The length of a frame is negative or above [`FRAME_MAX`].
    FrameLength(i32),
    /// A frame to be sent would have this many bytes, more than [`SENT_MAX`].
    SentTooLong(usize),
    /// A frame to be sent would have this many bytes, and servers have closed one connection after
    /// another at such a frame.
    Unaccepted(usize),
    /// The frame ends within a value.
    Truncated,
    /// The length of a buffer or the number of items of a list is negative.
    NegativeLength(i32),
    /// A boolean is neither zero nor one.
    BadBoolean(u8),
    NullText,
    /// A text is not UTF-8.
    BadText,
    /// This many bytes follow the last value.
    TrailingBytes(usize),
    /// The results of a transaction are not as many as its operations, or of another kind.
    BadResults,
}

impl fmt::Display for JuteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FrameLength(length) => {
                write!(f, "frame of {length} bytes, not between 0 and {FRAME_MAX}")
            }
            Self::SentTooLong(length) => {
                write!(f, "request of {length} bytes, more than {SENT_MAX}")
            }
            Self::Unaccepted(length) => {
                write!(
                    f,
                    "request of {length} bytes, at which servers close the connection"
                )
            }
            Self::Truncated => f.write_str("frame that ends within a value"),
            Self::NegativeLength(length) => write!(f, "length of {length}"),
            Self::BadBoolean(byte) => write!(f, "boolean of value {byte}"),
            Self::NullText => f.write_str("text that is null"),
            Self::BadText => f.write_str("text that is not UTF-8"),
            Self::TrailingBytes(count) => write!(f, "{count} bytes behind the last value"),
            Self::BadResults => f.write_str("results that do not fit the transaction"),
        }
    }
}

/// The bytes of a frame's length.
const HEADER: usize = 4;

/// The first frame of `input` without its length, and the number of bytes that it takes with it, or
/// `None` if it is not complete.
///
/// A length that is not accepted is refused as soon as it is there: the rest of the stream cannot
/// be understood.
pub fn frame(input: &[u8]) -> Result<Option<(&[u8], usize)>, JuteError> {
    let Some((header, rest)) = input.split_first_chunk::<HEADER>() else {
        return Ok(None);
    };
    let length = i32::from_be_bytes(*header);
    match usize::try_from(length) {
        Ok(size @ 0..=FRAME_MAX) => Ok(rest.get(..size).map(|body| (body, HEADER + size))),
        _ => Err(JuteError::FrameLength(length)),
    }
}

/// Reads the values of one frame, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// `bytes`: a frame without its length.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn int(&mut self) -> Result<i32, JuteError> {
        self.array().map(i32::from_be_bytes)
    }

    pub fn long(&mut self) -> Result<i64, JuteError> {
        self.array().map(i64::from_be_bytes)
    }

    pub fn boolean(&mut self) -> Result<bool, JuteError> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [byte] => Err(JuteError::BadBoolean(byte)),
        }
    }

    /// The next buffer, or `None` if it is null.
    pub fn buffer(&mut self) -> Result<Option<&'a [u8]>, JuteError> {
        let length = self.int()?;
        if length == NULL {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| JuteError::NegativeLength(length))?;
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(JuteError::Truncated)?;
        self.rest = rest;
        Ok(Some(bytes))
    }

    /// The bytes of the next text. They are not checked to be UTF-8: for names that others chose.
    pub fn raw_text(&mut self) -> Result<&'a [u8], JuteError> {
        self.buffer()?.ok_or(JuteError::NullText)
    }

    pub fn text(&mut self) -> Result<&'a str, JuteError> {
        std::str::from_utf8(self.raw_text()?).map_err(|_| JuteError::BadText)
    }

    /// The number of items of the next list, each of which takes at least `item_min` bytes. So it
    /// is bounded by the bytes that are there, and a caller may reserve room for it.
    pub fn count(&mut self, item_min: usize) -> Result<usize, JuteError> {
        let length = self.int()?;
        let count = usize::try_from(length).map_err(|_| JuteError::NegativeLength(length))?;
        match count.checked_mul(item_min) {
            Some(least) if least <= self.rest.len() => Ok(count),
            _ => Err(JuteError::Truncated),
        }
    }

    /// If bytes are left, the frame is of another kind than it was read as.
    pub fn finish(self) -> Result<(), JuteError> {
        match self.rest.len() {
            0 => Ok(()),
            count => Err(JuteError::TrailingBytes(count)),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], JuteError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(JuteError::Truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }
}

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

    pub fn int(&mut self, value: i32) -> &mut Self {
        self.out.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub fn long(&mut self, value: i64) -> &mut Self {
        self.out.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub fn boolean(&mut self, value: bool) -> &mut Self {
        self.out.push(value.into());
        self
    }

    /// Appends a buffer that is not null.
    pub fn buffer(&mut self, bytes: &[u8]) -> &mut Self {
        // A buffer whose length is not an int makes the frame longer than any that is sent.
        self.int(i32::try_from(bytes.len()).unwrap_or(NULL));
        self.out.extend_from_slice(bytes);
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Self {
        self.buffer(text.as_bytes())
    }

    /// Writes the frame's length. If it is above [`SENT_MAX`], `out` is as it was before the frame.
    pub fn finish(self) -> Result<(), JuteError> {
        self.finish_within(SENT_MAX)
    }

    /// The same with another limit: for a server, whose lists of children may be longer.
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
    use super::*;

    #[test]
    fn errors_name_the_limit_that_was_exceeded() {
        let text = JuteError::FrameLength(-2).to_string();
        assert_eq!(text, "frame of -2 bytes, not between 0 and 16777216");
        let text = JuteError::SentTooLong(1_000_001).to_string();
        assert_eq!(text, "request of 1000001 bytes, more than 1000000");
    }

    #[test]
    fn a_frame_is_complete_with_its_last_byte_and_not_before() {
        let bytes = [0, 0, 0, 3, 7, 8, 9, 0, 0];
        for length in 0..7 {
            assert_eq!(frame(&bytes[..length]), Ok(None), "{length}");
        }
        for length in 7..=9 {
            assert_eq!(
                frame(&bytes[..length]),
                Ok(Some((&[7, 8, 9][..], 7))),
                "{length}"
            );
        }
        assert_eq!(frame(&[0; 4]), Ok(Some((&[][..], 4))));
    }

    #[test]
    fn a_frame_of_a_forbidden_length_is_refused_before_it_is_there() {
        let most = i32::try_from(FRAME_MAX).unwrap();
        assert_eq!(frame(&most.to_be_bytes()), Ok(None));
        for length in [most + 1, i32::MAX, -1, i32::MIN] {
            assert_eq!(
                frame(&length.to_be_bytes()),
                Err(JuteError::FrameLength(length))
            );
        }
    }

    #[test]
    fn numbers_are_read_from_their_most_significant_byte() {
        let mut reader = Reader::new(&[0xff, 0xff, 0xff, 0x9b, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0]);
        assert_eq!(reader.int(), Ok(-101));
        assert_eq!(reader.long(), Ok((1 << 32) + 2));
        assert_eq!((reader.boolean(), reader.boolean()), (Ok(true), Ok(false)));
        assert_eq!(reader.boolean(), Err(JuteError::Truncated));
        assert_eq!(reader.finish(), Ok(()));
        assert_eq!(Reader::new(&[2]).boolean(), Err(JuteError::BadBoolean(2)));
    }

    #[test]
    fn buffers_and_texts_may_be_empty_and_only_buffers_null() {
        let read = |bytes: &'static [u8]| {
            let mut reader = Reader::new(bytes);
            reader.buffer().map(|buffer| (buffer, reader.rest().len()))
        };
        assert_eq!(read(&[0, 0, 0, 2, 7, 8, 9]), Ok((Some(&[7, 8][..]), 1)));
        assert_eq!(read(&[0, 0, 0, 0]), Ok((Some(&[][..]), 0)));
        assert_eq!(read(&[0xff; 4]), Ok((None, 0)));
        assert_eq!(
            read(&[0xff, 0xff, 0xff, 0xfe]),
            Err(JuteError::NegativeLength(-2))
        );
        assert_eq!(read(&[0, 0, 0, 2, 7]), Err(JuteError::Truncated));
        assert_eq!(
            read(&[0x7f, 0xff, 0xff, 0xff, 7]),
            Err(JuteError::Truncated)
        );
        assert_eq!(Reader::new(&[0xff; 4]).text(), Err(JuteError::NullText));
        assert_eq!(
            Reader::new(&[0, 0, 0, 1, 0xff]).text(),
            Err(JuteError::BadText)
        );
        assert_eq!(Reader::new(&[0, 0, 0, 1, 0xff]).raw_text(), Ok(&[0xff][..]));
    }

    #[test]
    fn no_list_has_more_items_than_there_are_bytes_for() {
        let count = |count: i32, bytes: usize| {
            let list = [&count.to_be_bytes()[..], &vec![0; bytes]].concat();
            Reader::new(&list).count(4)
        };
        assert_eq!(count(0, 0), Ok(0));
        assert_eq!(count(3, 12), Ok(3));
        assert_eq!(count(3, 11), Err(JuteError::Truncated));
        assert_eq!(count(i32::MAX, 100), Err(JuteError::Truncated));
        assert_eq!(count(-1, 100), Err(JuteError::NegativeLength(-1)));
    }

    #[test]
    fn what_follows_the_last_value_is_an_error() {
        assert_eq!(
            Reader::new(&[1, 2]).finish(),
            Err(JuteError::TrailingBytes(2))
        );
    }

    #[test]
    fn what_was_written_is_read_again() {
        let mut out = vec![9];
        let mut writer = FrameWriter::begin(&mut out);
        writer
            .int(-101)
            .long(i64::MIN)
            .boolean(true)
            .buffer(b"")
            .text("schlüssel");
        writer.finish().unwrap();
        let (body, used) = frame(&out[1..]).unwrap().unwrap();
        assert_eq!(used, out.len() - 1);
        let mut reader = Reader::new(body);
        assert_eq!((reader.int(), reader.long()), (Ok(-101), Ok(i64::MIN)));
        assert_eq!(
            (reader.boolean(), reader.buffer()),
            (Ok(true), Ok(Some(&[][..])))
        );
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
