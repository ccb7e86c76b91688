//! The conversation with one node.
pub mod script;
