//! Handwritten commands: the files in `sequences/`. What the scripts do has tests of its own
//! (`tests/api/scripts/rules.rs`): a server and an embedded node run the same scripts.
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
    ("sorted_sets", include_str!("sequences/sorted_sets.txt")),
    ("hashes", include_str!("sequences/hashes.txt")),
    ("counters", include_str!("sequences/counters.txt")),
    ("inspect", include_str!("sequences/inspect.txt")),
    ("scan", include_str!("sequences/scan.txt")),
    ("queue_foreign", include_str!("sequences/queue_foreign.txt")),
    ("listen", include_str!("sequences/listen.txt")),
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
