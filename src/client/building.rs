//! Building a client from URLs and settings.

use super::LockClient;
use crate::config::Builder;
use crate::core::Core;
use crate::error::ConfigError;
use std::sync::Arc;

impl LockClient {
    /// A client of these nodes with the default settings, as `builder().nodes(urls).build()` makes
    /// it. [`Builder::nodes`] has the forms of a URL. Connects to nothing yet.
    ///
    /// ```
    /// # use redlatch::{ConfigError, LockClient};
    /// let urls = ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"];
    /// let client = LockClient::new(urls)?;
    /// # Ok::<(), ConfigError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    pub fn new<I: IntoIterator<Item: Into<String>>>(urls: I) -> Result<Self, ConfigError> {
        Self::builder().nodes(urls).build()
    }

    /// Starts a client with settings other than the defaults, or with the nodes in an
    /// [environment variable](Builder::nodes_from_env).
    ///
    /// ```
    /// # use redlatch::{ConfigError, LockClient};
    /// # use std::time::Duration;
    /// let client = LockClient::builder()
    ///     .nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
    ///     .node_timeout(Duration::from_millis(20))
    ///     .build()?;
    /// # Ok::<(), ConfigError>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// Checks the settings and builds the client. Connects to nothing: that happens with the first
    /// lock, and no node needs to be up.
    ///
    /// # Errors
    ///
    /// A setting is out of range, there is no node or too many, a URL cannot be used, two URLs are
    /// the same server, or the operating system provides no poll, or no thread for
    /// [`io_thread`](Self::io_thread).
    pub fn build(self) -> Result<LockClient, ConfigError> {
        Ok(LockClient { core: Arc::new(Core::new(self.check()?)?) })
    }
}
