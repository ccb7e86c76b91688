//! Redis-like nodes inside the process.
