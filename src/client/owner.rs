//! The label in a lock's value, which shows whose it is.

#[cfg(doc)]
use super::LockClient;
use super::LockRequest;

/// The longest label of an owner, in bytes: enough for names of a host, a process and a thread.
pub(super) const OWNER_MAX: usize = 256;

impl LockRequest<'_> {
    /// Writes a label into the lock's value, behind the token, for
    /// [`inspect`](LockClient::inspect) and for people who look at the key. While the call waits,
    /// its entry in the nodes' queue has the label too. At most 256 bytes, none by default. Every
    /// client that can read the keys can read it.
    ///
    /// ```no_run
    /// # fn example(client: &redlatch::LockClient) -> Result<(), redlatch::LockError> {
    /// let lock = client.request("orders:42").owner("billing, release 7").lock()?;
    /// # drop(lock);
    /// # Ok(())
    /// # }
    /// ```
    pub fn owner(mut self, label: impl AsRef<[u8]>) -> Self {
        self.settings.owner = label.as_ref().to_vec();
        self
    }

    /// Sets an [owner](Self::owner) that names this host, process and thread: `host:pid:thread`.
    ///
    /// ```no_run
    /// # fn example(client: &redlatch::LockClient) -> Result<(), redlatch::LockError> {
    /// let lock = client.request("orders:42").owned_by_this_thread().lock()?;
    /// # drop(lock);
    /// # Ok(())
    /// # }
    /// ```
    pub fn owned_by_this_thread(self) -> Self {
        let thread = std::thread::current();
        let name = thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_owned);
        let mut label = format!("{}:{}:{name}", host(), std::process::id());
        let end = (0..=OWNER_MAX.min(label.len())).rev().find(|end| label.is_char_boundary(*end));
        label.truncate(end.unwrap_or(0));
        self.owner(label)
    }
}

/// The name of this machine.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    if name.trim().is_empty() { "unknown".to_owned() } else { name.trim().to_owned() }
}
