//! `Debug` of errors that end a program: as people read it, because `main` prints that.

use std::fmt;

/// Writes an error, and below it what caused it:
///
/// ```text
/// setting tls: /etc/ca.pem cannot be read: No such file or directory (os error 2)
///
/// Caused by:
///     the cause, and the cause of that on the next line
/// ```
pub(super) fn write(error: &dyn std::error::Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{error}")?;
    let mut cause = error.source();
    if cause.is_some() {
        f.write_str("\n\nCaused by:")?;
    }
    while let Some(error) = cause {
        write!(f, "\n    {error}")?;
        cause = error.source();
    }
    Ok(())
}

macro_rules! debug {
    ($($error:ident $(<$value:ident>)?),+ $(,)?) => {$(
        /// As `Display`, with the causes below it: `main` prints this.
        impl $(<$value>)? fmt::Debug for super::$error $(<$value>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write(self, f)
            }
        }
    )+};
}

debug! {
    Error, ConfigError, LockLost, SpawnError,
}

#[cfg(feature = "registers")]
debug! {
    RegisterError, TransactionError, OncePerError,
}
