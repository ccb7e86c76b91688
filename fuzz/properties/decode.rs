//! Decoding in one piece: for any bytes, it ends, checks each header, and allocates nothing.

use super::value::Value;
use allocation_counter::measure;
use redlatch_protocol::resp::{DEPTH_MAX, Elements, ProtocolError, Reply, decode};

/// Inputs up to this length are cut at every byte, longer ones at about `PLACES` bytes.
const EVERY_PLACE_MAX: usize = 512;
const PLACES: usize = 64;

/// The shortest value on the wire, such as a null: its type byte and the CRLF.
const VALUE_MIN: usize = 3;

/// Panics unless the decoder treats `data` as it should.
pub(crate) fn check(data: &[u8]) {
    let mut decoded = Ok(None);
    let mut values = 0;
    let allocations = measure(|| {
        decoded = decode(data);
        if let Ok(Some((reply, used))) = &decoded {
            values = walk(*reply, &data[..*used], 0);
        }
    });
    assert_eq!(allocations.count_total, 0, "decoding allocates nothing");
    match &decoded {
        Ok(Some((reply, used))) => {
            assert!(
                (1..=data.len()).contains(used),
                "used {used} of {}",
                data.len()
            );
            assert!(
                values * VALUE_MIN <= *used,
                "{values} values in {used} bytes"
            );
            let alone = Ok(Some((Value::from(*reply), *used)));
            assert_eq!(owned(&data[..*used]), alone, "without what follows");
        }
        Ok(None) => {}
        Err(error) => assert!(
            error.to_string().len() < 200,
            "the error does not quote its input"
        ),
    }
    check_prefixes(data);
}

/// Reads the whole reply. Returns the number of its values.
fn walk(reply: Reply<'_>, input: &[u8], depth: usize) -> usize {
    assert!(depth <= DEPTH_MAX);
    match reply {
        Reply::Simple(bytes) | Reply::Error(bytes) | Reply::Bulk(bytes) => inside(bytes, input),
        Reply::BigNumber(bytes) | Reply::Verbatim { text: bytes, .. } => inside(bytes, input),
        Reply::Array(elements) | Reply::Map(elements) => walk_all(elements, input, depth),
        Reply::Set(elements) | Reply::Push(elements) => walk_all(elements, input, depth),
        _ => 1,
    }
}

fn walk_all(elements: Elements<'_>, input: &[u8], depth: usize) -> usize {
    let values = elements
        .iter()
        .map(|element| walk(element, input, depth + 1));
    let (count, sum) = values.fold((0, 1), |(count, sum), inner| (count + 1, sum + inner));
    assert_eq!(count, elements.len());
    sum
}

/// Text is not copied: it lies within the decoded bytes.
fn inside(bytes: &[u8], input: &[u8]) -> usize {
    let whole = input.as_ptr_range();
    let part = bytes.as_ptr_range();
    assert!(
        whole.start <= part.start && part.end <= whole.end,
        "it points elsewhere"
    );
    1
}

/// Each prefix either has the outcome of the whole, or is incomplete.
fn check_prefixes(data: &[u8]) {
    let whole = owned(data);
    let step = if data.len() <= EVERY_PLACE_MAX {
        1
    } else {
        data.len() / PLACES
    };
    for length in (0..=data.len()).step_by(step) {
        match (owned(&data[..length]), &whole) {
            (Ok(None), Ok(Some((_, used)))) => assert!(length < *used, "prefix of {length}"),
            (Ok(None), _) => {}
            (outcome, _) => assert_eq!(outcome, whole, "prefix of {length}"),
        }
    }
}

fn owned(data: &[u8]) -> Result<Option<(Value, usize)>, ProtocolError> {
    decode(data).map(|some| some.map(|(reply, used)| (Value::from(reply), used)))
}
