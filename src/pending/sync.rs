//! The mutex of a slot. tests/slot_model puts a model checker's in place of this file.

pub(super) use std::sync::{Mutex, MutexGuard, PoisonError};
