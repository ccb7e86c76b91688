//! Decoding: whatever the bytes and however they are cut up, the outcome is the oracle's.

#[path = "oracle.rs"]
pub(crate) mod oracle;

use oracle::Value;
use redlatch::internal::resp::{Decoder, ProtocolError, decode};

/// Inputs up to this length are cut at every place, longer ones at about `PLACES`.
const EVERY_PLACE_MAX: usize = 512;
const PLACES: usize = 64;

/// Everything that a stream yields until it fails or starves.
#[derive(Debug, PartialEq)]
struct Outcome {
    replies: Vec<Value>,
    used: usize,
    error: Option<ProtocolError>,
}

/// Panics unless the decoder treats `data` as it should.
pub(crate) fn check(data: &[u8]) {
    let expected = by_oracle(data);
    assert_eq!(expected, feed(data, []), "whole");
    assert_eq!(expected, feed(data, 0..data.len()), "byte by byte");
    for cut in cuts(data.len()) {
        assert_eq!(expected, feed(data, [cut]), "cut at {cut}");
    }
    check_prefixes(data);
}

/// Every prefix either gives the first outcome of the whole, or is too short to tell.
fn check_prefixes(data: &[u8]) {
    let owned =
        |input| decode(input).map(|some| some.map(|(reply, used)| (Value::from(reply), used)));
    let whole = owned(data);
    for length in cuts(data.len()) {
        match (owned(&data[..length]), &whole) {
            (Ok(None), Ok(Some((_, used)))) => assert!(length < *used, "prefix of {length}"),
            (Ok(None), _) => {}
            (outcome, _) => assert_eq!(outcome, whole, "prefix of {length}"),
        }
    }
}

fn by_oracle(data: &[u8]) -> Outcome {
    let mut outcome = Outcome { replies: Vec::new(), used: 0, error: None };
    loop {
        match oracle::decode(&data[outcome.used..]) {
            Ok(Some((value, used))) => {
                outcome.replies.push(value);
                outcome.used += used;
            }
            Ok(None) => return outcome,
            Err(error) => {
                outcome.error = Some(error);
                return outcome;
            }
        }
    }
}

/// Hands `data` to one decoder as a connection would, cut into pieces at these places.
fn feed(data: &[u8], cuts: impl IntoIterator<Item = usize>) -> Outcome {
    let mut outcome = Outcome { replies: Vec::new(), used: 0, error: None };
    let mut decoder = Decoder::new();
    for arrived in cuts.into_iter().chain([data.len()]) {
        loop {
            let input = &data[outcome.used..arrived];
            match decoder.decode(input) {
                Ok(Some((reply, used))) => {
                    assert!((1..=input.len()).contains(&used), "used {used} of {}", input.len());
                    outcome.replies.push(reply.into());
                    outcome.used += used;
                }
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.decode(b"+OK\r\n"), Err(error.clone()), "failed for good");
                    outcome.error = Some(error);
                    return outcome;
                }
            }
        }
    }
    outcome
}

fn cuts(length: usize) -> impl Iterator<Item = usize> {
    (0..=length).step_by(if length <= EVERY_PLACE_MAX { 1 } else { length / PLACES })
}
