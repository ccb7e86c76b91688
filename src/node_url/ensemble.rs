//! URLs of ZooKeeper ensembles: where the servers are, and where in their tree the locks are.
//!
//! ```text
//! zk://[user:password@]host[:port][,host[:port]…][/root][?layout=kazoo]     zk://h1,h2,h3/locks
//! zks://…[?server_name=zookeeper.internal]                                  the same, over TLS
//! ```
//!
//! User, password, root and the values of options may be percent-encoded, as in other URLs. A comma
//! stands between hosts, and is written `%2C` anywhere else. So `zk://h1/locks,h2/locks` is
//! refused: the root stands once, behind all hosts, and `user:password@` once, in front of them.
//!
//! The root, which ZooKeeper calls chroot, is the path of the znode below which all locks are. The
//! layout is the family of programs that these locks also exclude, `curator` by default.

use super::{
    Address, NodeUrlError, NodeUrlErrorKind, Options, SchemePlace, Support, host, percent_decode,
    percent_encode,
};
use redlatch_zookeeper::path::{Layout, Root};
use std::fmt;
use std::sync::Arc;

/// The port of hosts that are named without one.
const PORT_DEFAULT: u16 = 2181;

/// The URL of an ensemble, or of some of its servers.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct EnsembleUrl {
    is_tls: bool,
    /// The hosts, in their order; one at least. None is checked for being named twice.
    pub(crate) hosts: Vec<EnsembleHost>,
    /// User, colon, password: what the authentication scheme `digest` sends.
    pub(crate) credentials: Option<Arc<[u8]>>,
    pub(crate) root: Root,
    pub(crate) layout: Layout,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EnsembleHost {
    /// The host and port as they were written.
    pub(crate) written: String,
    host: String,
    port: u16,
    /// The name or address, without brackets, for which the server's certificate must be valid;
    /// `None` for a connection without TLS.
    pub(crate) server_name: Option<String>,
}

impl EnsembleUrl {
    /// Reads a URL. An error names the URL, without credentials.
    pub(crate) fn parse(url: &str) -> Result<Self, NodeUrlError> {
        parse(url)
            .and_then(|parsed| parsed.usable_with(Support::HERE))
            .map_err(|kind| NodeUrlError::new(url, kind))
    }

    /// Refuses a URL to whose servers there is no connection here.
    fn usable_with(self, support: Support) -> Result<Self, NodeUrlErrorKind> {
        let is_usable = support.tls || !self.is_tls;
        if is_usable {
            Ok(self)
        } else {
            Err(NodeUrlErrorKind::NoTlsFeature)
        }
    }

    /// The first thing, besides the hosts, in which two URLs differ. URLs of one ensemble differ in
    /// nothing.
    pub(crate) fn difference(&self, other: &Self) -> Option<&'static str> {
        [
            (self.is_tls != other.is_tls, "TLS"),
            (self.credentials != other.credentials, "user and password"),
            (self.root != other.root, "path"),
            (self.layout != other.layout, "layout"),
        ]
        .into_iter()
        .find_map(|(is_other, what)| is_other.then_some(what))
    }

    /// The URL of this host alone, without credentials and options: the name of the server in
    /// reports.
    pub(crate) fn server(&self, server: &EnsembleHost) -> String {
        let host = host::in_url(&server.host);
        let port = server.port;
        format!("{}://{host}:{port}{}", self.scheme(), self.path())
    }

    fn scheme(&self) -> &'static str {
        if self.is_tls { "zks" } else { "zk" }
    }

    /// The root, as it is written in a URL.
    fn path(&self) -> String {
        let root = self.root.path();
        if root == "/" {
            String::new()
        } else {
            percent_encode(root.as_bytes(), b"/")
        }
    }
}

impl EnsembleHost {
    pub(crate) fn address(&self) -> Address {
        Address::Tcp {
            host: self.host.clone(),
            port: self.port,
        }
    }

    /// Whether both are certainly the same server. Two names, or a name and an address, may still
    /// lead to the same server, which is not visible here.
    pub(crate) fn same_server(&self, other: &Self) -> bool {
        self.port == other.port && host::is_same(&self.host, &other.host)
    }
}

/// The URL, with stars for the user and the password. It leads to the same ensemble and root when
/// parsed again.
impl fmt::Display for EnsembleUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let credentials = if self.credentials.is_some() {
            "***:***@"
        } else {
            ""
        };
        write!(f, "{}://{credentials}", self.scheme())?;
        for (index, EnsembleHost { host, port, .. }) in self.hosts.iter().enumerate() {
            let mark = if index == 0 { "" } else { "," };
            write!(f, "{mark}{}:{port}", host::in_url(host))?;
        }
        f.write_str(&self.path())?;
        let mut mark = '?';
        if self.layout == Layout::Kazoo {
            write!(f, "{mark}layout=kazoo")?;
            mark = '&';
        }
        // The same option for all hosts, so that the first one that shows it shows all.
        let named = self.hosts.iter().find_map(|server| {
            let name = server.server_name.as_deref();
            name.filter(|name| *name != host::certified(&server.host))
        });
        match named {
            Some(name) => write!(
                f,
                "{mark}server_name={}",
                percent_encode(name.as_bytes(), b":")
            ),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for EnsembleUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EnsembleUrl({self})")
    }
}

fn parse(url: &str) -> Result<EnsembleUrl, NodeUrlErrorKind> {
    let (scheme, rest) = super::checked_scheme(url)?;
    if scheme.place != SchemePlace::Ensemble {
        return Err(NodeUrlErrorKind::of_scheme(url));
    }
    let is_tls = scheme.is_tls;
    let (authority, path_and_query) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if path_and_query.contains('@') {
        // In a path it is written %40: this is a password with a raw '/' or '?' in it.
        return Err(NodeUrlErrorKind::UnescapedCredentials);
    }
    let (credentials, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    if credentials.contains(',') || path_and_query.contains(',') {
        return Err(NodeUrlErrorKind::UnescapedComma);
    }
    let mut options = Options::default();
    options.credentials(credentials)?;
    let mut hosts = hosts
        .split(',')
        .map(parse_host)
        .collect::<Result<Vec<_>, _>>()?;
    // After the hosts, because an error here may name an option: if a port is not a number, a host
    // may be missing, and all of this may be a password.
    let (path, query) = super::split_query(path_and_query);
    let known: &[_] = if is_tls {
        &["layout", "server_name"]
    } else {
        &["layout"]
    };
    options.query(query, known)?;
    if is_tls {
        for server in &mut hosts {
            let given = options.server_name.as_deref();
            let name = given.unwrap_or_else(|| host::certified(&server.host));
            server.server_name = Some(name.to_owned());
        }
    }
    Ok(EnsembleUrl {
        is_tls,
        hosts,
        root: parse_root(path)?,
        layout: options.layout.unwrap_or_default(),
        credentials: digest(options.user, options.password)?,
    })
}

fn parse_host(written: &str) -> Result<EnsembleHost, NodeUrlErrorKind> {
    let (host, port) = host::with_port(written, PORT_DEFAULT)?;
    Ok(EnsembleHost {
        written: written.to_owned(),
        host,
        port,
        server_name: None,
    })
}

fn parse_root(path: &str) -> Result<Root, NodeUrlErrorKind> {
    let path = percent_decode(path).ok_or(NodeUrlErrorKind::BadPercentEscape)?;
    let path = String::from_utf8(path).map_err(|_| NodeUrlErrorKind::BadRoot {
        reason: "the path is not UTF-8".to_owned(),
    })?;
    Root::new(&path).map_err(|error| NodeUrlErrorKind::BadRoot {
        reason: error.to_string(),
    })
}

/// User, colon, password, if there are both.
fn digest(
    user: Option<Vec<u8>>,
    password: Option<Vec<u8>>,
) -> Result<Option<Arc<[u8]>>, NodeUrlErrorKind> {
    match (user, password) {
        (None, None) => Ok(None),
        (Some(user), Some(password)) => Ok(Some([user, password].join(&b':').into())),
        _ => Err(NodeUrlErrorKind::IncompleteCredentials),
    }
}

#[cfg(test)]
mod tests;
