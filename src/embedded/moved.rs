//! Permits whose number the node gave to another client than a majority of the nodes did.
//!
//! The member of the holder has that number plus [`MOVED`] then. The number that the node first
//! gave it is free, and nobody else is given the other one.

use super::command::Call;
use super::script_steps::{digits, read_set};
use super::scripts::Raised;
use super::sharing::{Sharing, behind, member, split_digits};
use super::sorted_set::SortedSet;
use crate::node::command::PERMITS_MAX;

/// What is added to the number.
pub(super) const MOVED: u64 = PERMITS_MAX as u64;

/// Was this permit given to another client than the one with this member?
pub(super) fn is_taken(
    call: &mut Call<'_>,
    sharing: &Sharing<'_>,
    slot: &[u8],
    own: Option<&[u8]>,
) -> Result<bool, Raised> {
    let is_other = |it: &[u8]| split_digits(it).0 == slot && Some(it) != own;
    let is_taken = |set: &SortedSet| !slot.is_empty() && set.members().any(is_other);
    read_set(call, &sharing.holders, behind(17), is_taken)
}

/// The member of a client whose permit another client was given.
pub(super) fn moved_member(slot: &[u8], value: &[u8]) -> Vec<u8> {
    let number = digits(slot).unwrap_or(0).saturating_add(MOVED);
    member(number.to_string().as_bytes(), value)
}
