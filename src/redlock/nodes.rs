//! What each node of the configuration gets: how it is found, and the options of its session.

#[cfg_attr(not(feature = "groups"), path = "nodes/no_groups.rs")]
mod groups;

use crate::config::{RedisNode, Settings};
use crate::entropy::draw;
use crate::net::{Endpoint, TlsTarget};
use crate::node::{Credentials, SessionOptions};
use crate::node_url::NodeUrl;

/// Where this node is, and how connections to it are secured.
pub(super) fn endpoint(RedisNode { url, tls }: &RedisNode, settings: &Settings) -> Endpoint {
    let is_of_each_host = url
        .failover()
        .is_some_and(|failover| !failover.has_one_name);
    let mut tls = tls.clone();
    if is_of_each_host {
        tls = tls.map(TlsTarget::of_each_host);
    }
    Endpoint {
        address: url.address().clone(),
        auth: groups::lookup_auth(url, tls.clone(), settings),
        tls,
    }
}

pub(super) fn session_options(url: &NodeUrl, settings: &Settings) -> SessionOptions {
    // If there are no random numbers now, reconnecting is less spread out; locking, later, is what
    // needs them.
    let seed = draw().map_or(0, |entropy| entropy.seed);
    let mut options = SessionOptions::new(&url.to_string(), seed);
    let client_name = Some(&*settings.client_name);
    options.credentials = Credentials::new(url.user(), url.password(), url.database(), client_name);
    options.quarantine = settings.restart_guard.then_some(settings.max_ttl);
    groups::adapt(&mut options, url, settings);
    options.node_timeout = settings.rules.node_timeout;
    options.connect_timeout = settings.connecting.timeout;
    options.silence_max = settings.rules.node_timeout * 10;
    // A caller cannot tell an I/O thread that waits from one that is stopped.
    options.is_waited_for = !settings.io_thread;
    options
}
