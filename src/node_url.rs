//! URLs of nodes: where a node is, and the credentials for it.
//!
//! ```text
//! redis://[[user]:password@]host[:port][/db]        redis://:secret@[2001:db8::1]:6380/2
//! redis://…?db=2                                    the same as /2
//! rediss://…?server_name=redis-1.internal           the same, over TLS
//! valkey://…, valkeys://…                           the same as redis://, rediss://
//! unix://[[user]:password@]/path[?db=0]             unix:///run/redis/redis.sock
//! unix:///path?user=…&password=…                    the same as in front of the path
//! zk://…, zks://…                                   a ZooKeeper ensemble: see the file ensemble
//! ```
//!
//! User, password, path and the values of options may be percent-encoded; `/`, `?`, `#` and `%` in
//! them have to be. An empty user or password is the same as none, but the colon is required:
//! without one, the text may be a user or a password, and is refused. Everything that is not
//! understood is refused and not ignored: a misspelt option, or a database that is not a number,
//! would put the lock in a place where no other client looks for it.
//!
//! Over TLS, the certificate must be valid for the host, or for the option `server_name`: a name or
//! an address, for nodes that are reached by another one.
//!
//! Passwords stay in here. `Debug` and `Display` of a [`NodeUrl`] do not show them, and an
//! [`NodeUrlError`] does not show any part of the URL that may be one.

#[cfg(feature = "zookeeper")]
mod ensemble;
mod error;
mod group;
mod host;
mod options;
mod percent;

#[cfg(feature = "zookeeper")]
pub(crate) use ensemble::{EnsembleHost, EnsembleUrl};
pub(crate) use error::redact;
pub use error::{NodeUrlError, NodeUrlErrorKind};
use group::HostPorts;
pub(crate) use group::{Failover, Login};
use options::Options;
use percent::{percent_decode, percent_encode};

use crate::node::NodeKind;
pub(crate) use crate::node::{Scheme, SchemePlace};

use std::fmt;
use std::path::PathBuf;

/// The port of `redis://` and `rediss://` URLs that name none.
const PORT_DEFAULT: u16 = 6379;

/// The URL of one node: its address, its database, and the credentials for it.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeUrl {
    address: Address,
    /// Over TLS, the name or address for which the server's certificate must be valid.
    server_name: Option<String>,
    user: Option<Vec<u8>>,
    password: Option<Vec<u8>>,
    database: u32,
    /// Set if the node is a replicated group.
    failover: Option<Failover>,
}

/// What this build and this platform can connect to.
#[derive(Clone, Copy, Debug)]
struct Support {
    unix_sockets: bool,
    tls: bool,
    groups: bool,
}

impl Support {
    const HERE: Self = Self {
        unix_sockets: cfg!(unix),
        tls: cfg!(feature = "tls"),
        groups: cfg!(feature = "groups"),
    };
}

/// The address of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// A TCP port of a host.
    Tcp {
        /// A name in lower case, or an IP address in its canonical form, without brackets.
        host: String,
        /// From 1 to 65535.
        port: u16,
    },
    /// A Unix domain socket. On Unix platforms only.
    Unix {
        /// An absolute path.
        path: PathBuf,
    },
    /// The present master of a replicated group, which Sentinels name.
    Sentinel {
        /// One at least.
        sentinels: Vec<HostPort>,
        /// What they call it.
        group: String,
    },
    /// The present masters of these slots of a cluster, each a node of its own.
    Cluster {
        /// Servers of the cluster; one at least.
        seeds: Vec<HostPort>,
        /// One at least.
        slots: Vec<u16>,
    },
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "there is no more to an address")]
pub struct HostPort {
    /// A name in lower case, or an IP address in its canonical form, without brackets.
    pub host: String,
    /// From 1 to 65535.
    pub port: u16,
}

impl NodeUrl {
    /// Reads a URL. An error names the URL, without credentials.
    pub fn parse(url: &str) -> Result<Self, NodeUrlError> {
        parse(url)
            .and_then(|parsed| parsed.usable_with(Support::HERE))
            .map_err(|kind| NodeUrlError::new(url, kind))
    }

    /// Refuses a URL to which there is no connection here.
    fn usable_with(self, support: Support) -> Result<Self, NodeUrlErrorKind> {
        match self.address {
            Address::Unix { .. } if !support.unix_sockets => Err(NodeUrlErrorKind::NoUnixSockets),
            _ if self.server_name.is_some() && !support.tls => Err(NodeUrlErrorKind::NoTlsFeature),
            _ if self.failover.is_some() && !support.groups => {
                Err(NodeUrlErrorKind::NoGroupsFeature)
            }
            _ => Ok(self),
        }
    }

    /// The node's address.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The name or address, without brackets, for which the server's certificate must be valid;
    /// `None` for a connection without TLS.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// The user to authenticate as; `None` for the server's default user.
    #[must_use]
    pub fn user(&self) -> Option<&[u8]> {
        self.user.as_deref()
    }

    /// The password to authenticate with; `None` for no authentication.
    #[must_use]
    pub fn password(&self) -> Option<&[u8]> {
        self.password.as_deref()
    }

    /// The number of the database to select. A new connection is in database 0.
    #[must_use]
    pub fn database(&self) -> u32 {
        self.database
    }

    /// What is known of the group, if the node is one.
    pub(crate) fn failover(&self) -> Option<&Failover> {
        self.failover.as_ref()
    }

    /// The nodes for which this URL stands: one, or each of these slots of a cluster.
    pub(crate) fn nodes(self) -> Vec<Self> {
        match &self.address {
            Address::Cluster { seeds, slots } => slots
                .iter()
                .map(|slot| Self {
                    address: Address::Cluster {
                        seeds: seeds.clone(),
                        slots: vec![*slot],
                    },
                    ..self.clone()
                })
                .collect(),
            _ => vec![self],
        }
    }

    /// Whether both are certainly the same server, whatever their databases, credentials and
    /// schemes.
    ///
    /// Two databases of a server count as one server: they are lost together. Two names, or a name
    /// and an address, may still lead to the same server, which is not visible here.
    #[must_use]
    pub fn same_server(&self, other: &Self) -> bool {
        match (&self.address, &other.address) {
            (
                Address::Tcp {
                    host: left,
                    port: left_port,
                },
                Address::Tcp {
                    host: right,
                    port: right_port,
                },
            ) => left_port == right_port && host::is_same(left, right),
            (Address::Unix { path: left }, Address::Unix { path: right }) => left == right,
            (
                Address::Sentinel {
                    sentinels: left,
                    group: left_group,
                },
                Address::Sentinel {
                    sentinels: right,
                    group: right_group,
                },
            ) => left_group == right_group && left.iter().any(|place| right.contains(place)),
            (
                Address::Cluster {
                    seeds: left,
                    slots: left_slots,
                },
                Address::Cluster {
                    seeds: right,
                    slots: right_slots,
                },
            ) => left_slots == right_slots && left.iter().any(|place| right.contains(place)),
            _ => false,
        }
    }
}

/// The URL, with stars for the password of a user. It leads to the same server and database when
/// parsed again.
impl fmt::Display for NodeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let security = if self.server_name.is_some() { "s" } else { "" };
        match self.address {
            Address::Tcp { .. } => write!(f, "redis{security}://")?,
            Address::Unix { .. } => f.write_str("unix://")?,
            Address::Sentinel { .. } => write!(f, "redis{security}+sentinel://")?,
            Address::Cluster { .. } => write!(f, "redis{security}+cluster://")?,
        }
        if let Some(user) = &self.user {
            let password = if self.password.is_some() { "***" } else { "" };
            write!(f, "{}:{password}@", percent_encode(user, b""))?;
        }
        let database = self.database;
        let mut options = Vec::new();
        let host = match &self.address {
            Address::Tcp { host, port } => {
                write!(f, "{}:{port}/{database}", host::in_url(host))?;
                options.extend(self.failover.as_ref().map(|_| "failover=true".to_owned()));
                host
            }
            Address::Unix { path } => {
                let path = path.as_os_str().as_encoded_bytes();
                return write!(f, "{}?db={database}", percent_encode(path, b"/"));
            }
            Address::Sentinel { sentinels, group } => {
                let group = percent_encode(group.as_bytes(), b"");
                write!(f, "{}/{group}/{database}", HostPorts(sentinels))?;
                &sentinels[0].host
            }
            Address::Cluster { seeds, slots } => {
                write!(f, "{}", HostPorts(seeds))?;
                let slots: Vec<_> = slots.iter().map(u16::to_string).collect();
                options.push(format!("slots={}", slots.join(",")));
                &seeds[0].host
            }
        };
        let replicas = self
            .failover
            .as_ref()
            .and_then(|failover| failover.replicas);
        options.extend(replicas.map(|replicas| format!("replicas={replicas}")));
        let has_one = self
            .failover
            .as_ref()
            .is_some_and(|failover| failover.has_one_name);
        if let Some(name) = self.server_name.as_deref() {
            if has_one || name != host::certified(host) {
                let name = percent_encode(name.as_bytes(), b":");
                options.push(format!("server_name={name}"));
            }
        }
        let mark = if options.is_empty() { "" } else { "?" };
        write!(f, "{mark}{}", options.join("&"))
    }
}

impl fmt::Debug for NodeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let password = if self.password.is_some() {
            " with a password"
        } else {
            ""
        };
        write!(f, "NodeUrl({self}{password})")
    }
}

fn parse(url: &str) -> Result<NodeUrl, NodeUrlErrorKind> {
    let (Scheme { place, is_tls }, rest) = checked_scheme(url)?;
    match place {
        SchemePlace::Host => parse_tcp(rest, is_tls),
        SchemePlace::Path => parse_unix(rest),
        #[cfg(feature = "groups")]
        SchemePlace::Sentinels => group::parse(rest, group::Kind::Sentinel, is_tls),
        #[cfg(feature = "groups")]
        SchemePlace::Cluster => group::parse(rest, group::Kind::Cluster, is_tls),
        #[cfg(not(feature = "groups"))]
        SchemePlace::Sentinels | SchemePlace::Cluster => Err(NodeUrlErrorKind::NoGroupsFeature),
        // With the feature, `EnsembleUrl` reads it.
        SchemePlace::Ensemble => Err(NodeUrlErrorKind::NoZooKeeperFeature),
    }
}

/// The scheme, and what follows its `://` if that has no character that no URL of a server has.
fn checked_scheme(url: &str) -> Result<(Scheme, &str), NodeUrlErrorKind> {
    let (_, rest) = split_scheme(url).ok_or_else(|| NodeUrlErrorKind::of_scheme(url))?;
    if rest.chars().any(char::is_control) {
        return Err(NodeUrlErrorKind::ControlCharacter);
    }
    if rest.contains('#') {
        return Err(NodeUrlErrorKind::Fragment);
    }
    Scheme::split(url).ok_or_else(|| NodeUrlErrorKind::of_scheme(url))
}

/// Does this text begin with a scheme of a server, be it supported or not?
pub(crate) fn has_scheme(text: &str) -> bool {
    Scheme::split(text).is_some()
}

/// Does this text begin with a scheme of URLs that may name several hosts, between commas?
pub(crate) fn takes_hosts(text: &str) -> bool {
    Scheme::split(text).is_some_and(|(scheme, _)| scheme.takes_hosts())
}

/// Does this text begin with the scheme of a ZooKeeper ensemble? It may name several servers,
/// between commas.
pub(crate) fn is_ensemble(text: &str) -> bool {
    NodeKind::of(text) == Some(NodeKind::Ensemble)
}

/// The scheme and what follows its `://`; `None` if there is nothing that could be a scheme.
fn split_scheme(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some((scheme, rest))
}

fn parse_tcp(rest: &str, is_tls: bool) -> Result<NodeUrl, NodeUrlErrorKind> {
    let (authority, path_and_query) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if path_and_query.contains('@') {
        // No path or option here contains one: this is a password with a raw '/' or '?' in it.
        return Err(NodeUrlErrorKind::UnescapedCredentials);
    }
    let (path, query) = split_query(path_and_query);
    let mut options = Options::default();
    let host_and_port = match authority.rsplit_once('@') {
        Some((credentials, host_and_port)) => {
            options.credentials(credentials)?;
            host_and_port
        }
        None => authority,
    };
    if host_and_port.contains(',') {
        return Err(NodeUrlErrorKind::SeveralHosts);
    }
    let (host, port) = host::with_port(host_and_port, PORT_DEFAULT)?;
    // After the port, because an error here may name an option: if the port is not a number, the
    // host may be missing, and all of this may be a password.
    match path.strip_prefix('/') {
        None | Some("") => {}
        Some(database) => options.set("db", database)?,
    }
    let known: &[_] = &["db", "failover", "replicas", "server_name"];
    options.query(query, &known[..if is_tls { 4 } else { 3 }])?;
    if is_tls && options.server_name.is_none() {
        options.server_name = Some(host::certified(&host).to_owned());
    }
    options.url(Address::Tcp { host, port })
}

fn parse_unix(rest: &str) -> Result<NodeUrl, NodeUrlErrorKind> {
    let (authority, path_and_query) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (path, query) = split_query(path_and_query);
    let mut options = Options::default();
    match authority.rsplit_once('@') {
        Some((credentials, "")) => options.credentials(credentials)?,
        None if authority.is_empty() => {}
        _ => return Err(NodeUrlErrorKind::UnexpectedHost),
    }
    options.query(query, &["db", "user", "password"])?;
    let path = percent_decode(path).ok_or(NodeUrlErrorKind::BadPercentEscape)?;
    // The path starts with a slash if there is one at all.
    if path.iter().all(|byte| *byte == b'/') || path.contains(&0) {
        return Err(NodeUrlErrorKind::BadPath);
    }
    let path = String::from_utf8(path).map_err(|_| NodeUrlErrorKind::BadPath)?;
    options.url(Address::Unix { path: path.into() })
}

fn split_query(path_and_query: &str) -> (&str, &str) {
    path_and_query
        .split_once('?')
        .unwrap_or((path_and_query, ""))
}

/// A number without sign or blanks. The standard library's parser accepts a sign.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
