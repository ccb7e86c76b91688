//! Building a client from URLs and settings.

use super::LockClient;
use crate::config::{Builder, NodeUrls};
use crate::core::Core;
use crate::error::Error;
use std::sync::Arc;

impl LockClient {
    /// A client of these nodes with the default settings, as `builder().nodes(urls).build()` makes
    /// it: of several, or of one. [`Builder::nodes`] has the forms of a URL. Connects to nothing
    /// yet.
    ///
    /// ```
    /// # use redlatch::{Error, LockClient};
    /// let urls = ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"];
    /// let client = LockClient::new(urls)?;
    /// let client_of_one_node = LockClient::new("redis://localhost")?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    pub fn new<Form: ?Sized>(urls: impl NodeUrls<Form>) -> Result<Self, Error> {
        Self::builder().nodes(urls).build()
    }

    /// Starts a client with settings other than the defaults, or with the nodes in an
    /// [environment variable](Builder::nodes_from_env).
    ///
    /// ```
    /// # use redlatch::{Error, LockClient};
    /// # use std::time::Duration;
    /// let client = LockClient::builder()
    ///     .nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
    ///     .node_timeout(Duration::from_millis(20))
    ///     .build()?;
    /// # Ok::<(), Error>(())
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
    /// [`Error::Config`]: a setting is out of range, there is no node or too many, a URL cannot be
    /// used, two URLs are the same server, or the operating system provides no poll, or no thread
    /// for [`io_thread`](Self::io_thread).
    pub fn build(self) -> Result<LockClient, Error> {
        Ok(LockClient { core: Arc::new(Core::new(self.check()?)?) })
    }
}
