//! Feeds the fuzzer's bytes to the property `jute_reply`.

#![no_main]

#[path = "../properties/jute_reply.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
