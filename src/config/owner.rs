//! The label that says who holds a lock, for people.

use std::{env, fs, process};

/// The longest label of an owner, in bytes: enough for names of a host, a process and a thread.
pub(crate) const OWNER_MAX: usize = 256;

/// No host's name is longer than this, and a label has room for it.
const HOST_MAX: usize = 240;

/// This host and process, for people: `host:pid`.
pub(crate) fn this_process() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| env::var("HOSTNAME"))
        .or_else(|_| env::var("COMPUTERNAME"))
        .unwrap_or_default();
    let host = name.trim();
    let is_name = (1..=HOST_MAX).contains(&host.len());
    format!(
        "{}:{}",
        if is_name { host } else { "unknown" },
        process::id()
    )
}
