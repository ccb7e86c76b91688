//! The value of an attempt.

use redlatch_protocol::engine;

/// The value of an attempt. That of the first try of a call is also the waiter's id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Token {
    pub(crate) client: u8,
    pub(crate) attempt: u16,
}

impl Token {
    /// As the library has it. They sort alike. The first four bytes are a number, by which clients
    /// begin at different permits.
    pub(crate) fn wide(self) -> engine::Token {
        let mut bytes = [0; engine::Token::LEN];
        bytes[0] = self.client;
        bytes[4..6].copy_from_slice(&self.attempt.to_be_bytes());
        engine::Token::new(bytes)
    }

    pub(crate) fn name(self) -> Vec<u8> {
        self.wide().as_bytes().to_vec()
    }

    pub(crate) fn read(name: &[u8]) -> Self {
        let token = Self {
            client: name[0],
            attempt: u16::from_be_bytes([name[4], name[5]]),
        };
        assert_eq!(token.name(), name, "a name of ours");
        token
    }
}
