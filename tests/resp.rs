//! The codec, and the fuzz targets' corpus. Nothing in this program starts a server.

mod corpus;
mod resp_properties;
mod resp_table;
mod resp_work;
