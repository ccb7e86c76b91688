//! The random value that identifies the holder of a lock.

use std::fmt;

/// The value of a lock's key: 20 random bytes, new for every attempt.
///
/// Twenty bytes from the operating system's generator are what the Redlock description asks for.
/// They are sent as they are: keys and values are binary-safe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token([u8; Self::LEN]);

impl Token {
    /// Bytes in a token.
    pub const LEN: usize = 20;

    /// The token with these bytes.
    pub const fn new(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Shows only the first bytes, for logs: knowledge of the whole token is enough to release the
/// lock.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:02x}{:02x}..)", self.0[0], self.0[1])
    }
}

/// The inputs of an attempt: random numbers, drawn together, and the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct Entropy {
    /// The token of the new lock.
    pub token: Token,
    /// The seed of the random pause after this attempt, if it fails.
    pub seed: u64,
    /// Microseconds since 1970 by this machine's wall clock: the least value of a new counter.
    pub wall: u64,
}

impl Entropy {
    /// How many random bytes an attempt takes.
    pub const LEN: usize = Token::LEN + 8;

    /// Splits these random bytes into a token and a seed.
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        let mut token = [0; Token::LEN];
        let mut seed = [0; 8];
        token.copy_from_slice(&bytes[..Token::LEN]);
        seed.copy_from_slice(&bytes[Token::LEN..]);
        Self { token: Token::new(token), seed: u64::from_le_bytes(seed), wall: 0 }
    }

    /// The same random numbers with this wall clock.
    pub fn at(self, wall: u64) -> Self {
        Self { wall, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drawn_byte_is_used_once() {
        let bytes: [u8; Entropy::LEN] = std::array::from_fn(|index| index as u8);
        let draw = Entropy::from_bytes(bytes).at(7);
        assert_eq!(draw.token.as_bytes(), &bytes[..20]);
        assert_eq!(draw.seed.to_le_bytes(), bytes[20..]);
        assert_eq!(draw.wall, 7);
    }

    #[test]
    fn debug_output_shows_only_the_first_bytes_of_a_token() {
        let text = format!("{:?}", Token::new([0xAB; 20]));
        assert_eq!(text, "Token(abab..)");
    }
}
