//! The servers of a ZooKeeper ensemble, the session with them, and the settings that mean nothing
//! there.

use super::Builder;
use super::nodes::UrlEntry;
use super::settings::{ClientSettings, refused};
use crate::engine::NODES_MAX;
use crate::error::ConfigError;
use crate::net::TlsTarget;
use crate::node_url::{Address, EnsembleHost, EnsembleUrl, has_scheme, is_ensemble};
use redlatch_zookeeper::path::{Layout, Root};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The session timeout, unless it is set, and its limits.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);
const SESSION_TIMEOUT_MIN: Duration = Duration::from_millis(100);
const SESSION_TIMEOUT_MAX: Duration = Duration::from_secs(60 * 60);

/// An ensemble, and how a client presents itself to it.
pub(crate) struct EnsembleSettings {
    /// One at least.
    pub(crate) servers: Vec<EnsembleServer>,
    pub(crate) root: Root,
    pub(crate) layout: Layout,
    /// User, colon, password, for the authentication scheme `digest`.
    pub(crate) credentials: Option<Arc<[u8]>>,
    /// The timeout that the client asks for. The one that counts is what the ensemble answers.
    pub(crate) session_timeout: Duration,
}

#[derive(Debug)]
pub(crate) struct EnsembleServer {
    /// The URL of this server alone, without credentials.
    pub(crate) name: Arc<str>,
    pub(crate) address: Address,
    pub(crate) tls: Option<TlsTarget>,
}

impl Builder {
    /// How long a ZooKeeper ensemble keeps the session of a client that it does not hear from: 100
    /// ms to 1 h, by default 10 s. It is an error with Redis nodes.
    ///
    /// All locks of a client belong to one session. A client that died frees them after this time
    /// and up to one and a half ticks of the servers, **whatever their ttl**. A client that the
    /// ensemble does not answer counts its locks as lost after 3/7 to 4/7 of this time, before
    /// anyone else can have them. 10 s bear the restart of a leader, which takes a few seconds. The
    /// ensemble [has the last word](crate::guide::zookeeper#setting-it-up): what it grants counts.
    #[cfg_attr(docsrs, doc(cfg(feature = "zookeeper")))]
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.settings.session_timeout = Some(timeout);
        self
    }
}

impl ClientSettings {
    pub(super) fn check_ensemble(
        &self,
        entries: &[UrlEntry<'_>],
    ) -> Result<EnsembleSettings, ConfigError> {
        if entries
            .iter()
            .any(|entry| has_scheme(&entry.text) && !is_ensemble(&entry.text))
        {
            let reason = "zk:// and redis:// URLs together: locks are on a ZooKeeper ensemble, or \
                          on Redis nodes";
            return Err(refused("nodes", reason));
        }
        let urls = urls(entries)?;
        let hosts: Vec<_> = urls
            .iter()
            .flat_map(|url| url.hosts.iter().map(move |host| (url, host)))
            .collect();
        check_hosts(&hosts)?;
        self.refuse_what_does_not_apply()?;
        let session_timeout = self.check_session_timeout()?;
        let names: Vec<_> = hosts
            .iter()
            .map(|(_, host)| host.server_name.as_deref())
            .collect();
        let targets = self.tls_targets(&names)?;
        let servers = hosts
            .iter()
            .zip(targets)
            .map(|((url, host), tls)| EnsembleServer {
                name: url.server(host).into(),
                address: host.address(),
                tls,
            });
        let first = &urls[0];
        Ok(EnsembleSettings {
            servers: servers.collect(),
            root: first.root.clone(),
            layout: first.layout,
            credentials: first.credentials.clone(),
            session_timeout,
        })
    }

    fn refuse_what_does_not_apply(&self) -> Result<(), ConfigError> {
        let set = [
            ("wait_for_all", self.wait_for_all == Some(true)),
            ("queue", self.queue == Some(false)),
            ("waiter_lease", self.waiter_lease.is_some()),
            ("fencing_expiry", self.fencing_expiry.is_some()),
        ];
        match set.iter().find(|(_, is_set)| *is_set) {
            Some((name, _)) => Err(refused(name, "it does not apply to ZooKeeper")),
            None => Ok(()),
        }
    }

    fn check_session_timeout(&self) -> Result<Duration, ConfigError> {
        let timeout = self.session_timeout.unwrap_or(SESSION_TIMEOUT);
        if !(SESSION_TIMEOUT_MIN..=SESSION_TIMEOUT_MAX).contains(&timeout) {
            let reason = format!("{timeout:?} is not between 100 ms and 1 h");
            return Err(refused("session_timeout", reason));
        }
        // So much of a session is left at any time while a majority answers.
        let least = self.min_validity.unwrap_or_default();
        let most = timeout * 3 / 7;
        if least > most {
            let reason = format!("{least:?} is more than 3/7 of the session timeout ({timeout:?})");
            return Err(refused("min_validity", reason));
        }
        Ok(timeout)
    }
}

/// Without the credentials.
impl fmt::Debug for EnsembleSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ensemble")
            .field("servers", &self.servers)
            .field("root", &self.root)
            .field("layout", &self.layout)
            .field("has_credentials", &self.credentials.is_some())
            .field("session_timeout", &self.session_timeout)
            .finish_non_exhaustive()
    }
}

/// The URLs, which agree in everything but the hosts.
fn urls(entries: &[UrlEntry<'_>]) -> Result<Vec<EnsembleUrl>, ConfigError> {
    let mut urls: Vec<EnsembleUrl> = Vec::new();
    for entry in entries {
        let url = EnsembleUrl::parse(&entry.text).map_err(|error| entry.refused(error))?;
        if let Some(what) = urls.first().and_then(|first| first.difference(&url)) {
            let reason = format!(
                "the zk:// URLs differ in {what}: they name one ensemble, and only the hosts differ"
            );
            return Err(refused("nodes", reason));
        }
        urls.push(url);
    }
    Ok(urls)
}

fn check_hosts(hosts: &[(&EnsembleUrl, &EnsembleHost)]) -> Result<(), ConfigError> {
    if hosts.len() > NODES_MAX {
        return Err(ConfigError::TooManyNodes(hosts.len()));
    }
    for (index, (_, second)) in hosts.iter().enumerate() {
        if let Some((_, first)) = hosts[..index]
            .iter()
            .find(|(_, host)| host.same_server(second))
        {
            // As they were written: in their canonical form two spellings would look like one.
            return Err(ConfigError::Duplicate {
                first: first.written.clone(),
                second: second.written.clone(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
