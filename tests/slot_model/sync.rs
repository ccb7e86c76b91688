//! Replaces `pending/sync.rs` by locks that loom can see into.

pub(crate) use loom::sync::{Mutex, MutexGuard};
pub(crate) use std::sync::PoisonError;
