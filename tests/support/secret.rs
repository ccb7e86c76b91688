//! A password, and checks that it is not shown.

use std::fmt::{Debug, Display};

pub const SECRET: &str = "s3cr3t-w0rd";

/// The value as text, after a check that it does not show the password.
#[track_caller]
pub fn shown(value: &(impl Debug + Display)) -> String {
    let text = value.to_string();
    for shown in [&text, &format!("{value:?}"), &format!("{value:#?}")] {
        assert!(
            !shown.contains(SECRET) && !shown.contains("s3cr3t"),
            "{shown}"
        );
    }
    text
}
