//! RESP2 and RESP3 syntax: commands to bytes, bytes to replies.
//!
//! Received bytes are not trusted. A server may stop in the middle of a reply, a proxy may cut it
//! off, and the program that listens on the port may be no Redis at all. So:
//!
//! - [`Decoder`] takes a slice and never waits: an incomplete reply is `Ok(None)`. It remembers how
//!   far it has scanned, so bytes that arrive one at a time take no more work in total than bytes
//!   that arrive together. The result does not depend on how they were split.
//! - [`Reply`] borrows from that slice. Decoding does not allocate or recurse, and checks each
//!   length against the limits below before it uses it.
//! - A [`ProtocolError`] is final. The end of the faulty reply is unknown, so a decoder that failed
//!   stays failed, and its connection must be closed.
//!
//! Numbers are also read strictly: a length such as `05` or an integer such as `-0` is an error.
//!
//! This module knows neither Redis commands nor locks. The module `node` knows what a reply means.
//!
//! | type | bytes | here |
//! |---|---|---|
//! | simple string, error | `+OK`, `-ERR no` | [`Reply::Simple`], [`Reply::Error`] |
//! | bulk string, bulk error | `$2 OK`, `!6 ERR no` | [`Reply::Bulk`], [`Reply::Error`] |
//! | verbatim string | `=6 txt:OK` | [`Reply::Verbatim`] |
//! | integer, big number | `:1`, `(1` | [`Reply::Integer`], [`Reply::BigNumber`] |
//! | double, boolean | `,1.5`, `#t` | [`Reply::Double`], [`Reply::Boolean`] |
//! | null | `_`, `$-1`, and `*-1` | [`Reply::Null`], and [`Reply::NullArray`] |
//! | array, map, set, push | `*1`, `%1`, `~1`, `>1` | [`Reply::Array`] and so on |
//! | attribute | `\|1` | checked and skipped: it prefixes a value |
//! | streamed string, aggregate | `$?`, `*?` | refused: no server sends them |
//!
//! Source: the [RESP specification](https://redis.io/docs/latest/develop/reference/protocol-spec/).

mod decode;
mod error;
mod header;
mod reply;

pub use decode::{Decoder, decode};
pub use error::ProtocolError;
pub use reply::{Elements, Iter, Reply};

/// The longest line, in bytes between the type byte and the CRLF: 4 KiB.
///
/// Lines are numbers, statuses and error messages. The longest that servers send are errors of Lua
/// scripts, a few hundred bytes.
pub const LINE_MAX: usize = 4 * 1024;

/// The longest body of a bulk string, bulk error or verbatim string, in bytes: 64 KiB.
///
/// Lock values have 20 bytes. The longest reply to a command of this library is INFO's; all of its
/// sections together have less than 10 KiB.
pub const BULK_MAX: usize = 64 * 1024;

/// The greatest count in the header of an aggregate: 64. A map has that many pairs.
///
/// The longest aggregate in a reply to a command of this library is HELLO's, with 7 pairs.
pub const ELEMENTS_MAX: usize = 64;

/// How deep aggregates may nest, attributes included: 8.
///
/// No reply to a command of this library nests deeper than 3. The decoder has one counter per
/// level, so it needs no heap.
pub const DEPTH_MAX: usize = 8;

/// The most bytes that one reply may take, its attributes included: 256 KiB.
///
/// The product of the other limits would allow replies of gigabytes. This limit bounds the bytes
/// that a connection must buffer until a reply is complete.
pub const REPLY_MAX: usize = 256 * 1024;

/// The end of every line and every body.
const CRLF: &[u8; 2] = b"\r\n";

// Commands to bytes.

/// Appends a command as an array of bulk strings. Servers accept this form for arguments of any
/// bytes.
///
/// `out` keeps its capacity, so a buffer that is used again stops allocating. There is no limit on
/// the arguments here; servers take up to 512 MiB each. A command without arguments is an empty
/// array, to which servers do not reply.
pub fn encode_command(out: &mut Vec<u8>, args: &[&[u8]]) {
    encode_words(
        out,
        args.len(),
        b"",
        args.iter().map(|arg| Word::Bytes(arg)),
    );
}

/// An argument of a command. A number is written in decimal digits.
#[derive(Clone, Copy, Debug)]
pub enum Word<'a> {
    Bytes(&'a [u8]),
    /// A key, which is written behind the tag that says where in a cluster it is.
    Key(&'a [u8]),
    /// A key that begins with another one, and ends with this suffix.
    Derived(&'a [u8], &'a [u8]),
    Number(u64),
}

/// As [`encode_command`], for arguments that are in no list. `count` is how many they are, with a
/// last one that [`encode_number`] may append. `tag` stands before each key.
pub fn encode_words<'a, I>(out: &mut Vec<u8>, count: usize, tag: &[u8], words: I)
where
    I: IntoIterator<Item = Word<'a>>,
{
    header(out, b'*', count);
    let mut written = 0;
    // Not by `for`, which asks each part of a chain for each word.
    words.into_iter().for_each(|word| {
        match word {
            Word::Bytes(bytes) => bulk(out, bytes),
            Word::Key(key) if tag.is_empty() => bulk(out, key),
            Word::Key(key) => bulk_of(out, [tag, key, b""]),
            Word::Derived(key, suffix) => bulk_of(out, [tag, key, suffix]),
            Word::Number(number) => encode_number(out, number),
        }
        written += 1;
    });
    debug_assert!(
        (written..=written + 1).contains(&count),
        "the caller counts its words"
    );
}

/// Appends a number as the last argument of a command.
pub fn encode_number(out: &mut Vec<u8>, number: u64) {
    bulk(out, decimal(number, &mut [0; 20]));
}

fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    header(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(CRLF);
}

fn bulk_of(out: &mut Vec<u8>, parts: [&[u8]; 3]) {
    header(out, b'$', parts.iter().map(|part| part.len()).sum());
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.extend_from_slice(CRLF);
}

fn header(out: &mut Vec<u8>, type_byte: u8, count: usize) {
    // Most lengths have one digit or two: a line whose length is known needs no call to copy it.
    let one = b'0' + (count % 10) as u8;
    match count {
        0..10 => out.extend_from_slice(&[type_byte, one, b'\r', b'\n']),
        10..100 => {
            let ten = b'0' + (count / 10) as u8;
            out.extend_from_slice(&[type_byte, ten, one, b'\r', b'\n']);
        }
        _ => {
            out.push(type_byte);
            out.extend_from_slice(decimal(count as u64, &mut [0; 20]));
            out.extend_from_slice(CRLF);
        }
    }
}

/// The number in digits. Without `core::fmt`, which takes a tenth of the time of encoding.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    // Backwards, because the last digit is known first. `u64::MAX` has 20 digits.
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[first..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(args: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        encode_command(&mut out, args);
        out
    }

    #[test]
    fn numbers_and_lengths_are_written_in_decimal_digits() {
        for number in [0, 7, 9, 10, 57, 99, 100, 1_000, u64::MAX / 10, u64::MAX] {
            let mut out = Vec::new();
            encode_words(&mut out, 1, b"", [Word::Number(number)]);
            assert_eq!(out, encoded(&[number.to_string().as_bytes()]));
        }
        for length in [0, 1, 9, 10, 11, 99, 100, 101, 1_000] {
            let word = vec![b'w'; length];
            let one = [format!("${length}\r\n").as_bytes(), &word, b"\r\n"].concat();
            let all = [format!("*{length}\r\n").as_bytes(), &one.repeat(length)].concat();
            assert_eq!(
                encoded(&vec![&word[..]; length]),
                all,
                "{length} words of {length} bytes"
            );
        }
    }

    #[test]
    fn arguments_are_counted_and_not_quoted() {
        assert_eq!(encoded(&[b"PING"]), b"*1\r\n$4\r\nPING\r\n");
        assert_eq!(
            encoded(&[b"SET", b"a\r\nb\0", b"", b"\xff"]),
            b"*4\r\n$3\r\nSET\r\n$5\r\na\r\nb\0\r\n$0\r\n\r\n$1\r\n\xff\r\n"
        );
        assert_eq!(encoded(&[]), b"*0\r\n");
    }

    #[test]
    fn numbers_of_any_width_are_written_in_full() {
        for count in [0, 9, 10, 99, 100, 65_536, usize::MAX] {
            let mut out = Vec::new();
            header(&mut out, b'$', count);
            assert_eq!(out, format!("${count}\r\n").into_bytes());
        }
    }

    #[test]
    fn commands_are_appended_and_the_buffer_keeps_its_memory() {
        let mut out = Vec::with_capacity(64);
        let memory = out.as_ptr();
        encode_command(&mut out, &[b"PING"]);
        encode_command(&mut out, &[b"PING"]);
        assert_eq!(out, b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n");
        assert_eq!(out.as_ptr(), memory);
    }
}
