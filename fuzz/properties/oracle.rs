//! Decoding, held against a second decoder that is slow and obvious.

use super::slow_decoder;
use super::stream::Outcome;

/// Panics unless the decoder makes of `data` what the slow one makes of it: the same replies from
/// the same bytes, and the same fault at the same place.
pub(crate) fn check(data: &[u8]) {
    assert_eq!(Outcome::of_one_shot(data), Outcome::of(data, slow_decoder::decode));
}
