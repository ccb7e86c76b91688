//! Random numbers. No other module asks the operating system for them.

use crate::engine::Entropy;

/// Fresh random numbers from the operating system, in one call.
pub(crate) fn draw() -> Option<Entropy> {
    let mut bytes = [0; Entropy::LEN];
    getrandom::fill(&mut bytes).ok()?;
    Some(Entropy::from_bytes(bytes))
}
