//! Bytes to values.

use super::{FRAME_MAX, JuteError, NULL};

/// The bytes of a frame's length.
const HEADER: usize = 4;

/// The first frame of `input` without its length, and the number of bytes that it takes with it, or
/// `None` if it is not complete.
///
/// # Errors
///
/// The length is negative or above [`FRAME_MAX`]. This is said as soon as the length is there, and
/// the rest of the stream cannot be understood.
pub fn frame(input: &[u8]) -> Result<Option<(&[u8], usize)>, JuteError> {
    let Some((header, rest)) = input.split_first_chunk::<HEADER>() else { return Ok(None) };
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
    /// A reader of these bytes, which are a frame without its length.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that were not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next four bytes as a number.
    ///
    /// # Errors
    ///
    /// There are fewer.
    pub fn int(&mut self) -> Result<i32, JuteError> {
        self.array().map(i32::from_be_bytes)
    }

    /// The next eight bytes as a number.
    ///
    /// # Errors
    ///
    /// There are fewer.
    pub fn long(&mut self) -> Result<i64, JuteError> {
        self.array().map(i64::from_be_bytes)
    }

    /// The next byte as a truth value.
    ///
    /// # Errors
    ///
    /// There is none, or it is neither zero nor one.
    pub fn boolean(&mut self) -> Result<bool, JuteError> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [byte] => Err(JuteError::BadBoolean(byte)),
        }
    }

    /// The next buffer, or `None` if it is null.
    ///
    /// # Errors
    ///
    /// It is longer than what is left, or its length is negative and not null's.
    pub fn buffer(&mut self) -> Result<Option<&'a [u8]>, JuteError> {
        let length = self.int()?;
        if length == NULL {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| JuteError::NegativeLength(length))?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(JuteError::Truncated)?;
        self.rest = rest;
        Ok(Some(bytes))
    }

    /// The bytes of the next text. They are not checked to be UTF-8: for names that others chose.
    ///
    /// # Errors
    ///
    /// As for [`buffer`](Self::buffer), or the text is null.
    pub fn raw_text(&mut self) -> Result<&'a [u8], JuteError> {
        self.buffer()?.ok_or(JuteError::NullText)
    }

    /// The next text.
    ///
    /// # Errors
    ///
    /// As for [`raw_text`](Self::raw_text), or it is not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, JuteError> {
        std::str::from_utf8(self.raw_text()?).map_err(|_| JuteError::BadText)
    }

    /// The number of items of the next list, each of which takes at least `item_min` bytes. So it
    /// is bounded by the bytes that are there, and a caller may reserve room for it.
    ///
    /// # Errors
    ///
    /// It is negative, or there are too few bytes for so many items.
    pub fn count(&mut self, item_min: usize) -> Result<usize, JuteError> {
        let count = self.int()?;
        let count = usize::try_from(count).map_err(|_| JuteError::NegativeLength(count))?;
        match count.checked_mul(item_min) {
            Some(least) if least <= self.rest.len() => Ok(count),
            _ => Err(JuteError::Truncated),
        }
    }

    /// Ends the reading.
    ///
    /// # Errors
    ///
    /// Bytes are left: the frame is of another kind than it was read as.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_complete_with_its_last_byte_and_not_before() {
        let bytes = [0, 0, 0, 3, 7, 8, 9, 0, 0];
        for length in 0..7 {
            assert_eq!(frame(&bytes[..length]), Ok(None), "{length}");
        }
        for length in 7..=9 {
            assert_eq!(frame(&bytes[..length]), Ok(Some((&[7, 8, 9][..], 7))), "{length}");
        }
        assert_eq!(frame(&[0; 4]), Ok(Some((&[][..], 4))));
    }

    #[test]
    fn a_frame_of_a_forbidden_length_is_refused_before_it_is_there() {
        let most = i32::try_from(FRAME_MAX).unwrap();
        assert_eq!(frame(&most.to_be_bytes()), Ok(None));
        for length in [most + 1, i32::MAX, -1, i32::MIN] {
            assert_eq!(frame(&length.to_be_bytes()), Err(JuteError::FrameLength(length)));
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
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xfe]), Err(JuteError::NegativeLength(-2)));
        assert_eq!(read(&[0, 0, 0, 2, 7]), Err(JuteError::Truncated));
        assert_eq!(read(&[0x7f, 0xff, 0xff, 0xff, 7]), Err(JuteError::Truncated));
        assert_eq!(Reader::new(&[0xff; 4]).text(), Err(JuteError::NullText));
        assert_eq!(Reader::new(&[0, 0, 0, 1, 0xff]).text(), Err(JuteError::BadText));
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
        assert_eq!(Reader::new(&[1, 2]).finish(), Err(JuteError::TrailingBytes(2)));
    }
}
