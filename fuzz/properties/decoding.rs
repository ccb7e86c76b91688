//! All the properties of decoding together, for tests that hold them for bytes of their own.

mod chunks;
mod decode;
mod oracle;
mod peer;
mod slow_decoder;
mod stream;
pub(super) mod value;

/// Holds them for these bytes.
pub(super) fn hold(bytes: &[u8]) {
    decode::check(bytes);
    chunks::check(bytes);
    oracle::check(bytes);
    peer::check(bytes);
}
