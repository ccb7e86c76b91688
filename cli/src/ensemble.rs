//! What differs for the servers of a ZooKeeper ensemble.

use super::exit::Failure;
#[cfg(not(feature = "zookeeper"))]
use super::tls::needs;
use redlatch::{ClientSettings, NodeKind, NodeStatus};
use std::time::Duration;

/// Is this the URL of a server of an ensemble, or of several?
pub(crate) fn is_member(url: &str) -> bool {
    NodeKind::of(url.trim_start()) == Some(NodeKind::Ensemble)
}

/// How many of these nodes a lock needs. A server of an ensemble serves clients only while it is in
/// a majority, so one of them is enough.
pub(crate) fn needed(statuses: &[NodeStatus]) -> usize {
    let is_ensemble = statuses.iter().any(|node| is_member(&node.url));
    if is_ensemble {
        1
    } else {
        statuses.len() / 2 + 1
    }
}

/// How much validity is left at least while all is well, by what was left when the lock was
/// granted. That is the session timeout at most, and of it 3/7 are left at any time.
pub(crate) fn least_validity(granted: Duration) -> Duration {
    granted * 3 / 7
}

#[cfg(feature = "zookeeper")]
pub(crate) fn set_session_timeout(
    settings: &mut ClientSettings,
    timeout: Duration,
) -> Result<(), Failure> {
    settings.session_timeout = Some(timeout);
    Ok(())
}

#[cfg(not(feature = "zookeeper"))]
pub(crate) fn set_session_timeout(_: &mut ClientSettings, _: Duration) -> Result<(), Failure> {
    Err(Failure::usage(&needs("--session-timeout", "zookeeper")))
}

#[cfg(test)]
mod tests {
    use super::is_member;

    #[test]
    fn the_scheme_tells_an_ensemble() {
        assert!(is_member("zk://h1:2181/locks") && is_member("zks://h1:2281"));
        assert!(is_member("ZK://h1,h2") && is_member(" zk://h1,h2"));
        assert!(!is_member("redis://zk:6379/0") && !is_member("unix:///zk?db=0"));
    }
}
