//! A password, and looking for it where it must not be.

use std::fmt::{Debug, Display};

pub const SECRET: &str = "s3cr3t-w0rd";

/// What the value says about itself, which must not be the password.
#[track_caller]
pub fn shown(value: &(impl Debug + Display)) -> String {
    let text = value.to_string();
    for shown in [&text, &format!("{value:?}"), &format!("{value:#?}")] {
        assert!(!shown.contains(SECRET) && !shown.contains("s3cr3t"), "{shown}");
    }
    text
}
