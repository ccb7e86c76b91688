//! Decoding, compared with a second decoder that is slow and simple.

use super::slow_decoder;
use super::stream::Outcome;

/// Panics unless both decoders have the same result for `data`: the same replies from the same
/// bytes, and the same error at the same place.
pub(crate) fn check(data: &[u8]) {
    assert_eq!(
        Outcome::of_one_shot(data),
        Outcome::of(data, slow_decoder::decode)
    );
}
