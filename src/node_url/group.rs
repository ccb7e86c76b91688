//! URLs of replicated groups: which servers say where the master is.
//!
//! ```text
//! redis+sentinel://[[user]:password@]s1[:26379][,s2…]/name[/db][?replicas=2]   redis-sentinel://…
//! redis+cluster://[[user]:password@]h1[:6379][,h2…][?nodes=3]                  redis-cluster://…
//! redis://primary.example[:port][/db]?failover=true                            a name that moves
//! ```
//!
//! With `rediss` or `valkeys` in front of the `+`, or as the whole scheme of the last form, over
//! TLS. User and password are the servers', and those of the Sentinels too unless `sentinel_user`
//! or `sentinel_password` say otherwise. lettuce's `?sentinelMasterId=name` is understood.

use std::fmt;

use super::{Address, HostPort, NodeUrl, NodeUrlErrorKind, Options, host, percent_decode};

const SENTINEL_PORT: u16 = 26379;

/// How many nodes a cluster stands for at most, unless slots are named.
const NODES_MAX: u16 = 5;

pub(super) const SLOTS: u16 = 16_384;

/// What is known of a node that is a replicated group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failover {
    /// How many replicas the master has, if a majority of the group is to vouch for it.
    pub(crate) replicas: Option<u32>,
    /// User and password for the Sentinels, if they have others than the servers.
    pub(crate) sentinel: Option<Login>,
    /// Are all certificates valid for the one name that the URL says?
    pub(crate) has_one_name: bool,
}

#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: Option<Vec<u8>>,
    pub(crate) password: Option<Vec<u8>>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

/// As a URL has it.
impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", host::in_url(&self.host), self.port)
    }
}

/// These places as a URL has them.
pub(super) struct HostPorts<'a>(pub(super) &'a [HostPort]);

impl fmt::Display for HostPorts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(index, place)| {
            let mark = if index == 0 { "" } else { "," };
            write!(f, "{mark}{place}")
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Sentinel,
    Cluster,
}

pub(super) fn parse(rest: &str, kind: Kind, is_tls: bool) -> Result<NodeUrl, NodeUrlErrorKind> {
    let (authority, path_and_query) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if path_and_query.contains('@') {
        return Err(NodeUrlErrorKind::UnescapedCredentials);
    }
    let (credentials, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    if credentials.contains(',') || path_and_query.split('?').next().unwrap_or("").contains(',') {
        return Err(NodeUrlErrorKind::UnescapedComma);
    }
    let mut options = Options::default();
    options.credentials(credentials)?;
    let port = if kind == Kind::Sentinel {
        SENTINEL_PORT
    } else {
        super::PORT_DEFAULT
    };
    let mut places = Vec::new();
    for written in hosts.split(',') {
        let (host, port) = host::with_port(written, port)?;
        places.push(HostPort { host, port });
    }
    let (path, query) = super::split_query(path_and_query);
    let known: &[_] = match kind {
        Kind::Sentinel => &[
            "replicas",
            "sentinel_user",
            "sentinel_password",
            "sentinelMasterId",
            "db",
        ],
        Kind::Cluster => &["replicas", "nodes", "slots"],
    };
    let known: Vec<_> = known
        .iter()
        .copied()
        .chain(is_tls.then_some("server_name"))
        .collect();
    options.query(query, &known)?;
    if is_tls && options.server_name.is_none() {
        options.server_name = Some(host::certified(&places[0].host).to_owned());
    }
    let address = match kind {
        Kind::Sentinel => {
            let group = group_name(path, &mut options)?;
            Address::Sentinel {
                sentinels: places,
                group,
            }
        }
        Kind::Cluster => {
            if !matches!(path, "" | "/" | "/0") {
                return Err(NodeUrlErrorKind::ClusterDatabase);
            }
            let slots = match (options.slots.take(), options.nodes.take()) {
                (Some(slots), None) => slots,
                (None, nodes) => evenly_spread(nodes.unwrap_or(3)),
                (Some(_), Some(_)) => return Err(NodeUrlErrorKind::RepeatedOption("slots")),
            };
            Address::Cluster {
                seeds: places,
                slots,
            }
        }
    };
    options.failover = Some(true);
    options.url(address)
}

/// The name of the group, which is in the path, or behind it as lettuce has it.
fn group_name(path: &str, options: &mut Options) -> Result<String, NodeUrlErrorKind> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let (name, database) = match options.group.take() {
        Some(name) => (name, path),
        None => {
            let (name, database) = path.split_once('/').unwrap_or((path, ""));
            let name = percent_decode(name).ok_or(NodeUrlErrorKind::BadPercentEscape)?;
            (name, database)
        }
    };
    if !database.is_empty() {
        options.set("db", database)?;
    }
    let name = String::from_utf8(name).map_err(|_| NodeUrlErrorKind::NoGroup)?;
    if name.is_empty() {
        Err(NodeUrlErrorKind::NoGroup)
    } else {
        Ok(name)
    }
}

/// The slots of this many nodes.
fn evenly_spread(nodes: u16) -> Vec<u16> {
    let nodes = u32::from(nodes);
    (0..nodes)
        .map(|index| ((2 * index + 1) * u32::from(SLOTS) / (2 * nodes)) as u16)
        .collect()
}

/// A number of nodes of a cluster.
pub(super) fn nodes(value: &[u8]) -> Option<u16> {
    let number = super::number(std::str::from_utf8(value).ok()?)?;
    (1..=NODES_MAX).contains(&number).then_some(number)
}

/// Slots, between commas, each once.
pub(super) fn slots(value: &[u8]) -> Option<Vec<u16>> {
    let mut slots = Vec::new();
    for text in std::str::from_utf8(value).ok()?.split(',') {
        let slot = super::number(text).filter(|slot| *slot < SLOTS)?;
        if text.is_empty() || slots.contains(&slot) {
            return None;
        }
        slots.push(slot);
    }
    Some(slots)
}

/// A number of replicas of which, with the master, a majority can be lost to a failover and be
/// there after it.
pub(super) fn replicas(value: &[u8]) -> Option<u32> {
    let number = super::number(std::str::from_utf8(value).ok()?)?;
    (2..=100).contains(&number).then_some(number)
}
