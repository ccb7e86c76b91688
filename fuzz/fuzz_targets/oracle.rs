//! Feeds the fuzzer's bytes to the property `oracle`.

#![no_main]

#[path = "../properties/oracle.rs"]
mod property;
#[path = "../properties/slow_decoder.rs"]
mod slow_decoder;
#[path = "../properties/stream.rs"]
mod stream;
#[path = "../properties/value.rs"]
mod value;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
