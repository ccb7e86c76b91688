//! Replays the fuzz corpus: the properties that the fuzz targets hold, without a fuzzer.

use std::fs;
use std::panic;
use std::path::Path;

#[path = "../fuzz/properties/decode.rs"]
mod decode;
#[path = "../fuzz/properties/endpoint.rs"]
mod endpoint;
#[path = "../fuzz/properties/round_trip.rs"]
mod round_trip;
#[path = "../fuzz/properties/session.rs"]
mod session;

/// Runs `property` over every file in the corpus of the fuzz target `name`.
fn replay(name: &str, property: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let mut files = 0;
    for entry in fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let path = entry.expect("the folder can be read").path();
        let data = fs::read(&path).expect("the file can be read");
        if let Err(cause) = panic::catch_unwind(|| property(&data)) {
            eprintln!("in {}", path.display());
            panic::resume_unwind(cause);
        }
        files += 1;
    }
    assert!(files > 0, "{} is empty", folder.display());
}

#[test]
fn decode_corpus() {
    replay("decode", decode::check);
}

#[test]
fn round_trip_corpus() {
    replay("round_trip", round_trip::check);
}

#[test]
fn endpoint_corpus() {
    replay("endpoint", endpoint::check);
}

#[test]
fn session_corpus() {
    replay("session", session::check);
}
