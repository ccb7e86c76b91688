//! Which nodes to use, and with which settings: from the arguments, the environment or a file.

use super::arguments::NodeArguments;
use super::duration;
use super::exit::Failure;
use redlatch::{Builder, LockClient};
use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

const VARIABLE: &str = "REDLATCH_NODES";
const SYSTEM_FILE: &str = "/etc/redlatch.conf";

/// What a file says.
#[derive(Debug, Default, PartialEq)]
struct File {
    nodes: Vec<String>,
    max_ttl: Option<Duration>,
    node_timeout: Option<Duration>,
    prefix: Option<String>,
    restart_guard: Option<bool>,
}

/// The client that the arguments ask for. It has not connected yet.
pub(crate) fn client(arguments: &NodeArguments) -> Result<LockClient, Failure> {
    Ok(builder(arguments)?.build()?)
}

pub(crate) fn builder(arguments: &NodeArguments) -> Result<Builder, Failure> {
    let has_variable = env::var_os(VARIABLE).is_some_and(|value| !value.is_empty());
    let is_named = !arguments.node.is_empty() || has_variable;
    let file = match &arguments.config {
        Some(path) => read(path)?.ok_or_else(|| missing(path))?,
        None if is_named => File::default(),
        None => default_file()?,
    };
    let mut builder = LockClient::builder();
    if !arguments.node.is_empty() {
        builder = builder.nodes(&arguments.node);
    } else if !file.nodes.is_empty() {
        builder = builder.nodes(file.nodes);
    } else if has_variable {
        builder = builder.nodes_from_env(VARIABLE);
    } else {
        return Err(Failure::usage(&format!(
            "no nodes: name them with --node, in {VARIABLE} or in a file ({})",
            default_paths().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        )));
    }
    if let Some(max_ttl) = arguments.max_ttl.or(file.max_ttl) {
        builder = builder.max_ttl(max_ttl);
    }
    if let Some(timeout) = arguments.node_timeout.or(file.node_timeout) {
        builder = builder.node_timeout(timeout);
    }
    if let Some(prefix) = arguments.prefix.as_ref().or(file.prefix.as_ref()) {
        builder = builder.key_prefix(prefix);
    }
    let guard = !arguments.no_restart_guard && file.restart_guard.unwrap_or(true);
    Ok(builder.restart_guard(guard).client_name("redlatch-command"))
}

/// The first of these that exists is read.
fn default_paths() -> impl Iterator<Item = PathBuf> {
    let home = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let config = env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let own = config.or(home.map(|home| home.join(".config")));
    own.map(|own| own.join("redlatch.conf")).into_iter().chain([PathBuf::from(SYSTEM_FILE)])
}

fn default_file() -> Result<File, Failure> {
    for path in default_paths() {
        if let Some(file) = read(&path)? {
            return Ok(file);
        }
    }
    Ok(File::default())
}

fn missing(path: &Path) -> Failure {
    Failure::usage(&format!("{}: no such file", path.display()))
}

/// `None` if there is no such file.
fn read(path: &Path) -> Result<Option<File>, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::usage(&format!("{}: {error}", path.display()))),
    };
    let wrong = |(number, what)| Failure::usage(&format!("{}:{number}: {what}", path.display()));
    parse(&text).map(Some).map_err(wrong)
}

/// Reads lines such as `node = redis://10.0.0.1`. An error has the line's number and not its text,
/// which may have a password in it.
fn parse(text: &str) -> Result<File, (usize, &'static str)> {
    let mut file = File::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text); // some editors begin a file so
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what| (index + 1, what);
        let (name, value) = line.split_once('=').ok_or(wrong("not a line like name = value"))?;
        let value = value.trim();
        let duration = || duration::parse(value).map_err(|_| wrong("not a duration such as 30s"));
        let is_repeated = match name.trim() {
            "node" => {
                file.nodes.push(value.to_owned());
                false
            }
            "max-ttl" => file.max_ttl.replace(duration()?).is_some(),
            "node-timeout" => file.node_timeout.replace(duration()?).is_some(),
            "prefix" => file.prefix.replace(value.to_owned()).is_some(),
            "restart-guard" => {
                let guard = match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err(wrong("restart-guard is on or off")),
                };
                file.restart_guard.replace(guard).is_some()
            }
            _ => {
                return Err(wrong(
                    "not one of node, max-ttl, node-timeout, prefix and restart-guard",
                ));
            }
        };
        if is_repeated {
            return Err(wrong("only node may stand there more than once"));
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_setting_per_line() {
        let text = "# nodes\nnode = redis://a\n\n  node=redis://:p=w@b \nmax-ttl = 5m\n\
                    node-timeout=20ms\nprefix = jobs:\nrestart-guard = off\n";
        let expected = File {
            nodes: vec!["redis://a".to_owned(), "redis://:p=w@b".to_owned()],
            max_ttl: Some(Duration::from_secs(300)),
            node_timeout: Some(Duration::from_millis(20)),
            prefix: Some("jobs:".to_owned()),
            restart_guard: Some(false),
        };
        assert_eq!(parse(&format!("\u{feff}{}", text.replace('\n', "\r\n"))), parse(text));
        assert_eq!(parse(text), Ok(expected));
        assert_eq!(parse(""), Ok(File::default()));
    }

    #[test]
    fn an_error_has_the_number_of_the_line_and_not_its_text() {
        for (text, line) in [
            ("redis://:secret@a", 1),
            ("node = redis://a\nnodes = redis://:secret@b", 2),
            ("max-ttl = 30", 0),
            ("max-ttl = soon", 1),
            ("restart-guard = no", 1),
            ("\n\nprefix = a\nprefix = b", 4),
        ] {
            match parse(text) {
                Ok(_) => assert_eq!(line, 0, "{text}"),
                Err((number, what)) => {
                    assert_eq!(number, line, "{text}: {what}");
                    assert!(!what.contains("secret"));
                }
            }
        }
    }
}
