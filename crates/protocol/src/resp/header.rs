//! One line: a complete value, or the header of a value that follows.

use super::{BULK_MAX, ELEMENTS_MAX, ProtocolError, Reply, number};

/// The type bytes of RESP2 and RESP3.
const TYPES: &[u8; 15] = b"+-:$*_#,(!=%~|>";

/// The meaning of one line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Header<'a> {
    /// The value is complete with this line.
    Value(Reply<'a>),
    /// A body of this many bytes follows, and a CRLF behind it.
    Body(usize),
    /// This many values follow: for maps and attributes twice the number in the header.
    Items(usize),
}

/// Refuses a byte that is no type byte, before its line is complete.
pub(super) fn check_type(byte: u8) -> Result<(), ProtocolError> {
    if TYPES.contains(&byte) { Ok(()) } else { Err(ProtocolError::UnknownType(byte)) }
}

/// Reads a line without its type byte and CRLF. The returned lengths and counts are within the
/// limits.
pub(super) fn header(type_byte: u8, line: &[u8]) -> Result<Header<'_>, ProtocolError> {
    let value = match type_byte {
        b'+' => Reply::Simple(line),
        b'-' => Reply::Error(line),
        b':' => Reply::Integer(number::integer(line).ok_or(ProtocolError::BadInteger)?),
        b',' => Reply::Double(number::double(line).ok_or(ProtocolError::BadDouble)?),
        b'(' if number::is_big_number(line) => Reply::BigNumber(line),
        b'(' => return Err(ProtocolError::BadBigNumber),
        b'_' if line.is_empty() => Reply::Null,
        b'_' => return Err(ProtocolError::BadNull),
        b'#' => match line {
            b"t" => Reply::Boolean(true),
            b"f" => Reply::Boolean(false),
            _ => return Err(ProtocolError::BadBoolean),
        },
        b'$' if line == b"-1" => Reply::Null,
        b'*' if line == b"-1" => Reply::NullArray,
        b'$' | b'!' | b'=' => return body(type_byte, line),
        b'*' | b'~' | b'>' | b'%' | b'|' => return items(type_byte, line),
        _ => return Err(ProtocolError::UnknownType(type_byte)),
    };
    Ok(Header::Value(value))
}

fn body(type_byte: u8, line: &[u8]) -> Result<Header<'static>, ProtocolError> {
    let length = length(type_byte, line)?;
    match usize::try_from(length) {
        // Three bytes of format and a colon.
        Ok(0..4) if type_byte == b'=' => Err(ProtocolError::BadVerbatim),
        Ok(length @ 0..=BULK_MAX) => Ok(Header::Body(length)),
        _ => Err(ProtocolError::BulkTooLong { length }),
    }
}

fn items(type_byte: u8, line: &[u8]) -> Result<Header<'static>, ProtocolError> {
    let count = length(type_byte, line)?;
    match usize::try_from(count) {
        Ok(0) if type_byte == b'>' => Err(ProtocolError::EmptyPush),
        // Within the limit, so doubling cannot overflow.
        Ok(pairs @ 0..=ELEMENTS_MAX) if matches!(type_byte, b'%' | b'|') => {
            Ok(Header::Items(2 * pairs))
        }
        Ok(items @ 0..=ELEMENTS_MAX) => Ok(Header::Items(items)),
        _ => Err(ProtocolError::TooManyElements { count }),
    }
}

fn length(type_byte: u8, line: &[u8]) -> Result<u64, ProtocolError> {
    if line == b"?" {
        return Err(ProtocolError::Streamed(type_byte));
    }
    number::length(line).ok_or(ProtocolError::BadLength(type_byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_byte_is_read_and_no_other() {
        for byte in 0..=u8::MAX {
            let read = header(byte, b"") != Err(ProtocolError::UnknownType(byte));
            assert_eq!(read, check_type(byte).is_ok(), "{byte:#x}");
        }
    }

    #[test]
    fn lengths_and_counts_up_to_the_limits_are_accepted() {
        assert_eq!(header(b'$', b"65536"), Ok(Header::Body(BULK_MAX)));
        assert_eq!(header(b'$', b"65537"), Err(ProtocolError::BulkTooLong { length: 65537 }));
        assert_eq!(header(b'*', b"64"), Ok(Header::Items(ELEMENTS_MAX)));
        assert_eq!(header(b'*', b"65"), Err(ProtocolError::TooManyElements { count: 65 }));
        assert_eq!(header(b'%', b"64"), Ok(Header::Items(2 * ELEMENTS_MAX)));
        assert_eq!(header(b'%', b"65"), Err(ProtocolError::TooManyElements { count: 65 }));
    }

    #[test]
    fn only_bulk_strings_and_arrays_have_a_resp2_null() {
        assert_eq!(header(b'$', b"-1"), Ok(Header::Value(Reply::Null)));
        assert_eq!(header(b'*', b"-1"), Ok(Header::Value(Reply::NullArray)));
        for byte in *b"!=~>%|" {
            assert_eq!(header(byte, b"-1"), Err(ProtocolError::BadLength(byte)));
        }
    }

    #[test]
    fn streamed_values_have_an_error_of_their_own() {
        for byte in *b"$!=*~>%|" {
            assert_eq!(header(byte, b"?"), Err(ProtocolError::Streamed(byte)));
        }
    }
}
