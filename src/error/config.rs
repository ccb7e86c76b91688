//! Why a client could not be built.

use super::{NodeUrlError, NodeUrlErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::{fmt, io};

/// Why a client could not be built. Two of them are equal if they say the same.
#[derive(Clone)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of a variant says what its fields are")]
pub enum ConfigError {
    /// The configuration has no node.
    NoNodes,
    /// The configuration has more than 64 nodes, or servers of an ensemble.
    TooManyNodes(usize),
    /// A node's URL cannot be used.
    Url(NodeUrlError),
    /// The list of nodes in an environment variable cannot be used. `variable`: the name of the
    /// variable; `error`: what is wrong with it.
    NodeList { variable: String, error: NodeListError },
    /// Two URLs, or two hosts of an ensemble, lead to the same server, which must be named once.
    /// `first`: the URL or host that comes first in the configuration, without its password;
    /// `second`: the other URL or host.
    Duplicate { first: String, second: String },
    /// A setting has a value that it cannot have. `name`: the method of `Builder` that sets it;
    /// `reason`: why the value is refused.
    Setting { name: &'static str, reason: String },
    /// The [settings for TLS](crate::Builder#method.tls) cannot be used.
    Tls(TlsSettingsError),
    /// The operating system refused what the client needs: a poll for its sockets, or the thread
    /// that [`io_thread`](crate::Builder::io_thread) asks for.
    System(Arc<io::Error>),
}

impl PartialEq for ConfigError {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl Eq for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNodes => f.write_str("no nodes: at least one URL is needed"),
            Self::TooManyNodes(count) => write!(f, "{count} nodes: at most 64 are possible"),
            Self::Url(error) => error.fmt(f),
            Self::NodeList { variable, error } => {
                write!(f, "environment variable {}: {error}", variable.escape_debug())
            }
            Self::Duplicate { first, second } => {
                write!(f, "{first} and {second} are the same server: name it once")
            }
            Self::Setting { name, reason } => write!(f, "setting {name}: {reason}"),
            Self::Tls(error) => write!(f, "setting tls: {error}"),
            Self::System(error) => {
                write!(f, "the sockets' poll or I/O thread could not be created: {error}")
            }
        }
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Url(error) => error.source(),
            Self::NodeList { error, .. } => error.source(),
            Self::Tls(error) => error.source(),
            Self::System(error) => error.source(),
            _ => None,
        }
    }
}

/// Why the settings for TLS cannot be used. No text has any part of a file's content.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of a variant says what its fields are")]
pub enum TlsSettingsError {
    /// A file could not be read, and why.
    File { path: PathBuf, error: Arc<io::Error> },
    /// A file that should have certificates has none in PEM format.
    NoCertificate { path: PathBuf },
    /// A file that should have a private key has none in PEM format. `path`: the file;
    /// `is_encrypted`: does it have an encrypted key? Only keys without a passphrase can be used.
    NoKey { path: PathBuf, is_encrypted: bool },
    /// A certificate or a private key in a file cannot be used. `path`: the file; `reason`: why
    /// not.
    Unusable { path: PathBuf, reason: String },
    /// The client certificate and the private key do not belong together. `certificate`: the file
    /// with the certificate; `key`: the file with the private key.
    KeyMismatch { certificate: PathBuf, key: PathBuf },
    /// The operating system has no root certificates, or they cannot be read. `reason`: the
    /// operating system's words, if it has any.
    NoSystemRoots { reason: String },
    /// No certificate can be valid for this host or `server_name`.
    ServerName { name: String },
    /// A ready configuration is given, and settings that it would have to contain.
    ConfigAndSettings,
}

impl fmt::Display for TlsSettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, error } => write!(f, "{} cannot be read: {error}", path.display()),
            Self::NoCertificate { path } => {
                write!(f, "{} has no certificate in PEM format", path.display())
            }
            Self::NoKey { path, is_encrypted: true } => {
                write!(f, "{} has an encrypted private key: decrypt it", path.display())
            }
            Self::NoKey { path, is_encrypted: false } => {
                write!(f, "{} has no private key in PEM format", path.display())
            }
            Self::Unusable { path, reason } => {
                write!(f, "{} cannot be used: {reason}", path.display())
            }
            Self::KeyMismatch { certificate, key } => {
                let (certificate, key) = (certificate.display(), key.display());
                write!(f, "{certificate} and {key} do not belong together")
            }
            Self::NoSystemRoots { reason } => {
                f.write_str(
                    "the system has no root certificates: install them (ca-certificates), or use \
                     TlsSettings::ca_file or TlsSettings::bundled_roots",
                )?;
                if reason.is_empty() { Ok(()) } else { write!(f, " ({reason})") }
            }
            Self::ServerName { name } => {
                write!(f, "no certificate can be valid for the name '{name}'")
            }
            Self::ConfigAndSettings => {
                f.write_str("a ready configuration has its own roots and client certificate")
            }
        }
    }
}

impl std::error::Error for TlsSettingsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { error, .. } => error.source(),
            _ => None,
        }
    }
}

// Errors of lists of nodes.

/// Why a comma-separated list of node URLs cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of a variant says what its fields are")]
pub enum NodeListError {
    /// The environment variable is not set.
    NotSet,
    /// The value of the environment variable is not UTF-8.
    NotUnicode,
    /// The list is empty.
    Empty,
    /// An entry of the list is empty. `number`: which one, from 1.
    EmptyEntry { number: usize },
    /// The first entry of the list has no scheme, or an unknown one. No part of a password is in
    /// front of that.
    FirstScheme(NodeUrlErrorKind),
    /// A later entry of the list has no scheme, or an unknown one, and does not follow a `zk://`
    /// URL as one more host. It is not shown: it may be the part of a password that follows a
    /// comma. `number`: which one, from 1.
    NoScheme { number: usize },
    /// An entry of the list is a URL that cannot be used.
    Url(NodeUrlError),
}

impl fmt::Display for NodeListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSet => f.write_str("not set"),
            Self::NotUnicode => f.write_str("not UTF-8"),
            Self::Empty => f.write_str("no URL in it"),
            Self::EmptyEntry { number } => write!(f, "entry {number} is empty"),
            Self::FirstScheme(kind) => write!(f, "entry 1: {kind}"),
            Self::NoScheme { number } => write!(
                f,
                "entry {number} does not begin with redis:// or another scheme of a node (a comma \
                 in a password is written as %2C)"
            ),
            Self::Url(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NodeListError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Url(error) => error.source(),
            _ => None,
        }
    }
}
