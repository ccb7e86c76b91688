//! Feeds the fuzzer's bytes to the property `url`.

#![no_main]

#[path = "../properties/node_url.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
