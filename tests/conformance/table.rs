//! Handwritten commands: the files in `sequences/`.
//!
//! One command per line, words separated by one space; `rig.rs` replaces `{…}` and the escapes for
//! CR, LF and NUL. The line `wait` waits until a time to live of a few milliseconds has passed, and
//! `#` begins a comment. Each file begins with new connections to empty servers.

/// For servers without a password.
pub(crate) const SEQUENCES: &[(&str, &str)] = &[
    ("set", include_str!("sequences/set.txt")),
    ("set_refused", include_str!("sequences/set_refused.txt")),
    ("expiry", include_str!("sequences/expiry.txt")),
    ("keys", include_str!("sequences/keys.txt")),
    ("release", include_str!("sequences/release.txt")),
    ("extend", include_str!("sequences/extend.txt")),
    ("handoff", include_str!("sequences/handoff.txt")),
    ("claim", include_str!("sequences/claim.txt")),
    ("counters", include_str!("sequences/counters.txt")),
    ("fence", include_str!("sequences/fence.txt")),
    ("release_all", include_str!("sequences/release_all.txt")),
    ("leave", include_str!("sequences/leave.txt")),
    ("extend_all", include_str!("sequences/extend_all.txt")),
    ("inspect", include_str!("sequences/inspect.txt")),
    ("scan", include_str!("sequences/scan.txt")),
    ("remove", include_str!("sequences/remove.txt")),
    ("restore", include_str!("sequences/restore.txt")),
    ("queue", include_str!("sequences/queue.txt")),
    ("queue_release", include_str!("sequences/queue_release.txt")),
    ("queue_foreign", include_str!("sequences/queue_foreign.txt")),
    ("turn", include_str!("sequences/turn.txt")),
    ("leave_queue", include_str!("sequences/leave_queue.txt")),
    ("listen", include_str!("sequences/listen.txt")),
    ("shares", include_str!("sequences/shares.txt")),
    ("shares_queue", include_str!("sequences/shares_queue.txt")),
    ("scripts", include_str!("sequences/scripts.txt")),
    ("connection", include_str!("sequences/connection.txt")),
    ("unknown", include_str!("sequences/unknown.txt")),
];

/// For servers with the password `secret`.
pub(crate) const WITH_PASSWORD: &[(&str, &str)] = &[
    ("auth", include_str!("sequences/auth.txt")),
    ("hello_auth", include_str!("sequences/hello_auth.txt")),
    ("open", include_str!("sequences/open.txt")),
];
