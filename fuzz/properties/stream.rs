//! The result of decoding a stream of replies.

use super::value::Value;
use redlatch_protocol::resp::{ProtocolError, decode};

/// All replies of a stream until an error or the end of the bytes.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) replies: Vec<Value>,
    /// The bytes of these replies.
    pub(crate) used: usize,
    pub(crate) error: Option<ProtocolError>,
}

impl Outcome {
    /// Passes `data` in one piece to a new decoder for each reply.
    pub(crate) fn of(
        data: &[u8],
        decode: impl Fn(&[u8]) -> Result<Option<(Value, usize)>, ProtocolError>,
    ) -> Self {
        let mut outcome = Self::default();
        loop {
            match decode(&data[outcome.used..]) {
                Ok(Some((value, used))) => {
                    outcome.replies.push(value);
                    outcome.used += used;
                }
                Ok(None) => return outcome,
                Err(error) => {
                    return Self {
                        error: Some(error),
                        ..outcome
                    };
                }
            }
        }
    }

    /// The same with the library's own decoder.
    pub(crate) fn of_one_shot(data: &[u8]) -> Self {
        Self::of(data, |input| {
            decode(input).map(|some| some.map(|(reply, used)| (Value::from(reply), used)))
        })
    }
}
