//! What the scripts of locks do on a real server, step by step.

mod declared_keys;
mod forgotten;
mod rules;
