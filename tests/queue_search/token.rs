//! The value of an attempt.

/// The value of an attempt. That of the first try of a call is also the waiter's id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Token {
    pub(crate) client: u8,
    pub(crate) attempt: u16,
}
