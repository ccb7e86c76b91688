//! Replies of a node as owned values, and their encoding.

use std::borrow::Cow;

/// The protocol version of a connection, which `HELLO` changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Protocol {
    /// RESP2, the version of a new connection.
    #[default]
    Resp2 = 2,
    /// RESP3: with maps, a separate null, and verbatim strings.
    Resp3 = 3,
}

/// A node's reply to one command.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OwnedReply {
    /// A simple string such as `+OK`.
    Simple(Cow<'static, [u8]>),
    /// An error: its code, a space, its text. Has no line break.
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    /// A floating-point number: a bulk string in RESP2.
    Double(f64),
    /// Text for people, such as `INFO`: a bulk string in RESP2, a verbatim string in RESP3.
    Text(String),
    /// Null: a null bulk string in RESP2.
    Null,
    Array(Vec<OwnedReply>),
    /// A map: a flat array in RESP2.
    Map(Vec<(OwnedReply, OwnedReply)>),
    /// A push message of RESP3, which is not a reply: an array in RESP2.
    Push(Vec<OwnedReply>),
    /// Messages one after the other, which a command has instead of a reply.
    Messages(Vec<OwnedReply>),
}

impl OwnedReply {
    pub const OK: Self = Self::simple("OK");

    pub(super) const fn simple(text: &'static str) -> Self {
        Self::Simple(Cow::Borrowed(text.as_bytes()))
    }

    pub(super) fn bulk(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Bulk(bytes.into())
    }

    /// Appends the reply to `out`, encoded in `protocol`.
    pub fn encode(&self, protocol: Protocol, out: &mut Vec<u8>) {
        let resp3 = protocol == Protocol::Resp3;
        match self {
            Self::Simple(text) => line(out, b'+', text),
            Self::Error(text) => line(out, b'-', text),
            Self::Integer(value) => line(out, b':', value.to_string().as_bytes()),
            Self::Bulk(bytes) => blob(out, b'$', &[bytes]),
            Self::Double(number) if resp3 => line(out, b',', decimal(*number).as_bytes()),
            Self::Double(number) => blob(out, b'$', &[decimal(*number).as_bytes()]),
            Self::Text(text) if resp3 => blob(out, b'=', &[b"txt:", text.as_bytes()]),
            Self::Text(text) => blob(out, b'$', &[text.as_bytes()]),
            Self::Null if resp3 => out.extend_from_slice(b"_\r\n"),
            Self::Null => out.extend_from_slice(b"$-1\r\n"),
            Self::Array(items) | Self::Push(items) => {
                let is_push = resp3 && matches!(self, Self::Push(_));
                line(
                    out,
                    if is_push { b'>' } else { b'*' },
                    items.len().to_string().as_bytes(),
                );
                items.iter().for_each(|item| item.encode(protocol, out));
            }
            Self::Messages(items) => items.iter().for_each(|item| item.encode(protocol, out)),
            Self::Map(pairs) => {
                let (kind, len) = if resp3 {
                    (b'%', pairs.len())
                } else {
                    (b'*', pairs.len() * 2)
                };
                line(out, kind, len.to_string().as_bytes());
                for (name, value) in pairs {
                    name.encode(protocol, out);
                    value.encode(protocol, out);
                }
            }
        }
    }
}

/// A number of things.
pub(super) fn count(amount: usize) -> OwnedReply {
    OwnedReply::Integer(i64::try_from(amount).unwrap_or(i64::MAX))
}

fn line(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    out.push(kind);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn blob(out: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    line(out, kind, len.to_string().as_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.extend_from_slice(b"\r\n");
}

/// A number as Redis prints it: with 17 digits, as by `%.17g` in C.
pub(super) fn decimal(number: f64) -> String {
    const DIGITS: i32 = 17;
    if !number.is_finite() {
        return number.to_string().to_ascii_lowercase();
    }
    if number.trunc() == number && number.abs() < 1e17 {
        return (number as i64).to_string();
    }
    let scientific = format!("{number:.16e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        return without_zeroes(&format!("{number:.decimals$}")).to_owned();
    }
    let digits = without_zeroes(digits);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// A decimal number without what says nothing behind its point.
fn without_zeroes(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

/// The result of a command: a reply, or an error reply.
pub(super) type CommandResult = Result<OwnedReply, CommandError>;

#[derive(Debug)]
pub(super) struct CommandError(pub(super) Vec<u8>);

impl CommandError {
    /// An error whose text begins with its code. A line break in the text, which may come from a
    /// client, would end the reply early, so it becomes a space, as in Redis.
    pub(super) fn new(text: impl Into<Vec<u8>>) -> Self {
        let mut text = text.into();
        for byte in &mut text {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        Self(text)
    }

    pub(super) fn syntax() -> Self {
        Self::new("ERR syntax error")
    }

    pub(super) fn wrong_type() -> Self {
        Self::new("WRONGTYPE Operation against a key holding the wrong kind of value")
    }

    pub(super) fn invalid_expire(command: &str) -> Self {
        Self::new(format!("ERR invalid expire time in '{command}' command"))
    }
}

pub(super) fn refuse<T>(text: impl Into<Vec<u8>>) -> Result<T, CommandError> {
    Err(CommandError::new(text))
}

impl From<CommandError> for OwnedReply {
    fn from(failure: CommandError) -> Self {
        Self::Error(failure.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(reply: &OwnedReply, protocol: Protocol) -> String {
        let mut out = Vec::new();
        reply.encode(protocol, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_reply_is_encoded_as_redis_does_in_both_protocols() {
        let pair = (OwnedReply::bulk("a"), OwnedReply::Integer(-1));
        let list = vec![OwnedReply::Null, OwnedReply::OK];
        let table = [
            (OwnedReply::simple("PONG"), "+PONG\r\n", "+PONG\r\n"),
            (
                OwnedReply::Error(b"ERR x".to_vec()),
                "-ERR x\r\n",
                "-ERR x\r\n",
            ),
            (OwnedReply::bulk(""), "$0\r\n\r\n", "$0\r\n\r\n"),
            (OwnedReply::Double(2.5), "$3\r\n2.5\r\n", ",2.5\r\n"),
            (OwnedReply::Null, "$-1\r\n", "_\r\n"),
            (
                OwnedReply::Text("hi".into()),
                "$2\r\nhi\r\n",
                "=6\r\ntxt:hi\r\n",
            ),
            (
                OwnedReply::Push(list.clone()),
                "*2\r\n$-1\r\n+OK\r\n",
                ">2\r\n_\r\n+OK\r\n",
            ),
            (
                OwnedReply::Array(list),
                "*2\r\n$-1\r\n+OK\r\n",
                "*2\r\n_\r\n+OK\r\n",
            ),
            (
                OwnedReply::Map(vec![pair]),
                "*2\r\n$1\r\na\r\n:-1\r\n",
                "%1\r\n$1\r\na\r\n:-1\r\n",
            ),
        ];
        for (reply, resp2, resp3) in table {
            assert_eq!(encoded(&reply, Protocol::Resp2), resp2);
            assert_eq!(encoded(&reply, Protocol::Resp3), resp3);
        }
    }

    #[test]
    fn numbers_are_printed_as_redis_does() {
        for (number, text) in [
            (17.0, "17"),
            (1_763_835_000_000.0, "1763835000000"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (-2.5, "-2.5"),
            (0.1, "0.10000000000000001"),
            (0.0, "0"),
            (1e17, "1e+17"),
            (-9_223_372_036_854_775_808.0, "-9.2233720368547758e+18"),
            (1e-7, "9.9999999999999995e-08"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(decimal(number), text);
        }
    }

    #[test]
    fn an_error_reply_has_no_line_breaks() {
        let reply = OwnedReply::from(CommandError::new("ERR a\r\n+OK\r\nb"));
        assert_eq!(encoded(&reply, Protocol::Resp2), "-ERR a  +OK  b\r\n");
    }
}
