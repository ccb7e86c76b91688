//! The numbers in RESP lines, read strictly and with checked arithmetic.
//!
//! The standard library's parsers accept a little more than RESP does (`+1` for an unsigned number,
//! `infinity`, `.5`), so each form is checked here first.
//!
//! Whole numbers are accepted in one form only: no leading zeros, and no `-0`. The specification
//! does not require this, but no server writes other forms, so they are a sign of a damaged stream.
//! The exception is a plus sign, which the specification allows before integers and big numbers.
//! Doubles follow the specification's grammar, which allows leading zeros and `-0`.

/// An integer: an optional sign, then digits. `None` if it has another form or does not fit.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if !is_canonical(digits) || text == b"-0" {
        return None;
    }
    digits.iter().try_fold(0_i64, |value, byte| {
        let digit = i64::from(byte - b'0');
        // A negative number is counted down from zero: -i64::MIN does not fit.
        let digit = if negative { -digit } else { digit };
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// A length or count: digits only. A number that does not fit becomes `u64::MAX`, which is above
/// every limit.
pub(super) fn length(text: &[u8]) -> Option<u64> {
    if !is_canonical(text) {
        return None;
    }
    let add = |value: u64, byte: &u8| value.saturating_mul(10).saturating_add((byte - b'0').into());
    Some(text.iter().fold(0, add))
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
    let rest = after_digits(unsigned(text))?;
    let rest = match rest {
        [b'.', fraction @ ..] => after_digits(fraction)?,
        _ => rest,
    };
    let rest = match rest {
        [b'e' | b'E', exponent @ ..] => after_digits(unsigned(exponent))?,
        _ => rest,
    };
    if !rest.is_empty() {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
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
    if digits == 0 { None } else { Some(&text[digits..]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_that_do_not_fit_are_refused() {
        assert_eq!(integer(b"0"), Some(0));
        assert_eq!(integer(b"+0"), Some(0));
        assert_eq!(integer(b"+1"), Some(1));
        assert_eq!(integer(b"10"), Some(10));
        assert_eq!(integer(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(integer(b"-9223372036854775808"), Some(i64::MIN));
        for text in ["", "-", "+", "--1", "+-1", " 1", "1 ", "1.0", "1e3", "0x1", "\u{661}"] {
            assert_eq!(integer(text.as_bytes()), None, "{text:?}");
        }
        for text in ["-0", "00", "01", "007", "-01", "+01", "-00"] {
            assert_eq!(integer(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(integer(b"9223372036854775808"), None);
        assert_eq!(integer(b"-9223372036854775809"), None);
    }

    #[test]
    fn lengths_have_no_sign_and_saturate() {
        assert_eq!(length(b"0"), Some(0));
        assert_eq!(length(b"64"), Some(64));
        assert_eq!(length(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(length(b"18446744073709551616"), Some(u64::MAX));
        assert_eq!(length(&[b'9'; 4096]), Some(u64::MAX));
        for text in ["", "-0", "-1", "+1", " 1", "1 ", "?", "00", "01", "05", "0018"] {
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
        for text in ["", "+", ".", "1.", ".5", "1e", "1e+", "1.2.3", "1,5", "abc", "3.14x", "1 "] {
            assert_eq!(double(text.as_bytes()), None, "{text:?}");
        }
        for text in ["infinity", "+inf", "INF", "NaN", "-nan", "3.14\u{0}159", "0x1p3", "1_0"] {
            assert_eq!(double(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn big_numbers_are_digits() {
        assert!(is_big_number(b"3492890328409238509324850943850943825024385"));
        assert!(is_big_number(b"0"));
        assert!(is_big_number(b"+1"));
        assert!(is_big_number(b"-10"));
        for text in ["", "-", "12a", "1.0", "--1", "-0", "00", "01", "-01", "+01"] {
            assert!(!is_big_number(text.as_bytes()), "{text:?}");
        }
    }
}
