//! Decoding, compared with the decoder of another crate, `resp-rs`.
//!
//! Both get the same bytes up to the one that decides: the end of a reply, the first byte at which
//! this library refuses the stream, or the last byte. The other decoder must then have the same
//! result, or exactly the difference that [`Peer`] and the table in [`expected`] explain.

use super::value::Value;
use bytes::Bytes;
use redlatch_protocol::resp::{ELEMENTS_MAX, ProtocolError, Reply, decode};
use resp_rs::ParseError;
use resp_rs::resp3::{Frame, parse_frame};

/// The longest string and the largest aggregate that the other decoder accepts. It does not publish
/// these limits.
const PEER_BULK_MAX: u64 = 512 * 1024 * 1024;
const PEER_COUNT_MAX: u64 = 10_000_000;

/// The result of the other decoder.
#[derive(Debug, PartialEq)]
enum Peer {
    /// A reply of this many bytes.
    Complete(usize),
    /// It waits for more.
    Starved,
    /// Either of these, depending on what surrounds the item.
    NotRefused,
    /// An error.
    Refused,
}

/// Panics unless both decoders have the same result for `data`, except for the known differences.
pub(crate) fn check(data: &[u8]) {
    let mut rest = data;
    loop {
        match decode(rest) {
            Ok(Some((reply, used))) => {
                let seen = &rest[..used];
                let expected = if Items::of(seen).has_odd_verbatim {
                    Err(ParseError::InvalidFormat)
                } else {
                    Ok((Value::from(reply), used))
                };
                assert_eq!(
                    ask(seen).map(|(frame, used)| (value(frame), used)),
                    expected,
                    "{seen:?}"
                );
                rest = &rest[used..];
            }
            Ok(None) => {
                let items = Items::of(rest);
                let expected = if items.has_odd_verbatim || items.has_begun_null {
                    ParseError::InvalidFormat
                } else {
                    ParseError::Incomplete
                };
                assert_eq!(ask(rest).map(drop), Err(expected), "{rest:?}");
                return;
            }
            Err(_) => return check_refusal(rest),
        }
    }
}

/// The bytes are refused here: checks that the other decoder finds the same error.
fn check_refusal(data: &[u8]) {
    // More bytes never undo an error, so bisection finds the byte at which it first occurs.
    let mut fine = 0;
    let mut refused = data.len();
    while refused - fine > 1 {
        let middle = fine + (refused - fine) / 2;
        if decode(&data[..middle]).is_err() {
            refused = middle;
        } else {
            fine = middle;
        }
    }
    let seen = &data[..refused];
    let Err(error) = decode(seen) else {
        panic!("nothing is refused at the end of {seen:?}")
    };
    let items = Items::of(seen);
    let said = match ask(seen) {
        Ok((_, used)) => Peer::Complete(used),
        Err(ParseError::Incomplete) => Peer::Starved,
        Err(_) => Peer::Refused,
    };
    let expected = if items.has_odd_verbatim {
        Peer::Refused
    } else {
        expected(&error, seen, items.unfinished)
    };
    let agrees = said == expected || (expected == Peer::NotRefused && said != Peer::Refused);
    assert!(
        agrees,
        "{error:?}: {said:?} instead of {expected:?} about {seen:?}"
    );
    if error == ProtocolError::MissingCrlf && said == Peer::Starved {
        let longer = [seen, b"X"].concat();
        assert_eq!(
            ask(&longer).map(drop),
            Err(ParseError::InvalidFormat),
            "{seen:?}"
        );
    }
}

/// The expected result of the other decoder for `seen`, in which this one has just found `error`.
/// `unfinished` is the item with the error.
fn expected(error: &ProtocolError, seen: &[u8], unfinished: &[u8]) -> Peer {
    use ProtocolError as Fault;
    let kind = unfinished.first().copied().unwrap_or_default();
    let line = || String::from_utf8_lossy(&unfinished[1..unfinished.len() - 2]).into_owned();
    match error {
        // It knows the parts of streamed replies, which are refused here.
        Fault::UnknownType(b'.' | b';') => Peer::Starved,
        Fault::UnknownType(_) => Peer::Refused,
        Fault::Streamed(_) => Peer::NotRefused,
        // It reads the two bytes after a null instead of searching for the end of its line.
        Fault::BareCarriageReturn | Fault::BareLineFeed | Fault::LineTooLong
            if kind == b'_' && unfinished.len() > 2 =>
        {
            Peer::Refused
        }
        // It reads no line before its CRLF.
        Fault::BareCarriageReturn | Fault::BareLineFeed => Peer::Starved,
        // It has larger limits, or none.
        Fault::LineTooLong | Fault::ReplyTooLarge => Peer::Starved,
        Fault::BulkTooLong { length } if *length <= PEER_BULK_MAX => Peer::Starved,
        Fault::TooManyElements { count } if *count <= PEER_COUNT_MAX => Peer::Starved,
        Fault::BulkTooLong { .. } | Fault::TooManyElements { .. } => Peer::Refused,
        Fault::TooDeep => Peer::NotRefused,
        // It reads doubles as Rust does: "1.", ".5", "infinity".
        Fault::BadDouble if line().parse::<f64>().is_ok() => Peer::NotRefused,
        // It accepts leading zeros and a negative zero, and lengths up to its own limits.
        Fault::BadInteger if is_padded(&line()) && line().parse::<i64>().is_ok() => {
            Peer::NotRefused
        }
        Fault::BadBigNumber if is_padded(&line()) => Peer::NotRefused,
        Fault::BadLength(kind) if is_padded(&line()) && !line().starts_with(['+', '-']) => {
            let most = if b"$!=".contains(kind) {
                PEER_BULK_MAX
            } else {
                PEER_COUNT_MAX
            };
            let is_taken = line().parse().is_ok_and(|length: u64| length <= most);
            if is_taken {
                Peer::NotRefused
            } else {
                Peer::Refused
            }
        }
        // It accepts an empty push, and one inside a reply.
        Fault::EmptyPush => Peer::Complete(seen.len()),
        Fault::NestedPush => Peer::Starved,
        // It waits for the whole body, and for both bytes of the CRLF.
        Fault::BadVerbatim if is_header(unfinished) => Peer::Starved,
        Fault::MissingCrlf if !is_terminated(unfinished) => Peer::Starved,
        // All of these are errors for it as well.
        Fault::BadInteger | Fault::BadDouble | Fault::BadBigNumber | Fault::BadNull => {
            Peer::Refused
        }
        Fault::BadBoolean | Fault::BadLength(_) | Fault::BadVerbatim | Fault::MissingCrlf => {
            Peer::Refused
        }
        other => panic!("an error that is missing in this table: {other:?}"),
    }
}

/// Is it a whole number, except for leading zeros or a negative zero?
fn is_padded(line: &str) -> bool {
    let digits = line.strip_prefix(['+', '-']).unwrap_or(line);
    let is_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_digits && (digits.len() > 1 && digits.starts_with('0') || line == "-0")
}

/// Is it the header of a string, without any of its body?
fn is_header(item: &[u8]) -> bool {
    line_end(item).is_some_and(|end| end + 2 == item.len())
}

/// Are both bytes of the CRLF after a string's body there?
fn is_terminated(item: &[u8]) -> bool {
    let Some(end) = line_end(item) else {
        return false;
    };
    let length = std::str::from_utf8(&item[1..end])
        .ok()
        .and_then(|text| text.parse().ok());
    length.is_some_and(|length: usize| item.len() >= end + 2 + length + 2)
}

/// The items of a reply without their nesting, and the properties in which the decoders differ
/// although nothing is refused here.
struct Items<'a> {
    /// Does a verbatim string have a colon in its format? For the other decoder, the first colon
    /// ends the format, which must have three bytes.
    has_odd_verbatim: bool,
    /// Is the last item a null with bytes before the end of its line, which has not arrived? The
    /// other decoder reads the two bytes after it, and does not wait for more.
    has_begun_null: bool,
    /// The bytes after the last complete item.
    unfinished: &'a [u8],
}

impl<'a> Items<'a> {
    fn of(seen: &'a [u8]) -> Self {
        let mut rest = seen;
        let mut has_odd_verbatim = false;
        while let Some(length) = item_length(rest) {
            has_odd_verbatim |= is_odd_verbatim(&rest[..length]);
            rest = &rest[length..];
        }
        let has_begun_null = rest.len() > 2 && rest[0] == b'_';
        Self {
            has_odd_verbatim,
            has_begun_null,
            unfinished: rest,
        }
    }
}

/// The length of the first item: a value, or the header of an aggregate. `None` if it is refused or
/// incomplete.
fn item_length(bytes: &[u8]) -> Option<usize> {
    let kind = bytes.first()?;
    if !b"*~%>|".contains(kind) || bytes.starts_with(b"*-1\r\n") {
        return decode(bytes).ok()?.map(|(_, used)| used);
    }
    let end = line_end(bytes)?;
    let text = std::str::from_utf8(&bytes[1..end]).ok()?;
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !is_padded(text);
    let count = text.parse();
    (digits && count.is_ok_and(|count: usize| count <= ELEMENTS_MAX)).then_some(end + 2)
}

/// The position of the CRLF that ends the first line.
fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|two| two == b"\r\n")
}

fn is_odd_verbatim(item: &[u8]) -> bool {
    matches!(decode(item), Ok(Some((Reply::Verbatim { format, .. }, _))) if format.contains(&b':'))
}

/// The other decoder's next reply, without the attributes before it.
fn ask(data: &[u8]) -> Result<(Frame, usize), ParseError> {
    let mut rest = Bytes::copy_from_slice(data);
    loop {
        let (frame, behind) = parse_frame(rest)?;
        if !matches!(frame, Frame::Attribute(_)) {
            return Ok((frame, data.len() - behind.len()));
        }
        rest = behind;
    }
}

fn value(frame: Frame) -> Value {
    let values = |frames: Vec<Frame>| frames.into_iter().map(value).collect();
    let pairs = |pairs: Vec<(Frame, Frame)>| {
        pairs
            .into_iter()
            .flat_map(|(name, value)| [name, value])
            .map(value)
            .collect()
    };
    match frame {
        Frame::SimpleString(text) => Value::Simple(text.to_vec()),
        Frame::Error(text) | Frame::BlobError(text) => Value::Error(text.to_vec()),
        Frame::Integer(value) => Value::Integer(value),
        Frame::BulkString(Some(bytes)) => Value::Bulk(bytes.to_vec()),
        Frame::BulkString(None) | Frame::Null => Value::Null,
        Frame::Array(None) => Value::NullArray,
        Frame::Double(value) => Value::Double(value.to_bits()),
        Frame::SpecialFloat(name) => match &name[..] {
            b"inf" => Value::Double(f64::INFINITY.to_bits()),
            b"-inf" => Value::Double(f64::NEG_INFINITY.to_bits()),
            name => {
                assert_eq!(name, b"nan");
                Value::Double(f64::NAN.to_bits())
            }
        },
        Frame::Boolean(value) => Value::Boolean(value),
        Frame::BigNumber(digits) => Value::BigNumber(digits.to_vec()),
        Frame::VerbatimString { payload } => {
            let format = payload[..3]
                .try_into()
                .expect("it has checked the format's length");
            Value::Verbatim(format, payload[4..].to_vec())
        }
        Frame::Array(Some(frames)) => Value::Array(values(frames)),
        Frame::Set(frames) => Value::Set(values(frames)),
        Frame::Push(frames) => Value::Push(values(frames)),
        Frame::Map(frames) => Value::Map(pairs(frames)),
        other => panic!("part of a streamed reply, or an attribute: {other:?}"),
    }
}
