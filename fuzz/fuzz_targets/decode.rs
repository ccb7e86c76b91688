//! Feeds the fuzzer's bytes to the property `decode`.

#![no_main]

#[path = "../properties/decode.rs"]
mod property;
#[path = "../properties/value.rs"]
mod value;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
