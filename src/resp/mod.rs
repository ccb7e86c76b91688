//! RESP2 and RESP3 syntax: commands to bytes, bytes to replies.
//!
//! The bytes that arrive are not trusted. A server may be stopped in the middle of a reply, a proxy
//! may cut it, and what listens on the port may not be a Redis at all. So:
//!
//! - [`Decoder`] is handed a slice and never waits: a reply that is not there yet is `Ok(None)`.
//!   It remembers how far it has looked, so bytes that trickle in one at a time cost no more in
//!   total than bytes that come together, and the outcome is the same however they were cut up.
//! - [`Reply`] borrows from that slice. Decoding allocates nothing, recurses nowhere, and believes
//!   no header: a length is held against the limits below before anything is done with it.
//! - A [`ProtocolError`] is final. What follows the fault cannot be told from what belongs to it,
//!   so a decoder that failed stays failed, and its connection has to be closed.
//!
//! Numbers are read as strictly: a length such as `05`, or an integer such as `-0`, is an error.
//!
//! This module knows no Redis command and no lock; what a reply means is for `node` to say.
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
//! | attribute | `\|1` | checked and skipped: it prefixes a value and is none |
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
pub use encode::encode_command;
pub use error::ProtocolError;
pub use reply::{Elements, Iter, Reply};

/// The longest line, in bytes between the type byte and the CRLF: 4 KiB.
///
/// Lines are numbers, statuses and error messages. The longest that servers send are errors with
/// the message of a Lua script in them, a few hundred bytes.
pub const LINE_MAX: usize = 4 * 1024;

/// The longest body of a bulk string, bulk error or verbatim string, in bytes: 64 KiB.
///
/// Lock values are 20 bytes; the longest reply that this library asks for is INFO's, and all of
/// its sections together take less than 10 KiB.
pub const BULK_MAX: usize = 64 * 1024;

/// The greatest count in the header of an aggregate: 64. A map has that many pairs.
///
/// The widest reply that this library asks for is HELLO's, with 7 pairs.
pub const ELEMENTS_MAX: usize = 64;

/// How deep aggregates may nest, attributes included: 8.
///
/// Nothing that this library asks for nests deeper than 3. The decoder's memory is this many
/// counters, which is why it needs no heap.
pub const DEPTH_MAX: usize = 8;

/// The most bytes that one reply may take, its attributes included: 256 KiB.
///
/// The other limits multiplied would allow replies of gigabytes. This one bounds what a connection
/// has to buffer while it waits for the end of a reply.
pub const REPLY_MAX: usize = 256 * 1024;

/// What ends every line and every body.
const CRLF: &[u8; 2] = b"\r\n";
