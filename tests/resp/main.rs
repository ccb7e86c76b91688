//! The codec, and the fuzz targets' corpus. Nothing in this program starts a server.

#![allow(
    clippy::duplicate_mod,
    reason = "several modules include the same fuzz properties"
)]

mod corpus;
mod properties;
mod table;
mod work;
