//! Servers inside the process, Redis nodes and a ZooKeeper ensemble: what they do when they stop,
//! and that they reply as the real ones do.

mod conformance;
mod ensemble;
mod nodes;
