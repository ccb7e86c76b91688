//! Where the URLs of the nodes come from: from the program, or from an environment variable.

use super::Builder;
use crate::engine::NODES_MAX;
use crate::error::{ConfigError, NodeListError};
use crate::node_url::{NodeUrl, has_scheme, redact};
use std::env::{self, VarError};

impl Builder {
    /// Adds nodes by their URLs, with user, password and path percent-encoded:
    ///
    /// * `redis://[[user]:password@]host[:port][/db]`, or the same with `valkey://`;
    /// * `rediss://…` or `valkeys://…` for the same over TLS, with the feature `tls`. The option
    ///   `?server_name=redis-1.internal` gives the name or the address for which the server's
    ///   certificate must be valid, if that is not the host;
    /// * `unix://[[user]:password@]/path[?db=0]` for a Unix domain socket.
    ///
    /// A user without a password is written `user:@`: without the colon it might be a password, and
    /// is refused.
    ///
    /// The nodes must be independent masters. Three nodes tolerate the loss of one, five the loss
    /// of two; an even number tolerates no more than one node fewer, and two tolerate none. One
    /// node [works too](crate::guide::one_server). All clients that share locks must name the same
    /// nodes.
    pub fn nodes<I: IntoIterator<Item: Into<String>>>(mut self, urls: I) -> Self {
        self.nodes.extend(urls.into_iter().map(|url| NodeSource::Url(url.into())));
        self
    }

    /// Adds the nodes in this environment variable, a comma-separated list of
    /// [URLs](Self::nodes), which is read now. Whitespace around a comma is ignored. An empty entry
    /// is an error, and a comma in a password is written `%2C`. [`build`](Self::build) fails if the
    /// variable is not set; the error names the variable and shows no password.
    ///
    /// ```no_run
    /// # use redlatch::{ConfigError, LockClient};
    /// // LOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3
    /// let client = LockClient::builder().nodes_from_env("LOCK_NODES").build()?;
    /// # Ok::<(), ConfigError>(())
    /// ```
    pub fn nodes_from_env(mut self, variable: &str) -> Self {
        let (name, value) = (variable.to_owned(), env::var(variable));
        self.nodes.push(NodeSource::Variable { name, value });
        self
    }
}

/// One addition to the nodes of a builder.
#[derive(Clone)]
pub(super) enum NodeSource {
    Url(String),
    Variable { name: String, value: Result<String, VarError> },
}

/// The text of one URL, and the environment variable that it is from, if it is from one.
struct Entry<'a> {
    text: &'a str,
    variable: Option<&'a str>,
}

impl NodeSource {
    fn entries(&self) -> Result<Vec<Entry<'_>>, ConfigError> {
        let (name, value) = match self {
            Self::Url(text) => return Ok(vec![Entry { text, variable: None }]),
            Self::Variable { name, value } => (name.as_str(), value),
        };
        entries_of_list(name, value).map_err(|error| in_variable(name, error))
    }
}

/// The entries of the list in the environment variable of this name.
fn entries_of_list<'a>(
    name: &'a str,
    value: &'a Result<String, VarError>,
) -> Result<Vec<Entry<'a>>, NodeListError> {
    let list = match value {
        Ok(list) if list.trim().is_empty() => return Err(NodeListError::Empty),
        Ok(list) => list,
        Err(VarError::NotPresent) => return Err(NodeListError::NotSet),
        Err(VarError::NotUnicode(_)) => return Err(NodeListError::NotUnicode),
    };
    let entry = |text: &'a str| Entry { text: text.trim(), variable: Some(name) };
    let entries: Vec<_> = list.split(',').map(entry).collect();
    // Before any URL is parsed and perhaps shown: what has no known scheme may be the part of a
    // password that follows a comma, and then the entry before it is another part of it.
    for (index, entry) in entries.iter().enumerate() {
        let number = index + 1;
        if entry.text.is_empty() {
            return Err(NodeListError::EmptyEntry { number });
        }
        if !has_scheme(entry.text) {
            return Err(NodeListError::NoScheme { number });
        }
    }
    Ok(entries)
}

fn in_variable(name: &str, error: NodeListError) -> ConfigError {
    ConfigError::NodeList { variable: name.to_owned(), error }
}

impl Entry<'_> {
    fn parse(&self) -> Result<NodeUrl, ConfigError> {
        NodeUrl::parse(self.text).map_err(|error| match self.variable {
            None => ConfigError::Url(error),
            Some(name) => in_variable(name, NodeListError::Url(error)),
        })
    }
}

/// The URLs of all nodes.
pub(super) fn node_urls(sources: &[NodeSource]) -> Result<Vec<NodeUrl>, ConfigError> {
    let mut entries = Vec::new();
    for source in sources {
        entries.extend(source.entries()?);
    }
    if entries.is_empty() {
        return Err(ConfigError::NoNodes);
    }
    if entries.len() > NODES_MAX {
        return Err(ConfigError::TooManyNodes(entries.len()));
    }
    let mut urls: Vec<NodeUrl> = Vec::new();
    for entry in &entries {
        let url = entry.parse()?;
        if let Some(first) = urls.iter().position(|other| other.same_server(&url)) {
            // As they were written: in their canonical form two spellings would look like one.
            let (first, second) = (redact(entries[first].text), redact(entry.text));
            return Err(ConfigError::Duplicate { first, second });
        }
        urls.push(url);
    }
    Ok(urls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    fn urls(source: NodeSource) -> Result<Vec<String>, ConfigError> {
        let urls = node_urls(&[source])?;
        Ok(urls.iter().map(NodeUrl::to_string).collect())
    }

    fn list(text: &str) -> Result<Vec<String>, ConfigError> {
        variable(Ok(text))
    }

    fn variable(value: Result<&str, VarError>) -> Result<Vec<String>, ConfigError> {
        let value = value.map(str::to_owned);
        urls(NodeSource::Variable { name: "LOCK_NODES".to_owned(), value })
    }

    #[test]
    fn a_list_is_split_at_its_commas() {
        let three = ["redis://a:6379/0", "redis://b:6379/0", "redis://c:6379/0"];
        assert_eq!(list("redis://a,redis://b,redis://c").unwrap(), three);
        assert_eq!(list(" redis://a ,\n\tvalkey://b , redis://c\n").unwrap(), three);
        assert_eq!(list("unix:///a%2Cb").unwrap(), ["unix:///a%2Cb?db=0"]);
        let url = NodeSource::Url("redis://a".to_owned());
        let value = Ok("redis://b,redis://c".to_owned());
        let list = NodeSource::Variable { name: "LOCK_NODES".to_owned(), value };
        let both = node_urls(&[url, list]).unwrap();
        assert_eq!(both.iter().map(NodeUrl::to_string).collect::<Vec<_>>(), three);
    }

    #[test]
    fn an_entry_that_is_no_url_is_an_error_that_names_its_place() {
        for (text, expected) in [
            ("", "no URL in it"),
            (" \n", "no URL in it"),
            (",", "entry 1 is empty"),
            ("redis://a,", "entry 2 is empty"),
            ("redis://a, ,redis://b", "entry 2 is empty"),
            ("redis://a,b:6379", "entry 2 has no scheme such as redis:// (a comma in a password"),
            ("redis://a,redis://b:x", "bad node url 'redis://b:***': port is not a number"),
            ("redis://a,redis://b?x", "bad node url 'redis://b?***': unknown option 'x'"),
        ] {
            let error = list(text).unwrap_err().to_string();
            let variable = "environment variable LOCK_NODES:";
            assert!(error.starts_with(&format!("{variable} {expected}")), "{error}");
        }
        let same = list("redis://a,redis://b,redis://A:6379").unwrap_err().to_string();
        assert!(same.starts_with("redis://a and redis://A:6379 are the same server"), "{same}");
        let many = vec!["redis://a"; 65].join(",");
        assert!(matches!(list(&many), Err(ConfigError::TooManyNodes(65))));
    }

    #[test]
    fn a_variable_that_cannot_be_read_is_named() {
        let error = variable(Err(VarError::NotPresent)).unwrap_err();
        assert_eq!(error.to_string(), "environment variable LOCK_NODES: not set");
        let error = variable(Err(VarError::NotUnicode("x".into()))).unwrap_err();
        assert_eq!(error.to_string(), "environment variable LOCK_NODES: not UTF-8");
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
            ] {
                let error = list(&url).unwrap_err();
                let source = error.source().map(|source| format!("{source} {source:?}"));
                let shown = format!("{error} {error:?} {source:?}");
                assert!(!shown.contains("Zq7x"), "{error:?} of {url}");
            }
        }
    }
}
