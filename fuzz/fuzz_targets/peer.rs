//! Feeds the fuzzer's bytes to the property `peer`.

#![no_main]

#[path = "../properties/peer.rs"]
mod property;
#[path = "../properties/value.rs"]
mod value;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
