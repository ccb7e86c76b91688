//! A distributed lock for programs that block.

mod clock;
mod node;
mod resp;

#[cfg(feature = "embedded")]
pub mod embedded;

/// The pure layers, open to this crate's own tests, fuzz targets and benches. Not a public API.
#[doc(hidden)]
pub mod internal {
    pub use crate::clock::Time;
    #[cfg(feature = "embedded")]
    pub mod embedded {
        pub use crate::embedded::model::*;
    }
    pub mod node {
        pub use crate::node::*;
    }
    pub mod resp {
        pub use crate::resp::*;
    }
}
