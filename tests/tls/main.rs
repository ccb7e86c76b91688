//! The library over TLS, on real servers.
#![cfg(target_os = "linux")]

#[path = "../support/mod.rs"]
mod support;

mod harness;
