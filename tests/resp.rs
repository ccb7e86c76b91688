//! The codec, and the fuzz targets' corpus. Nothing in this program starts a server.

#![expect(clippy::duplicate_mod, reason = "two modules use the same properties of fuzz/properties")]

mod corpus;
mod resp_properties;
mod resp_table;
mod resp_work;
