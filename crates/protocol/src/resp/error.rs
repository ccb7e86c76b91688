//! Errors in the bytes of a reply.

use std::error::Error;
use std::fmt;

use super::{BULK_MAX, DEPTH_MAX, ELEMENTS_MAX, LINE_MAX, REPLY_MAX};

/// Why the bytes that a server sent are not valid RESP, or exceed a limit.
///
/// The `u8` of a variant is the type byte of the faulty value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A value starts with this byte, which is not a type of RESP2 or RESP3.
    UnknownType(u8),
    /// A line contains a carriage return that no line feed follows. Reported as soon as the next
    /// byte has arrived.
    BareCarriageReturn,
    /// A line contains a line feed without a carriage return before it. Reported at once.
    BareLineFeed,
    /// A line has more than [`LINE_MAX`] bytes.
    LineTooLong,
    /// The length or count is not a decimal number, has a sign or leading zeros, or is a negative
    /// one that has no meaning.
    BadLength(u8),
    /// The header announces a body of more than [`BULK_MAX`] bytes.
    BulkTooLong {
        /// The announced length, at most `u64::MAX`.
        length: u64,
    },
    /// The header announces more than [`ELEMENTS_MAX`] elements or pairs.
    TooManyElements {
        /// The announced count, at most `u64::MAX`.
        count: u64,
    },
    /// Aggregates nest deeper than [`DEPTH_MAX`].
    TooDeep,
    /// One reply takes more than [`REPLY_MAX`] bytes.
    ReplyTooLarge,
    /// The body of a bulk is not followed by CRLF.
    MissingCrlf,
    /// An integer is not a decimal number, has leading zeros, is `-0`, or does not fit into 64
    /// bits.
    BadInteger,
    /// A double is not of the form `1`, `-1.5`, `1.5e-3`, `inf`, `-inf` or `nan`.
    BadDouble,
    /// A boolean is neither `t` nor `f`.
    BadBoolean,
    /// There are bytes between the type byte of a null and its CRLF.
    BadNull,
    /// A big number is not a decimal number, has leading zeros, or is `-0`.
    BadBigNumber,
    /// A verbatim string does not start with three bytes of format and a colon.
    BadVerbatim,
    /// A push has no elements, so its kind is unknown.
    EmptyPush,
    /// A push is inside another value.
    NestedPush,
    /// A string or aggregate of unknown length, sent in pieces.
    Streamed(u8),
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType(byte) => {
                write!(
                    f,
                    "unknown type byte 0x{byte:02x} '{}'",
                    byte.escape_ascii()
                )
            }
            Self::BareCarriageReturn => write!(f, "carriage return without line feed in a line"),
            Self::BareLineFeed => write!(f, "line feed without carriage return in a line"),
            Self::LineTooLong => write!(f, "line of more than {LINE_MAX} bytes"),
            Self::BadLength(byte) => write!(f, "bad length after '{}'", byte.escape_ascii()),
            Self::BulkTooLong { length } => {
                write!(f, "string of {length} bytes, more than {BULK_MAX}")
            }
            Self::TooManyElements { count } => {
                write!(f, "aggregate of {count} elements, more than {ELEMENTS_MAX}")
            }
            Self::TooDeep => write!(f, "aggregates nested deeper than {DEPTH_MAX}"),
            Self::ReplyTooLarge => write!(f, "reply of more than {REPLY_MAX} bytes"),
            Self::MissingCrlf => write!(f, "no CRLF after the body of a string"),
            Self::BadInteger => write!(f, "bad integer"),
            Self::BadDouble => write!(f, "bad double"),
            Self::BadBoolean => write!(f, "bad boolean"),
            Self::BadNull => write!(f, "bad null"),
            Self::BadBigNumber => write!(f, "bad big number"),
            Self::BadVerbatim => write!(f, "verbatim string without a format"),
            Self::EmptyPush => write!(f, "push without elements"),
            Self::NestedPush => write!(f, "push inside another value"),
            Self::Streamed(byte) => {
                write!(
                    f,
                    "streamed value after '{}' is not supported",
                    byte.escape_ascii()
                )
            }
        }
    }
}

impl Error for ProtocolError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_type_is_shown_as_a_number_and_as_a_character() {
        let text = |byte| ProtocolError::UnknownType(byte).to_string();
        assert_eq!(text(b'H'), "unknown type byte 0x48 'H'");
        // The first byte of a TLS alert.
        assert_eq!(text(0x15), "unknown type byte 0x15 '\\x15'");
        for byte in 0..=u8::MAX {
            let faults = [
                ProtocolError::UnknownType(byte),
                ProtocolError::BadLength(byte),
            ];
            for fault in faults.into_iter().chain([ProtocolError::Streamed(byte)]) {
                let text = fault.to_string();
                assert!(
                    text.bytes().all(|shown| matches!(shown, b' '..=b'~')),
                    "{text:?}"
                );
            }
        }
    }

    #[test]
    fn limits_are_named_in_the_text() {
        let text = ProtocolError::BulkTooLong {
            length: 536_870_913,
        }
        .to_string();
        assert_eq!(text, "string of 536870913 bytes, more than 65536");
    }
}
