//! Feeds the fuzzer's bytes to the property `embedded`.

#![no_main]

#[path = "../properties/input.rs"]
mod input;
#[path = "../properties/embedded.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
