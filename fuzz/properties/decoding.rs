//! All properties of decoding together, for tests that check them with their own bytes.

mod chunks;
mod decode;
mod oracle;
mod peer;
mod slow_decoder;
mod stream;
pub(super) mod value;

/// Checks them with these bytes.
pub(super) fn hold(bytes: &[u8]) {
    decode::check(bytes);
    chunks::check(bytes);
    oracle::check(bytes);
    peer::check(bytes);
}
