//! The words of a command that the library has encoded.

use redlatch_protocol::resp::{Reply, decode};

/// The words of one encoded command.
pub fn words(bytes: &[u8]) -> Vec<&[u8]> {
    let Ok(Some((Reply::Array(words), _))) = decode(bytes) else {
        panic!("{bytes:?}")
    };
    let word = |word| match word {
        Reply::Bulk(word) => word,
        other => panic!("{other:?}"),
    };
    words.iter().map(word).collect()
}
