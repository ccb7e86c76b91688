//! Feeds the fuzzer's bytes to the property `chunks`.

#![no_main]

#[path = "../properties/chunks.rs"]
mod property;
#[path = "../properties/stream.rs"]
mod stream;
#[path = "../properties/value.rs"]
mod value;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
