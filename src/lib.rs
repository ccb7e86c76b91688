//! A distributed lock for programs that block.

mod clock;
mod engine;
mod node;
mod resp;

#[cfg(feature = "embedded")]
pub mod embedded;

/// The pure layers, open to this crate's own tests, fuzz targets and benches. Not a public API.
#[doc(hidden)]
pub mod internal {
    pub use crate::clock::Time;
    pub mod engine {
        pub use crate::engine::*;
    }
    pub mod node {
        pub use crate::node::*;
    }
    pub mod resp {
        pub use crate::resp::*;
    }
}
