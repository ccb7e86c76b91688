//! Which permit a waiter asks for in its turn.

use crate::node::{Place, Slot};
use crate::scheme::Scheme;
use crate::token::Token;

/// The slots that are free on a majority, as bits.
pub(crate) fn free_slots(places: &[Place], scheme: &Scheme) -> u8 {
    let count = |bit: &u8| places.iter().filter(|place| place.free & bit != 0).count();
    (0..8)
        .map(|slot| 1 << slot)
        .filter(|bit| count(bit) >= scheme.quorum())
        .sum()
}

/// The slot that a turn is for. The first turn names none, so that nodes on which the same slots
/// are free agree; each later one names another of those that are free on a majority.
pub(crate) fn chosen_slot(id: Token, token: Token, free: u8) -> Slot {
    let turns = token.attempt - id.attempt;
    let slots: Vec<u8> = (0..8).filter(|slot| free & 1 << slot != 0).collect();
    let index = usize::from(token.client) + turns as usize;
    (turns > 1 && !slots.is_empty()).then(|| slots[index % slots.len()])
}
