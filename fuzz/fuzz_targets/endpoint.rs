//! Feeds the fuzzer's bytes to the property `endpoint`.

#![no_main]

#[path = "../properties/endpoint.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
