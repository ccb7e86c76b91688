//! The random numbers of the thread that runs, for code that draws some.

use redlatch_protocol::engine::Entropy;
use std::cell::Cell;

thread_local! {
    static NEXT: Cell<Option<Entropy>> = const { Cell::new(None) };
}

/// What was put here last, once.
pub(crate) fn draw() -> Option<Entropy> {
    NEXT.take()
}

pub(crate) fn put(entropy: Entropy) {
    NEXT.set(Some(entropy));
}
