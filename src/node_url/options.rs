//! What a URL says besides where the node is: user, password, and the options behind the `?`.

use super::percent::percent_decode;
use super::{Address, Failover, Login, NodeUrl, NodeUrlErrorKind, group, host, number};
#[cfg(feature = "zookeeper")]
use redlatch_zookeeper::path::Layout;

/// Settings that a URL may contain once, in one of several places.
#[derive(Default)]
pub(super) struct Options {
    pub(super) database: Option<u32>,
    pub(super) user: Option<Vec<u8>>,
    pub(super) password: Option<Vec<u8>>,
    pub(super) server_name: Option<String>,
    pub(super) has_one_name: bool,
    pub(super) failover: Option<bool>,
    pub(super) replicas: Option<u32>,
    pub(super) sentinel_user: Option<Vec<u8>>,
    pub(super) sentinel_password: Option<Vec<u8>>,
    /// The name of a group, as lettuce gives it.
    pub(super) group: Option<Vec<u8>>,
    pub(super) nodes: Option<u16>,
    pub(super) slots: Option<Vec<u16>>,
    #[cfg(feature = "zookeeper")]
    pub(super) layout: Option<Layout>,
}

impl Options {
    /// Parses `user:password`, the text before the `@`. The password may contain colons. Text
    /// without a colon is a password to some programs and a user to others. Here it is an error:
    /// if a password were parsed as a user, it would be shown.
    pub(super) fn credentials(&mut self, text: &str) -> Result<(), NodeUrlErrorKind> {
        let (user, password) = match text.split_once(':') {
            Some(both) => both,
            None if text.is_empty() => ("", ""),
            None => return Err(NodeUrlErrorKind::AmbiguousCredentials),
        };
        self.set("user", user)?;
        self.set("password", password)
    }

    /// Takes `name=value&name=value`, as it stands behind the `?`.
    pub(super) fn query(
        &mut self,
        query: &str,
        known: &[&'static str],
    ) -> Result<(), NodeUrlErrorKind> {
        if query.is_empty() {
            return Ok(());
        }
        query.split('&').try_for_each(|option| {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match known.iter().find(|known| **known == name) {
                Some(name) => self.set(name, value),
                None => Err(NodeUrlErrorKind::unknown_option(name)),
            }
        })
    }

    pub(super) fn set(&mut self, name: &'static str, value: &str) -> Result<(), NodeUrlErrorKind> {
        let value = percent_decode(value).ok_or(NodeUrlErrorKind::BadPercentEscape)?;
        let before = match name {
            "db" => {
                let database = std::str::from_utf8(&value).ok().and_then(number);
                self.database
                    .replace(database.ok_or(NodeUrlErrorKind::BadDatabase)?)
                    .is_some()
            }
            "server_name" => {
                let text = std::str::from_utf8(&value).ok();
                let name = text
                    .and_then(host::server_name)
                    .ok_or(NodeUrlErrorKind::BadServerName)?;
                self.has_one_name = true;
                self.server_name.replace(name).is_some()
            }
            #[cfg(feature = "zookeeper")]
            "layout" => {
                let layout = match &*value {
                    b"curator" => Layout::Curator,
                    b"kazoo" => Layout::Kazoo,
                    _ => return Err(NodeUrlErrorKind::BadLayout),
                };
                self.layout.replace(layout).is_some()
            }
            "failover" => {
                let failover = match &*value {
                    b"true" => true,
                    b"false" => false,
                    _ => return Err(NodeUrlErrorKind::BadFailover),
                };
                self.failover.replace(failover).is_some()
            }
            "replicas" => {
                let replicas = group::replicas(&value).ok_or(NodeUrlErrorKind::BadReplicas)?;
                self.replicas.replace(replicas).is_some()
            }
            "nodes" => {
                let nodes = group::nodes(&value).ok_or(NodeUrlErrorKind::BadNodes)?;
                self.nodes.replace(nodes).is_some()
            }
            "slots" => {
                let slots = group::slots(&value).ok_or(NodeUrlErrorKind::BadSlots)?;
                self.slots.replace(slots).is_some()
            }
            "sentinel_user" => self.sentinel_user.replace(value).is_some(),
            "sentinel_password" => self.sentinel_password.replace(value).is_some(),
            "sentinelMasterId" => self.group.replace(value).is_some(),
            _ if value.is_empty() => false,
            "user" => self.user.replace(value).is_some(),
            _ => self.password.replace(value).is_some(),
        };
        if before {
            Err(NodeUrlErrorKind::RepeatedOption(name))
        } else {
            Ok(())
        }
    }

    pub(super) fn url(self, address: Address) -> Result<NodeUrl, NodeUrlErrorKind> {
        let Self {
            database,
            user,
            password,
            server_name,
            ..
        } = self;
        let has_login = self.sentinel_user.is_some() || self.sentinel_password.is_some();
        let sentinel = has_login.then(|| Login {
            user: self.sentinel_user.filter(|user| !user.is_empty()),
            password: self
                .sentinel_password
                .filter(|password| !password.is_empty()),
        });
        let failover = match self.failover {
            Some(true) => Some(Failover {
                replicas: self.replicas,
                sentinel,
                has_one_name: self.has_one_name,
            }),
            _ if self.replicas.is_some() => return Err(NodeUrlErrorKind::ReplicasAlone),
            _ => None,
        };
        let database = database.unwrap_or(0);
        Ok(NodeUrl {
            address,
            server_name,
            user,
            password,
            database,
            failover,
        })
    }
}
