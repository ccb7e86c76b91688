//! What the library's loops of registers know of their client.

use redlatch_protocol::engine::Rules;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) rules: Arc<Rules>,
    pub(crate) key_prefix: Vec<u8>,
}
