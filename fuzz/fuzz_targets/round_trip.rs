//! Feeds the fuzzer's bytes to the property `round_trip`.

#![no_main]

#[path = "../properties/round_trip.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
