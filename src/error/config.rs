//! Why a client could not be built.

use super::{NodeUrlError, NodeUrlErrorKind};
use crate::texts::errors;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

errors! {
    /// Why a client could not be built. Two of them are equal if they say the same.
    #[derive(Clone)]
    #[expect(missing_docs, reason = "the text of a variant says what its fields are")]
    pub enum ConfigError {
        #[text("no nodes: at least one URL is needed")]
        NoNodes,
        /// Or servers of an ensemble.
        #[text("{count} nodes: at most 64 are possible")]
        TooManyNodes(count: usize),
        /// A node's URL cannot be used.
        Url(error: NodeUrlError),
        /// The list of nodes in an environment variable cannot be used.
        #[text("environment variable {variable}: {error}", variable = variable.escape_debug())]
        #[cause(error)]
        NodeList { variable: String, error: NodeListError },
        /// Two URLs, or two hosts of an ensemble, in the order of the configuration and without
        /// passwords.
        #[text("{first} and {second} are the same server: name it once")]
        Duplicate { first: String, second: String },
        /// `name`: the method of `Builder` that sets it.
        #[text("setting {name}: {reason}")]
        Setting { name: &'static str, reason: String },
        /// The [settings for TLS](crate::Builder#method.tls) cannot be used.
        #[text("setting tls: {error}")]
        #[cause(error)]
        Tls(error: TlsSettingsError),
        /// The operating system refused what the client needs: a poll for its sockets, or the
        /// thread that [`io_thread`](crate::Builder::io_thread) asks for.
        #[text("the sockets' poll or I/O thread could not be created: {error}")]
        #[cause(error)]
        System(error: Arc<io::Error>),
    }
}

impl PartialEq for ConfigError {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl Eq for ConfigError {}

errors! {
    /// Why the settings for TLS cannot be used. No text has any part of a file's content.
    #[derive(Clone, Debug)]
    #[expect(missing_docs, reason = "the text of a variant says what its fields are")]
    pub enum TlsSettingsError {
        #[text("{path} cannot be read: {error}", path = path.display())]
        #[cause(error)]
        File { path: PathBuf, error: Arc<io::Error> },
        #[text("{path} has no certificate in PEM format", path = path.display())]
        NoCertificate { path: PathBuf },
        #[text("{path} has no private key in PEM format", path = path.display())]
        NoKey { path: PathBuf },
        /// Only keys without a passphrase can be used.
        #[text("{path} has an encrypted private key: decrypt it", path = path.display())]
        EncryptedKey { path: PathBuf },
        /// A certificate or a private key in a file cannot be used.
        #[text("{path} cannot be used: {reason}", path = path.display())]
        Unusable { path: PathBuf, reason: String },
        /// The files of the client certificate and of the private key.
        #[text(
            "{certificate} and {key} do not belong together",
            certificate = certificate.display(),
            key = key.display()
        )]
        KeyMismatch { certificate: PathBuf, key: PathBuf },
        /// Or they cannot be read. `reason`: the operating system's words, if it has any.
        #[text(
            "the system has no root certificates: install them (ca-certificates), or use \
             TlsSettings::ca_file or TlsSettings::bundled_roots{reason}",
            reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") }
        )]
        NoSystemRoots { reason: String },
        /// It is the host of a URL, or its `server_name`.
        #[text("no certificate can be valid for the name '{name}'")]
        ServerName { name: String },
        /// Other settings were made beside it.
        #[text("a ready configuration has its own roots and client certificate")]
        ConfigAndSettings,
    }
}

errors! {
    /// Why a comma-separated list of node URLs in an environment variable cannot be used.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the text of a variant says what its fields are")]
    pub enum NodeListError {
        #[text("not set")]
        NotSet,
        #[text("not UTF-8")]
        NotUnicode,
        #[text("no URL in it")]
        Empty,
        /// Counted from 1.
        #[text("entry {number} is empty")]
        EmptyEntry { number: usize },
        /// The first entry has no scheme, or an unknown one. No part of a password is in front of
        /// that.
        #[text("entry 1: {kind}")]
        FirstScheme(kind: NodeUrlErrorKind),
        /// Nor does it follow a `zk://` URL as one more host. It is not shown: it may be the part
        /// of a password that follows a comma.
        #[text(
            "entry {number} does not begin with redis:// or another scheme of a node (a comma in \
             a password is written as %2C)"
        )]
        NoScheme { number: usize },
        /// An entry is a URL that cannot be used.
        Url(error: NodeUrlError),
    }
}
