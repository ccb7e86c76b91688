//! The public interface, on Redis nodes and on ZooKeeper: what a program sees must not depend on
//! who keeps its locks, apart from what these tests name.

#![expect(clippy::unwrap_used, reason = "what a test cannot do fails it")]

mod ending;
mod errors;
mod holding;
mod leading;
mod shares;
mod taking;
mod waiting;

use std::time::Duration;

/// A ttl that outlasts every test, and a time that every wait in a test stays below.
const LONG: Duration = Duration::from_secs(50);
const LIMIT: Duration = Duration::from_secs(40);
