//! Jute, ZooKeeper's encoding: numbers, texts and lists, in frames.
//!
//! | type | bytes | here |
//! |---|---|---|
//! | frame | its length as an int, then that many bytes | [`frame`], [`FrameWriter`] |
//! | int, long | 4 and 8, the most significant first | `i32`, `i64` |
//! | boolean | 1: zero or one | `bool` |
//! | buffer | its length as an int, then the bytes; length -1: null | `Option<&[u8]>` |
//! | ustring | the same, UTF-8 | `&str`; null is refused |
//! | vector | the number of items as an int, then the items | [`Reader::count`] |
//!
//! [`Reader`] takes a slice and never waits. It neither allocates nor recurses, and checks each
//! length against the bytes that are there before it uses it.

mod error;
mod reader;
mod writer;

pub use error::JuteError;
pub use reader::{Reader, frame};
pub use writer::FrameWriter;

/// The longest frame that is accepted, in bytes without its length: 16 MiB.
///
/// Servers limit the data of a znode to `jute.maxbuffer`, 1 MB by default, but a list of children
/// may be longer: 100,000 contenders have 6 MB.
pub const FRAME_MAX: usize = 16 * 1024 * 1024;

/// The longest frame that is sent, in bytes without its length. Servers close the connection above
/// `jute.maxbuffer`, which is 1,048,575 by default.
pub const SENT_MAX: usize = 1_000_000;

/// The length that stands for null.
const NULL: i32 = -1;
