//! Errors whose texts stand at their variants, what they convert into, and what `main` prints of
//! them.

use std::fmt;

/// Makes an enum of errors with its `Display` and `source`. A variant has:
///
/// * `#[text("…", …)]`: its text, which names its fields, as for `write!`. It begins the variant's
///   documentation. A variant with one error and no text has that error's text and source.
/// * `#[cause(field)]`: the error in its text, whose source is the source of this one, so that a
///   chain of errors says nothing twice.
macro_rules! errors {
    ($(#[$meta:meta])* pub enum $name:ident {$(
        $(#[doc = $doc:literal])*
        $(#[cfg($cfg:meta)])?
        $(#[text($text:literal $($arguments:tt)*)])?
        $(#[cause($cause:ident)])?
        $variant:ident
            $({ $($field:ident: $type:ty),+ $(,)? })?
            $(($inner:ident: $inner_type:ty))?
    ),+ $(,)?}) => {
        $(#[$meta])*
        #[non_exhaustive]
        pub enum $name {$(
            $(#[doc = concat!("> ", $text, "\n\n")])?
            $(#[doc = $doc])*
            $(#[cfg($cfg)])?
            $variant $({ $($field: $type),+ })? $(($inner_type))?
        ),+}

        #[allow(unused_variables, reason = "not all fields are in a text, or have a source")]
        const _: () = {
            impl std::fmt::Display for $name {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    match self {$(
                        $(#[cfg($cfg)])?
                        Self::$variant $({ $($field),+ })? $(($inner))? => {
                            $crate::texts::errors!(@text f [$($text $($arguments)*)?] $($inner)?)
                        }
                    )+}
                }
            }

            impl std::error::Error for $name {
                fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                    match self {$(
                        $(#[cfg($cfg)])?
                        Self::$variant $({ $($field),+ })? $(($inner))? => {
                            $crate::texts::errors!(@source [$($text)?] [$($cause)?] $($inner)?)
                        }
                    )+}
                }
            }
        };
    };
    (@text $f:ident [] $inner:ident) => { std::fmt::Display::fmt($inner, $f) };
    (@text $f:ident [$($text:tt)+] $($inner:ident)?) => { write!($f, $($text)+) };
    (@source [$($text:literal)?] [$cause:ident] $($inner:ident)?) => {
        std::error::Error::source($cause)
    };
    (@source [] [] $inner:ident) => { std::error::Error::source($inner) };
    (@source [$text:literal] [] $($inner:ident)?) => { None };
}

/// `From` of errors that are variants of another one.
macro_rules! from {
    ($into:ty: $($error:ident => $variant:ident),+ $(,)?) => {$(
        impl From<$error> for $into {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )+};
}

/// Writes an error, and below it what caused it:
///
/// ```text
/// setting tls: /etc/ca.pem cannot be read: No such file or directory (os error 2)
///
/// Caused by:
///     the cause, and the cause of that on the next line
/// ```
pub(crate) fn write(error: &dyn std::error::Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// `Debug` of errors that end a program: as people read it, because `main` prints that.
macro_rules! debug {
    ($($error:ident),+ $(,)?) => {$(
        /// As `Display`, with the causes below it: `main` prints this.
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::texts::write(self, f)
            }
        }
    )+};
}

pub(crate) use {debug, errors, from};
