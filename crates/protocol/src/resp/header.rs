//! One line: a complete value, or the header of a value that follows.

use super::{BULK_MAX, ELEMENTS_MAX, ProtocolError, Reply};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Header<'a> {
    /// The value is complete with this line.
    Value(Reply<'a>),
    /// A body of this many bytes follows, and a CRLF behind it.
    Body(usize),
    /// This many values follow: for maps and attributes twice the number in the header.
    Items(usize),
}

/// Refuses a byte that is not a type byte, before its line is complete.
pub(super) fn check_type(byte: u8) -> Result<(), ProtocolError> {
    match byte {
        b'+' | b'-' | b':' | b'$' | b'*' => Ok(()),
        b'_' | b'#' | b',' | b'(' | b'!' | b'=' | b'%' | b'~' | b'|' | b'>' => Ok(()),
        _ => Err(ProtocolError::UnknownType(byte)),
    }
}

/// Reads a line without its type byte and CRLF. The returned lengths and counts are within the
/// limits.
pub(super) fn header(type_byte: u8, line: &[u8]) -> Result<Header<'_>, ProtocolError> {
    let value = match type_byte {
        b'+' => Reply::Simple(line),
        b'-' => Reply::Error(line),
        b':' => Reply::Integer(integer(line).ok_or(ProtocolError::BadInteger)?),
        b',' => Reply::Double(double(line).ok_or(ProtocolError::BadDouble)?),
        b'(' if is_big_number(line) => Reply::BigNumber(line),
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
    let length = read_length(type_byte, line)?;
    match usize::try_from(length) {
        // Three bytes of format and a colon.
        Ok(0..4) if type_byte == b'=' => Err(ProtocolError::BadVerbatim),
        Ok(length @ 0..=BULK_MAX) => Ok(Header::Body(length)),
        _ => Err(ProtocolError::BulkTooLong { length }),
    }
}

fn items(type_byte: u8, line: &[u8]) -> Result<Header<'static>, ProtocolError> {
    let count = read_length(type_byte, line)?;
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

fn read_length(type_byte: u8, line: &[u8]) -> Result<u64, ProtocolError> {
    if line == b"?" {
        return Err(ProtocolError::Streamed(type_byte));
    }
    length(line).ok_or(ProtocolError::BadLength(type_byte))
}

// The numbers in RESP lines, read strictly and with checked arithmetic.
//
// The standard library's parsers accept a little more than RESP does (`+1` for an unsigned number,
// `infinity`, `.5`), so each form is checked here first.
//
// Whole numbers are accepted in one form only: no leading zeros, and no `-0`. The specification
// does not require this, but no server writes other forms, so they are a sign of a damaged stream.
// The exception is a plus sign, which the specification allows before integers and big numbers.
// Doubles follow the specification's grammar, which allows leading zeros and `-0`.

/// An integer: an optional sign, then digits. `None` if it has another form or does not fit.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let digits = unsigned(text);
    if matches!(digits, [] | [b'0', _, ..]) || text == b"-0" {
        return None;
    }
    let value = digits.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        value
            .checked_mul(10)?
            .checked_add(digit.into())
            .filter(|_| digit < 10)
    })?;
    // -i64::MIN does not fit.
    if text[0] == b'-' {
        0_i64.checked_sub_unsigned(value)
    } else {
        value.try_into().ok()
    }
}

/// A length or count: digits only. A number that does not fit becomes `u64::MAX`, which is above
/// every limit.
pub(super) fn length(text: &[u8]) -> Option<u64> {
    if !is_canonical(text) {
        return None;
    }
    let mut value = 0_u64;
    for byte in text {
        value = value.saturating_mul(10);
        value = value.saturating_add((byte - b'0').into());
    }
    Some(value)
}

/// A double: `inf`, `-inf`, `nan`, or an optional sign, digits, and optionally a fraction and an
/// exponent.
pub(super) fn double(text: &[u8]) -> Option<f64> {
    match text {
        b"inf" => return Some(f64::INFINITY),
        b"-inf" => return Some(f64::NEG_INFINITY),
        b"nan" => return Some(f64::NAN),
        _ => {}
    }
    let mut rest = after_digits(unsigned(text))?;
    if let [b'.', fraction @ ..] = rest {
        rest = after_digits(fraction)?;
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        rest = after_digits(unsigned(exponent))?;
    }
    if rest.is_empty() {
        std::str::from_utf8(text).ok()?.parse().ok()
    } else {
        None
    }
}

/// Is this a big number: an optional sign, then any number of digits?
pub(super) fn is_big_number(text: &[u8]) -> bool {
    is_canonical(unsigned(text)) && text != b"-0"
}

/// Are these digits without leading zeros?
fn is_canonical(digits: &[u8]) -> bool {
    matches!(digits, [b'0'] | [b'1'..=b'9', ..]) && digits.iter().all(u8::is_ascii_digit)
}

fn unsigned(text: &[u8]) -> &[u8] {
    match text {
        [b'+' | b'-', rest @ ..] => rest,
        _ => text,
    }
}

/// The rest after the digits that `text` starts with; `None` if it starts with no digit.
fn after_digits(text: &[u8]) -> Option<&[u8]> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        None
    } else {
        Some(&text[digits..])
    }
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
        assert_eq!(
            header(b'$', b"65537"),
            Err(ProtocolError::BulkTooLong { length: 65537 })
        );
        assert_eq!(header(b'*', b"64"), Ok(Header::Items(ELEMENTS_MAX)));
        assert_eq!(
            header(b'*', b"65"),
            Err(ProtocolError::TooManyElements { count: 65 })
        );
        assert_eq!(header(b'%', b"64"), Ok(Header::Items(2 * ELEMENTS_MAX)));
        assert_eq!(
            header(b'%', b"65"),
            Err(ProtocolError::TooManyElements { count: 65 })
        );
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

    mod number {
        use super::super::*;

        #[test]
        fn integers_that_do_not_fit_are_refused() {
            assert_eq!(integer(b"0"), Some(0));
            assert_eq!(integer(b"+0"), Some(0));
            assert_eq!(integer(b"+1"), Some(1));
            assert_eq!(integer(b"10"), Some(10));
            assert_eq!(integer(b"9223372036854775807"), Some(i64::MAX));
            assert_eq!(integer(b"-9223372036854775808"), Some(i64::MIN));
            for text in [
                "", "-", "+", "--1", "+-1", " 1", "1 ", "1.0", "1e3", "0x1", "\u{661}",
            ] {
                assert_eq!(integer(text.as_bytes()), None, "{text:?}");
            }
            for text in ["-0", "00", "01", "007", "-01", "+01", "-00"] {
                assert_eq!(integer(text.as_bytes()), None, "{text:?}");
            }
            assert_eq!(integer(b"9223372036854775808"), None);
            assert_eq!(integer(b"-9223372036854775809"), None);
            assert_eq!(integer(b"18446744073709551617"), None);
        }

        #[test]
        fn lengths_have_no_sign_and_saturate() {
            assert_eq!(length(b"0"), Some(0));
            assert_eq!(length(b"64"), Some(64));
            assert_eq!(length(b"18446744073709551615"), Some(u64::MAX));
            assert_eq!(length(b"18446744073709551616"), Some(u64::MAX));
            assert_eq!(length(&[b'9'; 4096]), Some(u64::MAX));
            for text in [
                "", "-0", "-1", "+1", " 1", "1 ", "?", "00", "01", "05", "0018",
            ] {
                assert_eq!(length(text.as_bytes()), None, "{text:?}");
            }
        }

        #[test]
        fn doubles_follow_the_grammar_of_the_specification() {
            for (text, value) in [
                ("1", 1.0),
                ("+1", 1.0),
                ("-0.5", -0.5),
                ("10.25", 10.25),
                ("1e3", 1000.0),
                ("1.5E-3", 0.0015),
                ("2e+2", 200.0),
                ("1e999999999999999999999", f64::INFINITY),
                ("inf", f64::INFINITY),
                ("-inf", f64::NEG_INFINITY),
            ] {
                assert_eq!(double(text.as_bytes()), Some(value), "{text:?}");
            }
            assert!(double(b"nan").is_some_and(f64::is_nan));
            for text in [
                "", "+", ".", "1.", ".5", "1e", "1e+", "1.2.3", "1,5", "abc", "3.14x", "1 ",
            ] {
                assert_eq!(double(text.as_bytes()), None, "{text:?}");
            }
            for text in [
                "infinity",
                "+inf",
                "INF",
                "NaN",
                "-nan",
                "3.14\u{0}159",
                "0x1p3",
                "1_0",
            ] {
                assert_eq!(double(text.as_bytes()), None, "{text:?}");
            }
        }

        #[test]
        fn big_numbers_are_digits() {
            assert!(is_big_number(
                b"3492890328409238509324850943850943825024385"
            ));
            assert!(is_big_number(b"0"));
            assert!(is_big_number(b"+1"));
            assert!(is_big_number(b"-10"));
            for text in ["", "-", "12a", "1.0", "--1", "-0", "00", "01", "-01", "+01"] {
                assert!(!is_big_number(text.as_bytes()), "{text:?}");
            }
        }
    }
}
