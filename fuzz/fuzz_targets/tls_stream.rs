//! Feeds the fuzzer's bytes to the property `tls_stream`.

#![no_main]

#[path = "../properties/input.rs"]
mod input;
#[path = "../properties/tls_stream.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
