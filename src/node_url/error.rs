//! Why a URL is refused, and which parts of it may be shown.

use crate::texts::errors;
use std::error::Error;
use std::fmt;

const SHOWN_MAX: usize = 200;

const SCHEMES: &str = "redis://, rediss://, valkey://, valkeys://, unix://, redis+sentinel://, \
                       redis+cluster://, zk:// or zks://";

/// A URL that is not a node URL. Its text shows the URL without the parts that may be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeUrlError {
    shown: String,
    kind: NodeUrlErrorKind,
}

impl NodeUrlError {
    pub(super) fn new(url: &str, kind: NodeUrlErrorKind) -> Self {
        Self {
            shown: redact(url),
            kind,
        }
    }

    /// Why the URL is refused.
    #[must_use]
    pub fn kind(&self) -> &NodeUrlErrorKind {
        &self.kind
    }
}

impl fmt::Display for NodeUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bad node url '{}': {}", self.shown, self.kind)
    }
}

impl Error for NodeUrlError {}

errors! {
    /// Why a URL is refused.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the text of a variant says what its fields are")]
    pub enum NodeUrlErrorKind {
        /// As in `host:6379`.
        #[text("no scheme, expected {SCHEMES}")]
        MissingScheme,
        /// As of a value that a shell has not read.
        #[text("it begins with a quotation mark, which is not part of a URL")]
        Quoted,
        #[text("{scheme}, expected {SCHEMES}", scheme = refused_scheme(scheme))]
        UnknownScheme(scheme: String),
        #[text("TLS needs the feature `tls` of redlatch: cargo add redlatch --features tls")]
        NoTlsFeature,
        #[text(
            "ZooKeeper needs the feature `zookeeper` of redlatch: cargo add redlatch --features \
             zookeeper"
        )]
        NoZooKeeperFeature,
        #[text(
            "a replicated group needs the feature `groups` of redlatch: cargo add redlatch \
             --features groups"
        )]
        NoGroupsFeature,
        #[text("unix:// can be used on Unix platforms only")]
        NoUnixSockets,
        /// Such as a line break or NUL.
        #[text("control character")]
        ControlCharacter,
        /// A node's URL has no fragment.
        #[text("'#' has to be written as %23")]
        Fragment,
        #[text("'/' and '?' in a user or password have to be written as %2F and %3F")]
        UnescapedCredentials,
        /// The part before the `@` has no colon.
        #[text(
            "a user or a password? write ':password@', 'user:password@', or 'user:@' for a user \
             without one"
        )]
        AmbiguousCredentials,
        /// In a `zk` or `zks` URL.
        #[text("both a user and a password are needed: write 'user:password@'")]
        IncompleteCredentials,
        /// In a `zk` or `zks` URL.
        #[text(
            "a ',' that is not between two hosts has to be written as %2C (one 'user:password@' \
             in front of all hosts and one path behind them)"
        )]
        UnescapedComma,
        /// In a URL of one server.
        #[text(
            "several hosts: write one URL for each node, redis+sentinel:// for the Sentinels of a \
             group, or redis+cluster:// for servers of a cluster"
        )]
        SeveralHosts,
        /// In a URL of Sentinels.
        #[text("no name of a group: write redis+sentinel://host/name")]
        NoGroup,
        #[text("a cluster has database 0 only")]
        ClusterDatabase,
        #[text("failover is neither 'true' nor 'false'")]
        BadFailover,
        #[text(
            "replicas is not a number from 2 on: with one replica a failover leaves no majority, \
             leave the option out or add a replica"
        )]
        BadReplicas,
        #[text("replicas needs failover=true")]
        ReplicasAlone,
        #[text("nodes is not a number from 1 to 5")]
        BadNodes,
        #[text("slots are not different numbers from 0 to 16383 between commas")]
        BadSlots,
        #[text("'%' without two hexadecimal digits, write it as %25")]
        BadPercentEscape,
        #[text("no host")]
        EmptyHost,
        #[text("host is not a name, an IPv4 address, or an IPv6 address in brackets")]
        BadHost,
        #[text("port is not a number from 1 to 65535")]
        BadPort,
        /// One that fits into 32 bits.
        #[text("database is not a number")]
        BadDatabase,
        #[text("server_name is neither a name nor an address")]
        BadServerName,
        /// The root is the path of a `zk` or `zks` URL.
        #[text("root: {reason}")]
        BadRoot { reason: String },
        #[text("layout is neither 'curator' nor 'kazoo'")]
        BadLayout,
        #[text("unix:// is followed by a path, not by a host")]
        UnexpectedHost,
        #[text("path is empty, contains NUL, or is not UTF-8")]
        BadPath,
        /// Its name, or nothing if that may be more than a name.
        #[text("unknown option{name}", name = quoted(name))]
        UnknownOption(name: String),
        /// Such as the database in the path and as an option.
        #[text("'{name}' is given twice")]
        RepeatedOption(name: &'static str),
    }
}

impl NodeUrlErrorKind {
    /// What is wrong with the beginning of a text that has no scheme of a node.
    pub(crate) fn of_scheme(text: &str) -> Self {
        match super::split_scheme(text) {
            Some((scheme, _)) => Self::UnknownScheme(scheme.to_ascii_lowercase()),
            None if text.starts_with(['"', '\'']) => Self::Quoted,
            None => Self::MissingScheme,
        }
    }

    /// A name is repeated only if it looks like one. It may be a piece of a password.
    pub(super) fn unknown_option(name: &str) -> Self {
        let is_name = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        Self::UnknownOption(if is_name {
            name.to_owned()
        } else {
            String::new()
        })
    }
}

fn refused_scheme(scheme: &str) -> String {
    if ["http", "https"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
    {
        return format!("{scheme}:// is not a URL of a Redis server");
    }
    format!("unknown scheme '{scheme}'")
}

/// An empty name is not shown.
fn quoted(name: &str) -> String {
    if name.is_empty() {
        String::new()
    } else {
        format!(" '{name}'")
    }
}

/// The part of a text that may be shown, which should be a URL and need not be: nothing before its
/// last `@`, nor where a password ends up if the `@` is missing or a character before it is not
/// encoded. When in doubt, less is shown.
pub(crate) fn redact(url: &str) -> String {
    let (scheme, rest) = match super::split_scheme(url) {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    let is_ensemble = super::is_ensemble(url);
    let (mark, rest) = match rest.rsplit_once('@') {
        // Either a '?' in a password, or an '@' in an option, which may be a password.
        Some((secret, _)) if secret.contains(['?', '#']) => ("***@", "***"),
        Some((_, rest)) => ("***@", rest),
        None => ("", rest),
    };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (place, options) = rest.split_at(end);
    // Options have secrets in them; a database has not.
    let options = match options.strip_prefix("?db=") {
        _ if options.is_empty() => "",
        Some(database) if database.parse::<u32>().is_ok() => options,
        _ => "?***",
    };
    let place = if is_ensemble {
        redact_servers(place)
    } else {
        redact_place(place)
    };
    let shown = format!("{scheme}{mark}{place}{options}");
    // Escaped, so that a line break in a URL does not become one in a log.
    let mut shown: Vec<char> = shown.chars().flat_map(char::escape_debug).collect();
    if shown.len() > SHOWN_MAX {
        shown.truncate(SHOWN_MAX);
        shown.extend("...".chars());
    }
    shown.into_iter().collect()
}

/// `host:port/database` or `/path`, as far as it looks like one. Text in the place of the port that
/// is not a port may be a password in a URL without a host, and so may all text after it.
fn redact_place(place: &str) -> String {
    let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    if authority.is_empty() {
        return path.to_owned();
    }
    let after_brackets = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    if let Some(colon) = authority[after_brackets..].find(':') {
        let colon = after_brackets + colon;
        let is_port = authority[colon + 1..]
            .parse::<u16>()
            .is_ok_and(|port| port != 0);
        if !is_port || colon == 0 {
            return format!("{}:***", &authority[..colon]);
        }
    }
    let is_database = path.len() <= 1 || path[1..].parse::<u32>().is_ok();
    format!("{authority}{}", if is_database { path } else { "/***" })
}

/// `host:port,host:port/***`, as far as it looks like one. Nothing is shown behind what is neither
/// host nor port: it may be the rest of a password.
fn redact_servers(place: &str) -> String {
    let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let mut shown = String::new();
    for (index, server) in authority.split(',').enumerate() {
        let mark = if index == 0 { "" } else { "," };
        let redacted = redact_place(server);
        // The first one may be a misspelt host. The others may follow a comma in a password.
        let is_server = index == 0 || super::host::with_port(server, 1).is_ok();
        if redacted != server || !is_server {
            let redacted = if index == 0 { &redacted } else { "***" };
            return format!("{shown}{mark}{redacted}");
        }
        shown = format!("{shown}{mark}{server}");
    }
    format!("{shown}{}", if path.len() <= 1 { path } else { "/***" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_secret_is_not_shown() {
        for (url, shown) in [
            ("redis://10.0.0.1:6379/0", "redis://10.0.0.1:6379/0"),
            (
                "redis://user:secret@host:6379/x",
                "redis://***@host:6379/***",
            ),
            ("redis://:se@cret@host", "redis://***@host"),
            ("redis://:se/cret@host", "redis://***@host"),
            ("redis://:se?cret@host", "redis://***@***"),
            ("redis://:secret", "redis://:***"),
            ("redis://user:secret/0", "redis://user:***"),
            ("redis://user:1/secret", "redis://user:1/***"),
            ("redis://user:1secret", "redis://user:***"),
            ("redis://:123456", "redis://:***"),
            ("redis://:6379", "redis://:***"),
            ("redis://[::1]:secret", "redis://[::1]:***"),
            ("user:secret@host", "***@host"),
            ("user:secret", "user:***"),
            ("host:6379", "host:6379"),
            ("unix:///run/redis.sock?db=x", "unix:///run/redis.sock?***"),
            ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
            (
                "unix:///run/redis.sock?password=secret",
                "unix:///run/redis.sock?***",
            ),
            ("unix:///run/redis.sock?password=se@cret", "unix://***@***"),
            ("redis://a\nb", "redis://a\\nb"),
            ("zk://h1:2181,[::1]:2181,h3/", "zk://h1:2181,[::1]:2181,h3/"),
            ("zk://h1,h2/locks", "zk://h1,h2/***"),
            ("zks://user:secret@h1,h2:x", "zks://***@h1,***"),
            ("zk://user:secret@h1,user:secret@h2", "zk://***@h2"),
            ("zk://user:secret,[::1]", "zk://user:***"),
            ("zk://user:1secret,h", "zk://user:***"),
            ("zk://user:1,secret!,h", "zk://user:1,***"),
            ("zk://user:1,sec:ret/x", "zk://user:1,***"),
            ("zk://:1,secret", "zk://:***"),
            ("zk://user:1/secret", "zk://user:1/***"),
            ("zk://h?layout=secret", "zk://h?***"),
            ("ZK://h1,h2?db=1", "ZK://h1,h2?db=1"),
            ("redis://user:1,secret", "redis://user:***"),
            ("", ""),
        ] {
            assert_eq!(redact(url), shown, "{url}");
        }
    }

    #[test]
    fn a_url_of_the_web_is_named_as_such() {
        let text = |scheme: &str| NodeUrlErrorKind::UnknownScheme(scheme.to_owned()).to_string();
        for scheme in ["http", "https", "HTTP"] {
            let start = format!("{scheme}:// is not a URL of a Redis server, expected redis://, ");
            assert!(text(scheme).starts_with(&start), "{}", text(scheme));
        }
        assert!(text("httpx").starts_with("unknown scheme 'httpx', expected redis://, "));
    }

    #[test]
    fn a_long_url_is_cut() {
        assert_eq!(redact(&"é".repeat(1000)).chars().count(), SHOWN_MAX + 3);
    }

    #[test]
    fn an_option_that_looks_like_no_name_is_not_named() {
        let text = |name| NodeUrlErrorKind::unknown_option(name).to_string();
        assert_eq!(text("timeout"), "unknown option 'timeout'");
        assert_eq!(text("S3cret"), "unknown option");
    }
}
