//! Decoding in chunks: the outcome does not depend on how the bytes are split.

use super::stream::Outcome;
use super::value::Value;
use allocation_counter::measure;
use redlatch_protocol::engine::Jitter;
use redlatch_protocol::resp::Decoder;
use std::time::Duration;

/// Inputs up to this length are cut in two at every byte, longer ones at about `PLACES` bytes.
const EVERY_PLACE_MAX: usize = 512;
const PLACES: usize = 64;

/// How often an input is cut into pieces of random lengths, and the maximum length of these.
const RANDOM_CUTS: u64 = 4;
const PIECE_MAX: u64 = 24;

/// Panics unless `data` has the same outcome in any pieces.
pub(crate) fn check(data: &[u8]) {
    let expected = Outcome::of_one_shot(data);
    assert_eq!(expected, feed(data, []), "whole");
    assert_eq!(expected, feed(data, 0..data.len()), "byte by byte");
    let step = if data.len() <= EVERY_PLACE_MAX {
        1
    } else {
        data.len() / PLACES
    };
    for cut in (0..=data.len()).step_by(step) {
        assert_eq!(expected, feed(data, [cut]), "cut at {cut}");
    }
    for seed in 0..RANDOM_CUTS {
        let mut random = Jitter::from_seed(seed.wrapping_add(data.len() as u64));
        let mut at = 0;
        let cuts = std::iter::from_fn(|| {
            let most = Duration::from_nanos(PIECE_MAX >> seed);
            at += random.below(most).as_nanos() as usize;
            (at < data.len()).then_some(at)
        });
        assert_eq!(expected, feed(data, cuts), "cut with seed {seed}");
    }
}

/// Passes `data` to one decoder as a connection would, cut at these places.
fn feed(data: &[u8], cuts: impl IntoIterator<Item = usize>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut decoder = Decoder::new();
    for arrived in cuts.into_iter().chain([data.len()]) {
        loop {
            let input = &data[outcome.used..arrived];
            let mut decoded = Ok(None);
            let allocations = measure(|| decoded = decoder.decode(input));
            assert_eq!(allocations.count_total, 0, "decoding allocates nothing");
            match decoded {
                Ok(Some((reply, used))) => {
                    assert!(
                        (1..=input.len()).contains(&used),
                        "used {used} of {}",
                        input.len()
                    );
                    outcome.replies.push(Value::from(reply));
                    outcome.used += used;
                }
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(
                        decoder.decode(b"+OK\r\n"),
                        Err(error.clone()),
                        "failed for good"
                    );
                    outcome.error = Some(error);
                    return outcome;
                }
            }
        }
    }
    outcome
}
