//! Locks that a majority of independent nodes keeps: the Redlock algorithm, over their connections.

use super::draw;
use crate::config::{RedisNode, Settings};
use crate::error::ConfigError;
use crate::net::{ChangeQueue, Endpoint, Net};
use crate::node::{Credentials, Session, SessionOptions};
use crate::node_url::NodeUrl;
use crate::owner_process::OwnerProcess;
use crate::watchdog::{Notifier, Watchdog};
use std::sync::Arc;

/// The connections to the nodes, and what keeps locks on them alive.
pub(crate) struct Redlock {
    /// Dropped before the connections, which its thread uses: dropping it ends that thread.
    pub(crate) watchdog: Watchdog,
    pub(crate) net: Arc<Net>,
    #[cfg(feature = "diagnostics")]
    pub(crate) restart_guard: bool,
}

impl Redlock {
    /// Prepares connections to the nodes; makes none yet.
    pub(super) fn new(
        nodes: &[RedisNode],
        settings: &Settings,
        changes: Option<Arc<ChangeQueue>>,
        notifier: &Arc<Notifier>,
        owner_process: &Arc<OwnerProcess>,
    ) -> Result<Self, ConfigError> {
        let nodes = nodes.iter().map(|RedisNode { url, tls }| {
            let endpoint = Endpoint { address: url.address().clone(), tls: tls.clone() };
            (endpoint, Session::new(session_options(url, settings)))
        });
        let net = Net::new(
            nodes.collect(),
            settings.connecting,
            settings.wait_for_all,
            settings.rules.node_timeout,
            changes,
            settings.io_thread,
        );
        let net = Arc::new(net.map_err(|error| ConfigError::System(Arc::new(error)))?);
        Ok(Self {
            watchdog: Watchdog::new(&net, &settings.rules, owner_process, notifier),
            net,
            #[cfg(feature = "diagnostics")]
            restart_guard: settings.restart_guard,
        })
    }
}

fn session_options(url: &NodeUrl, settings: &Settings) -> SessionOptions {
    // If there are no random numbers now, reconnecting is less spread out; locking, later, is what
    // needs them.
    let seed = draw().map_or(0, |entropy| entropy.seed);
    let mut options = SessionOptions::new(&url.to_string(), seed);
    let client_name = settings.client_name.as_deref();
    options.credentials = Credentials::new(url.user(), url.password(), url.database(), client_name);
    options.quarantine = settings.restart_guard.then_some(settings.max_ttl);
    options.node_timeout = settings.rules.node_timeout;
    options.connect_timeout = settings.connecting.timeout;
    options.silence_max = settings.rules.node_timeout * 10;
    options
}
