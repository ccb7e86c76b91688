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
mod encode;
mod error;
mod header;
mod levels;
mod number;
mod reply;

pub use decode::{Decoder, decode};
pub use encode::{encode_command, encode_words};
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
