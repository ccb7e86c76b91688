//! Replays the fuzz corpus: checks the properties of the fuzz targets, without a fuzzer.

use std::collections::BTreeSet;
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};

#[path = "../../fuzz/properties/chunks.rs"]
mod chunks;
#[path = "../../fuzz/properties/decode.rs"]
mod decode;
#[path = "../../fuzz/properties/embedded.rs"]
mod embedded;
#[path = "../../fuzz/properties/engine.rs"]
mod engine;
#[path = "../../fuzz/properties/input.rs"]
mod input;
#[path = "../../fuzz/properties/jute_reply.rs"]
mod jute_reply;
#[path = "../../fuzz/properties/node_url.rs"]
mod node_url;
#[path = "../../fuzz/properties/oracle.rs"]
mod oracle;
#[path = "../../fuzz/properties/peer.rs"]
mod peer;
#[path = "../../fuzz/properties/round_trip.rs"]
mod round_trip;
#[path = "../../fuzz/properties/session.rs"]
mod session;
#[path = "../../fuzz/properties/slow_decoder.rs"]
mod slow_decoder;
#[path = "../../fuzz/properties/stream.rs"]
mod stream;
#[cfg(target_os = "linux")]
#[path = "../../fuzz/properties/tls_stream.rs"]
mod tls_stream;
#[path = "../../fuzz/properties/value.rs"]
mod value;

/// Elsewhere the tests are built without TLS.
#[cfg(not(target_os = "linux"))]
mod tls_stream {
    pub(crate) fn check(_data: &[u8]) {}
}

/// One test per target, with its name, which replays its corpus.
macro_rules! replays {
    ($($target:ident: $corpus:literal)*) => {
        const REPLAYED: &[(&str, &str)] = &[$((stringify!($target), $corpus)),*];

        mod replay {
            $(
                #[test]
                fn $target() {
                    super::replay($corpus, super::$target::check);
                }
            )*
        }
    };
}

replays! {
    chunks: "resp"
    decode: "resp"
    embedded: "embedded"
    jute_reply: "jute_reply"
    node_url: "node_url"
    engine: "engine"
    oracle: "resp"
    peer: "resp"
    round_trip: "round_trip"
    session: "session"
    tls_stream: "tls_stream"
}

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

/// The files in a folder, without hidden ones.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is part of the repository");
    let entries = entries.map(|entry| entry.expect("the folder can be read"));
    let is_shown = |entry: &fs::DirEntry| !entry.file_name().as_encoded_bytes().starts_with(b".");
    entries.filter(is_shown).map(|entry| entry.path()).collect()
}

/// Runs `property` over every file of a corpus.
fn replay(corpus: &str, property: fn(&[u8])) {
    let files = entries(&fuzz().join("corpus").join(corpus));
    assert!(!files.is_empty(), "the corpus {corpus} is empty");
    for path in files {
        let data = fs::read(&path).expect("the file can be read");
        if let Err(cause) = panic::catch_unwind(|| property(&data)) {
            eprintln!("in {}", path.display());
            panic::resume_unwind(cause);
        }
    }
}

#[test]
fn every_target_has_a_corpus_that_is_replayed() {
    let stems = |folder: &str| -> BTreeSet<String> {
        let stem = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
        entries(&fuzz().join(folder))
            .into_iter()
            .filter_map(stem)
            .collect()
    };
    let targets: BTreeSet<String> = REPLAYED
        .iter()
        .map(|(target, _)| target.to_string())
        .collect();
    let corpora: BTreeSet<String> = REPLAYED
        .iter()
        .map(|(_, corpus)| corpus.to_string())
        .collect();
    assert_eq!(stems("fuzz_targets"), targets);
    assert_eq!(stems("corpus"), corpora);

    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).expect("it is there");
    let built = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("path = \"fuzz_targets/"));
    let built = built
        .filter_map(|rest| rest.strip_suffix(".rs\""))
        .map(str::to_owned);
    assert_eq!(built.collect::<BTreeSet<_>>(), targets);
}
