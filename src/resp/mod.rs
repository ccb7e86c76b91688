//! RESP2 and RESP3 syntax.
