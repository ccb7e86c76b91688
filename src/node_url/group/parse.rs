//! Reads the URLs of Sentinels and of clusters.

use super::SLOTS;
use crate::node_url::host;
use crate::node_url::options::Options;
use crate::node_url::percent::percent_decode;
use crate::node_url::{Address, HostPort, NodeUrl, NodeUrlErrorKind, PORT_DEFAULT, split_query};

const SENTINEL_PORT: u16 = 26379;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::node_url) enum Kind {
    Sentinel,
    Cluster,
}

impl Kind {
    /// The options that its URLs may have.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Sentinel => &[
                "replicas",
                "sentinel_user",
                "sentinel_password",
                "sentinelMasterId",
                "db",
            ],
            Self::Cluster => &["replicas", "nodes", "slots"],
        }
    }
}

pub(in crate::node_url) fn parse(
    rest: &str,
    kind: Kind,
    is_tls: bool,
) -> Result<NodeUrl, NodeUrlErrorKind> {
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
        PORT_DEFAULT
    };
    let mut places = Vec::new();
    for written in hosts.split(',') {
        let (host, port) = host::with_port(written, port)?;
        places.push(HostPort { host, port });
    }
    let (path, query) = split_query(path_and_query);
    let known: Vec<_> = kind
        .options()
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
