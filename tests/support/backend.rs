//! Who keeps the locks of a test: the interface is the same, so its tests run on each.

use std::time::Duration;

use redlatch::embedded::Ensemble;
use redlatch::{Builder, LockClient};

use crate::journal::Journal;
use crate::servers::Servers;
use crate::transport::trusting;
use crate::zookeeper::Shared;

/// Real Redis nodes, a real ZooKeeper server, or one inside the process.
pub enum Backend {
    Redis(Servers),
    ZooKeeper(Shared),
    Embedded(Ensemble),
}

impl Backend {
    pub fn redis() -> Self {
        Self::Redis(Servers::start(3))
    }

    pub fn embedded() -> Self {
        Self::Embedded(Ensemble::start().expect("a port of the loopback is free"))
    }

    pub fn is_zookeeper(&self) -> bool {
        !matches!(self, Self::Redis(_))
    }

    /// What a program would change to use another backend: the URLs.
    pub fn urls(&self) -> Vec<String> {
        match self {
            Self::Redis(servers) => servers.urls(),
            Self::ZooKeeper(shared) => vec![shared.url()],
            Self::Embedded(ensemble) => vec![format!("{}/locks", ensemble.url())],
        }
    }

    /// A client's settings, patient enough for a machine that does other things too.
    pub fn builder(&self) -> Builder {
        let builder = LockClient::builder()
            .nodes(self.urls())
            .restart_guard(false);
        match self {
            Self::Redis(_) => trusting(builder).node_timeout(Duration::from_millis(300)),
            Self::ZooKeeper(_) | Self::Embedded(_) => builder.node_timeout(Duration::from_secs(3)),
        }
    }

    pub fn client(&self) -> LockClient {
        self.builder().build().expect("these settings are good")
    }

    /// A client, and the journal of its events.
    pub fn recorded_client(&self) -> (LockClient, Journal) {
        let journal = Journal::default();
        let client = self.builder().on_event(journal.recorder()).build();
        (client.expect("these settings are good"), journal)
    }
}

/// Runs each of these functions, which take a `&Backend`, as a test on each backend.
#[macro_export]
macro_rules! on_each_backend {
    ($($name:ident),+ $(,)?) => {
        mod redis {
            $(#[test]
            fn $name() {
                super::$name(&$crate::backend::Backend::redis());
            })+
        }

        mod embedded {
            $(#[test]
            fn $name() {
                super::$name(&$crate::backend::Backend::embedded());
            })+
        }

        mod zookeeper {
            $(#[test]
            fn $name() {
                let installed = $crate::needs_zookeeper!();
                super::$name(&$crate::backend::Backend::ZooKeeper(installed.shared()));
            })+
        }
    };
}
