//! The nodes, and where their URLs come from: from the program, or from an environment variable.

use super::Builder;
#[cfg(feature = "zookeeper")]
use super::ensemble::EnsembleSettings;
use super::settings::ClientSettings;
#[cfg(feature = "zookeeper")]
use super::settings::{NODE_TIMEOUT_MAX, refused};
use crate::engine::NODES_MAX;
use crate::error::{ConfigError, NodeListError, NodeUrlError, NodeUrlErrorKind};
use crate::net::TlsTarget;
#[cfg(feature = "zookeeper")]
use crate::node_url::is_ensemble;
use crate::node_url::{NodeUrl, Scheme, has_scheme, redact, takes_hosts};
use std::borrow::Cow;
use std::env::{self, VarError};
use std::time::Duration;

/// The node timeout of Redis nodes, unless it is set.
const NODE_TIMEOUT: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) enum NodeSettings {
    /// On these nodes; one at least.
    Redis(Vec<RedisNode>),
    #[cfg(feature = "zookeeper")]
    ZooKeeper(EnsembleSettings),
}

#[derive(Debug)]
pub(crate) struct RedisNode {
    pub(crate) url: NodeUrl,
    pub(crate) tls: Option<TlsTarget>,
}

impl NodeSettings {
    /// How many votes there are on a lock. An ensemble has agreed before it answers.
    pub(super) fn votes(&self) -> usize {
        match self {
            Self::Redis(nodes) => nodes.len(),
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(_) => 1,
        }
    }

    /// The first node that is a replicated group.
    pub(crate) fn group(&self) -> Option<&NodeUrl> {
        match self {
            Self::Redis(nodes) => nodes
                .iter()
                .map(|node| &node.url)
                .find(|url| url.failover().is_some()),
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(_) => None,
        }
    }

    /// The node timeout, unless it is set.
    pub(super) fn default_node_timeout(&self) -> Duration {
        match self {
            Self::Redis(_) => NODE_TIMEOUT,
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(ensemble) => (ensemble.session_timeout / 3).min(NODE_TIMEOUT_MAX),
        }
    }
}

/// The URL of one node, which is a string, or those of several, which are anything that iterates
/// over strings: what [`Builder::nodes`] and [`LockClient::new`](crate::LockClient::new) take.
/// `Form` is inferred; it keeps the two apart for the compiler.
pub trait NodeUrls<Form: ?Sized> {
    /// The URLs.
    fn into_urls(self) -> Vec<String>;
}

impl NodeUrls<str> for &str {
    fn into_urls(self) -> Vec<String> {
        vec![self.to_owned()]
    }
}

impl NodeUrls<str> for &String {
    fn into_urls(self) -> Vec<String> {
        vec![self.clone()]
    }
}

impl NodeUrls<str> for String {
    fn into_urls(self) -> Vec<String> {
        vec![self]
    }
}

impl<I: IntoIterator<Item: Into<String>>> NodeUrls<[String]> for I {
    fn into_urls(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}

impl Builder {
    /// Adds one node by its URL, or several by a list of URLs, with user, password and path
    /// percent-encoded. [The guide](crate::guide::settings#node-urls) says more of them:
    ///
    /// * `redis://[[user]:password@]host[:port][/db]`, or the same with `valkey://`;
    /// * `rediss://…` or `valkeys://…` for the same over TLS, with the feature `tls`. The option
    ///   `?server_name=redis-1.internal` gives the name or the address for which the server's
    ///   certificate must be valid, if that is not the host;
    /// * `unix://[[user]:password@]/path[?db=0]` for a Unix domain socket;
    /// * for [servers with replicas](crate::guide::groups): `redis+sentinel://s1,s2,s3/name` for a
    ///   group that Sentinels watch, `redis+cluster://h1,h2,h3` for slots of a cluster, which are
    ///   three nodes or `?nodes=1` to `5`, and `redis://…?failover=true` for a name that leads to
    ///   the present master; each with `rediss`, `valkey` or `valkeys` too, and with `?replicas=2`;
    /// * with the feature `zookeeper`,
    ///   `zk://[user:password@]host[:port][,host[:port]…][/root][?layout=kazoo]` or `zks://…`:
    ///   instead of Redis nodes, servers of [one ZooKeeper
    ///   ensemble](crate::guide::zookeeper#setting-it-up).
    ///
    /// An entry without `://` continues the URL of Sentinels, of a cluster or of an ensemble before
    /// it: `["zk://h1", "h2", "h3/locks"]` is the same as `["zk://h1,h2,h3/locks"]`.
    ///
    /// The nodes must be independent masters, or groups. Three nodes tolerate the loss of one, five
    /// the loss of two; an even number tolerates no more than one node fewer, and two tolerate
    /// none. One node [works too](crate::guide::one_server). All clients that share locks must name
    /// the same nodes.
    pub fn nodes<Form: ?Sized>(mut self, urls: impl NodeUrls<Form>) -> Self {
        self.settings.nodes.extend(urls.into_urls());
        self
    }

    /// Adds the nodes in this environment variable, behind those of [`nodes`](Self::nodes). It is a
    /// comma-separated list of URLs, which [`build`](Self::build) reads:
    /// `LOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3`. Whitespace around a comma
    /// is ignored. An empty entry is an error, and a comma in a password is written `%2C`. A
    /// URL with several hosts may stand in it. `build` fails if the variable is not set; the error
    /// names the variable and shows no password.
    pub fn nodes_from_env(mut self, variable: &str) -> Self {
        self.settings.nodes_from_env.push(variable.to_owned());
        self
    }
}

impl ClientSettings {
    /// The nodes, checked, with the settings that depend on what they are. Reads the variables.
    pub(super) fn check_nodes(&self) -> Result<NodeSettings, ConfigError> {
        self.check_entries(&entries(&self.nodes, &self.variables())?)
    }

    /// Does the URL of a node ask for TLS? Reads the environment variables that list nodes.
    ///
    /// # Errors
    ///
    /// There are no nodes, or too many; or a text begins with no scheme of a node.
    pub fn uses_tls(&self) -> Result<bool, ConfigError> {
        let variables = self.variables();
        let mut uses_tls = false;
        for entry in entries(&self.nodes, &variables)? {
            match Scheme::split(&entry.text) {
                Some((scheme, _)) => uses_tls |= scheme.is_tls,
                None => {
                    NodeUrl::parse(&entry.text).map_err(|error| entry.refused(error))?;
                }
            }
        }
        Ok(uses_tls)
    }

    fn variables(&self) -> Vec<Variable> {
        self.nodes_from_env
            .iter()
            .map(|name| (name.clone(), env::var(name)))
            .collect()
    }

    fn check_entries(&self, entries: &[UrlEntry<'_>]) -> Result<NodeSettings, ConfigError> {
        #[cfg(feature = "zookeeper")]
        if entries.iter().any(|entry| is_ensemble(&entry.text)) {
            return self.check_ensemble(entries).map(NodeSettings::ZooKeeper);
        }
        let urls = node_urls(entries)?;
        #[cfg(feature = "zookeeper")]
        if self.session_timeout.is_some() {
            return Err(refused("session_timeout", "it applies to ZooKeeper only"));
        }
        let names: Vec<_> = urls.iter().map(NodeUrl::server_name).collect();
        let targets = self.tls_targets(&names)?;
        let nodes = urls
            .into_iter()
            .zip(targets)
            .map(|(url, tls)| RedisNode { url, tls });
        Ok(NodeSettings::Redis(nodes.collect()))
    }

    /// For each of these names, how to secure the connections to a server with this name; nothing
    /// where there is none.
    pub(super) fn tls_targets(
        &self,
        names: &[Option<&str>],
    ) -> Result<Vec<Option<TlsTarget>>, ConfigError> {
        #[cfg(feature = "tls")]
        let targets = self.tls.targets(names).map_err(ConfigError::Tls);
        // No URL wants TLS then: the parser refuses it.
        #[cfg(not(feature = "tls"))]
        let targets = Ok(names.iter().map(|_| None).collect());
        targets
    }
}

/// The name of an environment variable, and what it is set to.
type Variable = (String, Result<String, VarError>);

/// The text of one URL, and the environment variable that it is from, if it is from one.
pub(super) struct UrlEntry<'a> {
    pub(super) text: Cow<'a, str>,
    variable: Option<&'a str>,
}

/// All URLs; one at least.
fn entries<'a>(
    urls: &'a [String],
    variables: &'a [Variable],
) -> Result<Vec<UrlEntry<'a>>, ConfigError> {
    let mut entries = Vec::new();
    urls.iter()
        .for_each(|url| add(&mut entries, UrlEntry::new(url, None)));
    for (name, value) in variables {
        let list = entries_of_list(name, value);
        entries.extend(list.map_err(|error| in_variable(name, error))?);
    }
    match entries.len() {
        0 => Err(ConfigError::NoNodes),
        count if count > NODES_MAX => Err(ConfigError::TooManyNodes(count)),
        _ => Ok(entries),
    }
}

/// Adds an entry, or its text to the entry before it: more hosts of an ensemble.
fn add<'a>(entries: &mut Vec<UrlEntry<'a>>, entry: UrlEntry<'a>) {
    match entries.last_mut() {
        Some(last) if last.is_continued_by(&entry) => {
            let text = last.text.to_mut();
            text.push(',');
            text.push_str(&entry.text);
        }
        _ => entries.push(entry),
    }
}

fn entries_of_list<'a>(
    name: &'a str,
    value: &'a Result<String, VarError>,
) -> Result<Vec<UrlEntry<'a>>, NodeListError> {
    let list = match value {
        Ok(list) if list.trim().is_empty() => return Err(NodeListError::Empty),
        Ok(list) => list,
        Err(VarError::NotPresent) => return Err(NodeListError::NotSet),
        Err(VarError::NotUnicode(_)) => return Err(NodeListError::NotUnicode),
    };
    // Before any URL is parsed and perhaps shown: what has no known scheme may be the part of a
    // password that follows a comma, and then the entry before it is another part of it. In the URL
    // of an ensemble it is one more host, or the `@` behind it hides both parts.
    let mut entries: Vec<UrlEntry<'a>> = Vec::new();
    for (index, text) in list.split(',').enumerate() {
        let number = index + 1;
        let entry = UrlEntry::new(text.trim(), Some(name));
        if entry.text.is_empty() {
            return Err(NodeListError::EmptyEntry { number });
        }
        let is_more = entries
            .last()
            .is_some_and(|last| last.is_continued_by(&entry));
        if !is_more && !has_scheme(&entry.text) {
            return Err(match number {
                1 => NodeListError::FirstScheme(NodeUrlErrorKind::of_scheme(&entry.text)),
                _ => NodeListError::NoScheme { number },
            });
        }
        add(&mut entries, entry);
    }
    Ok(entries)
}

fn in_variable(name: &str, error: NodeListError) -> ConfigError {
    ConfigError::NodeList {
        variable: name.to_owned(),
        error,
    }
}

impl<'a> UrlEntry<'a> {
    fn new(text: &'a str, variable: Option<&'a str>) -> Self {
        Self {
            text: Cow::Borrowed(text),
            variable,
        }
    }

    /// Is the other one more hosts of this ensemble?
    fn is_continued_by(&self, other: &Self) -> bool {
        let is_same_list = self.variable == other.variable;
        is_same_list && takes_hosts(&self.text) && !other.text.contains("://")
    }

    /// What is wrong with this URL, and in which variable it is.
    pub(super) fn refused(&self, error: NodeUrlError) -> ConfigError {
        match self.variable {
            None => ConfigError::Url(error),
            Some(name) => in_variable(name, NodeListError::Url(error)),
        }
    }
}

fn node_urls(entries: &[UrlEntry<'_>]) -> Result<Vec<NodeUrl>, ConfigError> {
    let mut urls: Vec<(NodeUrl, &UrlEntry<'_>)> = Vec::new();
    for entry in entries {
        let url = NodeUrl::parse(&entry.text).map_err(|error| entry.refused(error))?;
        for url in url.nodes() {
            if let Some((_, first)) = urls.iter().find(|(other, _)| other.same_server(&url)) {
                // As they were written: in their canonical form two spellings would look like one.
                let first = redact(&first.text);
                let second = redact(&entry.text);
                return Err(ConfigError::Duplicate { first, second });
            }
            urls.push((url, entry));
        }
    }
    if urls.len() > NODES_MAX {
        return Err(ConfigError::TooManyNodes(urls.len()));
    }
    Ok(urls.into_iter().map(|(url, _)| url).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    const NAME: &str = "LOCK_NODES";

    #[test]
    fn one_url_works_as_a_list_of_it_does() {
        let url = || "redis://localhost".to_owned();
        let of = |builder: Builder| {
            let urls = node_urls(&entries(&builder.settings.nodes, &[]).unwrap()).unwrap();
            urls.iter().map(NodeUrl::to_string).collect::<Vec<_>>()
        };
        let list = of(Builder::new().nodes([url()]));
        assert_eq!(list, ["redis://localhost:6379/0"]);
        assert_eq!(of(Builder::new().nodes("redis://localhost")), list);
        let owned = url();
        assert_eq!(of(Builder::new().nodes(&owned)), list);
        assert_eq!(of(Builder::new().nodes(owned.as_str())), list);
        assert_eq!(of(Builder::new().nodes(url())), list);
        assert_eq!(of(Builder::new().nodes(url()).nodes("redis://b")).len(), 2);
    }

    fn list(text: &str) -> Result<Vec<String>, ConfigError> {
        variable(Ok(text))
    }

    fn variable(value: Result<&str, VarError>) -> Result<Vec<String>, ConfigError> {
        let variable = (NAME.to_owned(), value.map(str::to_owned));
        let urls = node_urls(&entries(&[], &[variable])?)?;
        Ok(urls.iter().map(NodeUrl::to_string).collect())
    }

    #[cfg(feature = "groups")]
    #[test]
    fn a_group_is_used_with_its_quarantine_and_a_bound() {
        let of = |change: fn(Builder) -> Builder| {
            let builder = change(Builder::new().nodes("redis://h?failover=true"));
            builder
                .settings
                .check()
                .map(drop)
                .map_err(|error| error.to_string())
        };
        assert_eq!(
            of(|builder| builder.failover_bound(Duration::from_secs(1))),
            Ok(())
        );
        for (refused, name) in [
            (of(|builder| builder.restart_guard(false)), "restart_guard"),
            (
                of(|builder| builder.failover_bound(Duration::ZERO)),
                "failover_bound",
            ),
            (
                of(|builder| builder.clock_skew(Duration::from_millis(60_001))),
                "clock_skew",
            ),
        ] {
            assert!(
                refused.as_ref().is_err_and(|text| text.contains(name)),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn a_list_is_split_at_its_commas() {
        let three = ["redis://a:6379/0", "redis://b:6379/0", "redis://c:6379/0"];
        assert_eq!(list("redis://a,redis://b,redis://c").unwrap(), three);
        assert_eq!(
            list(" redis://a ,\n\tvalkey://b , redis://c\n").unwrap(),
            three
        );
        assert_eq!(list("unix:///a%2Cb").unwrap(), ["unix:///a%2Cb?db=0"]);
        let url = "redis://a".to_owned();
        let list = (NAME.to_owned(), Ok("redis://b,redis://c".to_owned()));
        let both = node_urls(&entries(&[url], &[list]).unwrap()).unwrap();
        assert_eq!(
            both.iter().map(NodeUrl::to_string).collect::<Vec<_>>(),
            three
        );
    }

    #[test]
    fn an_entry_that_is_no_url_is_an_error_that_names_its_place() {
        for (text, expected) in [
            ("", "no URL in it"),
            (" \n", "no URL in it"),
            (",", "entry 1 is empty"),
            ("redis://a,", "entry 2 is empty"),
            ("redis://a, ,redis://b", "entry 2 is empty"),
            (
                "redis://a,b:6379",
                "entry 2 does not begin with redis:// or another scheme of a",
            ),
            (
                "redis://a,rds://b",
                "entry 2 does not begin with redis:// or another scheme of a",
            ),
            (
                "http://a",
                "entry 1: http:// is not a URL of a Redis server, expected redis://, ",
            ),
            (
                "RDS://u:p@a,redis://b",
                "entry 1: unknown scheme 'rds', expected redis://, ",
            ),
            (
                "a:6379,redis://b",
                "entry 1: no scheme, expected redis://, ",
            ),
            (
                "\"redis://a,redis://b\"",
                "entry 1: it begins with a quotation mark, ",
            ),
            (
                "redis://a,redis://b:x",
                "bad node url 'redis://b:***': port is not a number",
            ),
            (
                "redis://a,redis://b?x",
                "bad node url 'redis://b?***': unknown option 'x'",
            ),
        ] {
            let error = list(text).unwrap_err().to_string();
            let variable = "environment variable LOCK_NODES:";
            assert!(
                error.starts_with(&format!("{variable} {expected}")),
                "{error}"
            );
        }
        let same = list("redis://a,redis://b,redis://A:6379")
            .unwrap_err()
            .to_string();
        assert!(
            same.starts_with("redis://a and redis://A:6379 are the same server"),
            "{same}"
        );
        let many = vec!["redis://a"; 65].join(",");
        assert!(matches!(list(&many), Err(ConfigError::TooManyNodes(65))));
    }

    #[test]
    fn hosts_of_an_ensemble_follow_its_url() {
        let texts = |urls: &[&str], lists: &[&str]| {
            let urls: Vec<_> = urls.iter().map(|&url| url.to_owned()).collect();
            let variable = |&list: &&str| (NAME.to_owned(), Ok(list.to_owned()));
            let variables: Vec<_> = lists.iter().map(variable).collect();
            let entries = entries(&urls, &variables)?;
            Ok(entries
                .iter()
                .map(|entry| entry.text.to_string())
                .collect::<Vec<_>>())
        };
        for (urls, lists, expected) in [
            (
                &["zk://h1", "h2", "h3/a"][..],
                &[][..],
                &["zk://h1,h2,h3/a"][..],
            ),
            (&[], &["zk://h1, h2 ,h3/a"], &["zk://h1,h2,h3/a"]),
            (
                &[],
                &["zk://h1,h2,zk://h3,h4"],
                &["zk://h1,h2", "zk://h3,h4"],
            ),
            // It does not continue what is from elsewhere.
            (&["zk://h1"], &["zk://h2,h3"], &["zk://h1", "zk://h2,h3"]),
            (&["redis://h1", "h2"], &[], &["redis://h1", "h2"]),
        ] {
            let found: Result<_, ConfigError> = texts(urls, lists);
            assert_eq!(found.unwrap(), expected);
        }
        for (text, expected) in [
            ("h1,zk://h2", "entry 1: no scheme, expected redis://"),
            ("zk://h1,redis://h2,h3", "entry 3 does not begin with"),
            ("zk://h1,http://h2", "entry 2 does not begin with"),
            ("zk://h1,,h2", "entry 2 is empty"),
        ] {
            let error: ConfigError = texts(&["zk://h1"], &[text]).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[cfg(not(feature = "zookeeper"))]
    #[test]
    fn an_ensemble_is_refused_without_the_feature() {
        let builder = Builder::new().nodes(["zk://user:Zq7x@h1", "h2"]);
        let error = builder.settings.check_nodes().unwrap_err();
        let reason = "ZooKeeper needs the feature `zookeeper` of redlatch: cargo add redlatch \
                      --features zookeeper";
        assert_eq!(
            error.to_string(),
            format!("bad node url 'zk://***@h1,h2': {reason}")
        );
        let error = list("zk://h1,h2").unwrap_err().to_string();
        assert!(error.ends_with(reason), "{error}");
    }

    #[test]
    fn a_variable_that_cannot_be_read_is_named() {
        let error = variable(Err(VarError::NotPresent)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "environment variable LOCK_NODES: not set"
        );
        let error = variable(Err(VarError::NotUnicode("x".into()))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "environment variable LOCK_NODES: not UTF-8"
        );
    }

    #[test]
    fn no_error_about_a_list_shows_a_password() {
        let passwords = [
            "Zq7x",
            "Zq7x,",
            ",Zq7x",
            "1,Zq7x",
            "1,Zq7x,Zq7x",
            "Zq7x/",
            "1,/Zq7x",
            "Zq7x,:Zq7x",
            "1,Zq7x:1",
            "6379, Zq7x ",
            "1,,Zq7x",
            "Zq7x#",
            "1?Zq7x,x",
            "1,Zq7x://x",
        ];
        for password in passwords {
            for url in [
                format!("redis://:{password}@a:x"),
                format!("redis://user:{password}@a:x"),
                format!("redis://a,redis://user:{password}@b:x"),
                format!("unix:///r?password={password}&x"),
                format!("unix:///r?password={password}&db=x"),
                format!("redis://:{password}@10.0.0.1,redis://:{password}@10.0.0.2,"),
                format!("redis://:{password}@10.0.0.1,redis://:{password}@10.0.0.2:x"),
                format!("zk://u:{password}@h1,h2:x"),
                format!("zk://u:{password}@h1,u:{password}@h2:x"),
                format!("zk://h1,redis://u:{password}@h2:x"),
            ] {
                let variable = [(NAME.to_owned(), Ok(url.clone()))];
                let checked = entries(&[], &variable)
                    .and_then(|entries| ClientSettings::default().check_entries(&entries));
                let error = checked.unwrap_err();
                let source = error.source().map(|source| format!("{source} {source:?}"));
                let shown = format!("{error} {error:?} {source:?}");
                assert!(!shown.contains("Zq7x"), "{error:?} of {url}");
            }
        }
    }
}
