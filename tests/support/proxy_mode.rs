//! What a [proxy](super::proxy) does with the bytes that it forwards.

use std::time::Duration;

/// What the proxy does with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Forwards all bytes at once.
    Pass,
    /// Forwards all bytes, each direction with this delay.
    Delay {
        to_server: Duration,
        to_client: Duration,
    },
    /// Commands arrive; replies are lost. A connection that has lost bytes delivers nothing more in
    /// that direction in any later mode, because TCP has no gaps.
    Swallow,
    /// Nothing arrives any more in either direction, without an error, as if the peer had
    /// disappeared or a firewall had forgotten the connection. Such connections do not recover.
    Vanish,
    /// Every reply arrives twice.
    Twice,
    /// One bit of what arrives at the client is another one.
    Alter,
    /// Replies arrive up to this many bytes, counted on each connection from the moment when the
    /// mode was set or the connection made; then both sides read the end of the stream. With 0, at
    /// the first byte of a reply.
    CutAfter(usize),
    /// The same, and then the client's connection is reset.
    ResetAfter(usize),
    /// The same number of bytes arrive, and then nothing more, without an end.
    StallAfter(usize),
    /// Each connection is reset, now or as soon as it is made.
    Reset,
    /// Forwards all bytes, one at a time.
    Bytewise,
    /// Each connection is closed, and the port refuses new ones.
    Refuse,
}

impl Mode {
    /// What it does, in a few words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "as it is",
            Self::Delay { .. } => "delayed",
            Self::Swallow => "replies swallowed",
            Self::Vanish => "half open",
            Self::Twice => "replies arrive twice",
            Self::Alter => "a bit of a reply altered",
            Self::CutAfter(_) => "replies cut off, end of stream",
            Self::ResetAfter(_) => "replies cut off, reset",
            Self::StallAfter(_) => "replies cut off, nothing more",
            Self::Reset => "reset all the time",
            Self::Bytewise => "byte by byte",
            Self::Refuse => "connections refused",
        }
    }
}
