//! A distributed lock for programs that block.

mod client;
mod clock;
mod config;
mod endpoint;
mod engine;
pub mod error;
mod guard;
mod net;
mod node;
mod resp;

pub use client::LockClient;
pub use config::Builder;
pub use error::{ConfigError, ExtendError, LockError, Lost, NoQuorum, Problem, ReleaseError};
pub use guard::{LockGuard, Released};
pub use node::NodeStatus;

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
    pub mod endpoint {
        pub use crate::endpoint::*;
    }
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
