//! TLS over a socket pair.
