//! What can be wrong with a frame.

use super::{FRAME_MAX, SENT_MAX};
use std::fmt;

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
                write!(f, "request of {length} bytes, at which servers close the connection")
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

impl std::error::Error for JuteError {}

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
}
