//! Registers: the library's own loops, whose calls wait for the simulation.
//!
//! Not simulated: lists of registers, watching one, and the events of calls.

pub(crate) mod register;
pub(crate) mod transaction;
