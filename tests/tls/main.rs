//! The library over TLS, on real servers.
//!
//! In this program, all servers, proxies and peers of `support` are reached over TLS. `./check`
//! runs other programs over TLS as well: see `support/transport.rs`.
#![cfg(target_os = "linux")]

mod connections;
mod groups;
mod handshakes;
mod harness;
mod identities;
mod records;
