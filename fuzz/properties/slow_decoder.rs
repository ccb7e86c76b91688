//! A second decoder, slow and simple: it starts again each time, recurses, and allocates.
//!
//! It is written from the specification and from the limits that `redlatch_protocol::resp`
//! documents, and shares no code with the decoder that it is compared with.

use super::value::Value;
use redlatch_protocol::resp::{
    BULK_MAX, DEPTH_MAX, ELEMENTS_MAX, LINE_MAX, ProtocolError, REPLY_MAX,
};

/// The expected result of the decoder under test for `input`.
pub(crate) fn decode(input: &[u8]) -> Result<Option<(Value, usize)>, ProtocolError> {
    let mut at = 0;
    match value(input, &mut at, 0) {
        Ok(value) => Ok(Some((value, at))),
        Err(Stop::Starved) => Ok(None),
        Err(Stop::Fault(error)) => Err(error),
    }
}

enum Stop {
    Starved,
    Fault(ProtocolError),
}

impl From<ProtocolError> for Stop {
    fn from(error: ProtocolError) -> Self {
        Self::Fault(error)
    }
}

fn value(input: &[u8], at: &mut usize, depth: usize) -> Result<Value, Stop> {
    loop {
        // An attribute: the value that it prefixes is the one that counts.
        if let Some(value) = value_or_attribute(input, at, depth)? {
            return Ok(value);
        }
    }
}

/// The next value, or `None` if it is an attribute.
fn value_or_attribute(input: &[u8], at: &mut usize, depth: usize) -> Result<Option<Value>, Stop> {
    if *at >= REPLY_MAX {
        return Err(ProtocolError::ReplyTooLarge.into());
    }
    let type_byte = *input.get(*at).ok_or(Stop::Starved)?;
    *at += 1;
    let character = char::from(type_byte);
    if !"+-:$*_#,(!=%~|>".contains(character) {
        return Err(ProtocolError::UnknownType(type_byte).into());
    }
    if character == '>' && depth > 0 {
        return Err(ProtocolError::NestedPush.into());
    }
    let line = line(input, at)?;
    let text = String::from_utf8_lossy(&line).into_owned();
    Ok(Some(match character {
        '+' => Value::Simple(line),
        '-' => Value::Error(line),
        ':' => Value::Integer(integer(&text).ok_or(ProtocolError::BadInteger)?),
        ',' => Value::Double(double(&text).ok_or(ProtocolError::BadDouble)?.to_bits()),
        '(' if is_whole_number(&text) => Value::BigNumber(line),
        '(' => return Err(ProtocolError::BadBigNumber.into()),
        '_' if text.is_empty() => Value::Null,
        '_' => return Err(ProtocolError::BadNull.into()),
        '#' if text == "t" || text == "f" => Value::Boolean(text == "t"),
        '#' => return Err(ProtocolError::BadBoolean.into()),
        '$' if text == "-1" => Value::Null,
        '*' if text == "-1" => Value::NullArray,
        _ if text == "?" => return Err(ProtocolError::Streamed(type_byte).into()),
        _ if !is_digits(&text) || has_leading_zeros(&text) => {
            return Err(ProtocolError::BadLength(type_byte).into());
        }
        '$' | '!' | '=' => body(character, input, at, length(&text))?,
        _ => return aggregate(character, input, at, depth, length(&text)),
    }))
}

/// The bytes up to the first CRLF, which is skipped. No single CR or LF may be before it.
fn line(input: &[u8], at: &mut usize) -> Result<Vec<u8>, Stop> {
    let start = *at;
    let limit = REPLY_MAX.min(start + LINE_MAX + 2);
    for end in start..limit {
        match input.get(end) {
            None => return Err(Stop::Starved),
            Some(b'\n') => return Err(ProtocolError::BareLineFeed.into()),
            // The rest would be beyond the limit.
            Some(b'\r') if end + 1 == limit => break,
            Some(b'\r') => {
                return match input.get(end + 1) {
                    None => Err(Stop::Starved),
                    Some(b'\n') => {
                        *at = end + 2;
                        Ok(input[start..end].to_vec())
                    }
                    Some(_) => Err(ProtocolError::BareCarriageReturn.into()),
                };
            }
            Some(_) => {}
        }
    }
    let too_long = start + LINE_MAX + 2 <= REPLY_MAX;
    Err(if too_long {
        ProtocolError::LineTooLong
    } else {
        ProtocolError::ReplyTooLarge
    }
    .into())
}

fn body(kind: char, input: &[u8], at: &mut usize, length: u64) -> Result<Value, Stop> {
    if kind == '=' && length < 4 {
        return Err(ProtocolError::BadVerbatim.into());
    }
    if length > BULK_MAX as u64 {
        return Err(ProtocolError::BulkTooLong { length }.into());
    }
    let end = *at + length as usize;
    if end + 2 > REPLY_MAX {
        return Err(ProtocolError::ReplyTooLarge.into());
    }
    for (position, expected) in [(end, b'\r'), (end + 1, b'\n')] {
        match input.get(position) {
            None => return Err(Stop::Starved),
            Some(byte) if *byte == expected => {}
            Some(_) => return Err(ProtocolError::MissingCrlf.into()),
        }
    }
    let bytes = input[*at..end].to_vec();
    *at = end + 2;
    match kind {
        '$' => Ok(Value::Bulk(bytes)),
        '!' => Ok(Value::Error(bytes)),
        _ if bytes[3] != b':' => Err(ProtocolError::BadVerbatim.into()),
        _ => Ok(Value::Verbatim(
            [bytes[0], bytes[1], bytes[2]],
            bytes[4..].to_vec(),
        )),
    }
}

fn aggregate(
    kind: char,
    input: &[u8],
    at: &mut usize,
    depth: usize,
    count: u64,
) -> Result<Option<Value>, Stop> {
    if kind == '>' && count == 0 {
        return Err(ProtocolError::EmptyPush.into());
    }
    if count > ELEMENTS_MAX as u64 {
        return Err(ProtocolError::TooManyElements { count }.into());
    }
    if depth >= DEPTH_MAX {
        return Err(ProtocolError::TooDeep.into());
    }
    let items = if kind == '%' || kind == '|' {
        2 * count
    } else {
        count
    };
    let mut values = Vec::new();
    for _ in 0..items {
        values.push(value(input, at, depth + 1)?);
    }
    Ok(match kind {
        '*' => Some(Value::Array(values)),
        '%' => Some(Value::Map(values)),
        '~' => Some(Value::Set(values)),
        '>' => Some(Value::Push(values)),
        _ => None,
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|character| character.is_ascii_digit())
}

fn is_signed_digits(text: &str) -> bool {
    is_digits(text.strip_prefix(['+', '-']).unwrap_or(text))
}

/// A sign, then digits in the one form in which a number is written. Zero is not negative.
fn is_whole_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    is_signed_digits(text) && !has_leading_zeros(digits) && text != "-0"
}

fn has_leading_zeros(digits: &str) -> bool {
    digits.len() > 1 && digits.starts_with('0')
}

fn length(digits: &str) -> u64 {
    digits.parse().unwrap_or(u64::MAX)
}

fn integer(text: &str) -> Option<i64> {
    if is_whole_number(text) {
        text.parse().ok()
    } else {
        None
    }
}

fn double(text: &str) -> Option<f64> {
    if ["inf", "-inf", "nan"].contains(&text) {
        return text.parse().ok();
    }
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let valid = is_signed_digits(whole) && is_digits(fraction) && is_signed_digits(exponent);
    if valid { text.parse().ok() } else { None }
}
