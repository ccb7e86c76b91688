//! The random numbers of the thread that runs, for code that draws some.

use crate::random::Random;
use redlatch_protocol::engine::Entropy;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

thread_local! {
    static NEXT: Cell<Option<Entropy>> = const { Cell::new(None) };
    static SOURCE: RefCell<Option<Rc<RefCell<Random>>>> = const { RefCell::new(None) };
}

/// What was put here last, once; then numbers of the client that runs.
pub(crate) fn draw() -> Option<Entropy> {
    NEXT.take().or_else(|| {
        SOURCE.with_borrow(|source| {
            let random = source.as_ref()?;
            Some(entropy(&mut random.borrow_mut()))
        })
    })
}

pub(crate) fn put(entropy: Entropy) {
    NEXT.set(Some(entropy));
}

/// From now on numbers are drawn from these.
pub(crate) fn draw_from(random: &Rc<RefCell<Random>>) {
    SOURCE.set(Some(Rc::clone(random)));
}

fn entropy(random: &mut Random) -> Entropy {
    let mut bytes = [0; Entropy::LEN];
    for chunk in bytes.chunks_mut(8) {
        let number = random.number().to_le_bytes();
        chunk.copy_from_slice(&number[..chunk.len()]);
    }
    Entropy::from_bytes(bytes)
}
