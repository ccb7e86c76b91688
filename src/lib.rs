//! A distributed lock for programs that block.

mod clock;
mod resp;

#[cfg(feature = "embedded")]
pub mod embedded;

/// The pure layers, open to this crate's own tests, fuzz targets and benches. Not a public API.
#[doc(hidden)]
pub mod internal {
    pub use crate::clock::Time;
    pub use crate::resp;
}
