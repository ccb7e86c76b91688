//! Which nodes to use, and with which settings: from the arguments, the environment or a file.

mod file;

use super::acquire::{AcquireArguments, LockDefaults, default_owner};
use super::arguments::{NodeArguments, TlsArguments};
use super::exit::Failure;
use super::log::Log;
use super::{ensemble, output};
use file::File;
use redlatch::{Builder, ClientSettings, LockClient};
use std::env;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const VARIABLE: &str = "REDLATCH_NODES";
const PREFIX_VARIABLE: &str = "REDLATCH_KEY_PREFIX";
const SYSTEM_FILE: &str = "/etc/redlatch.conf";

/// The client that the arguments ask for. It has not connected yet.
pub(crate) fn client(arguments: &NodeArguments) -> Result<LockClient, Failure> {
    Ok(builder(arguments)?.build()?)
}

/// The client, whose events are logged, and whether its locks are on a ZooKeeper ensemble. The
/// arguments get what the file says about locks.
pub(crate) fn lock_client(
    arguments: &NodeArguments,
    acquire: &mut AcquireArguments,
    log: &Log,
) -> Result<(LockClient, bool), Failure> {
    let Settings {
        mut client,
        lock,
        unseen,
    } = settings_of(arguments)?;
    unseen.iter().for_each(|text| log.unseen(text));
    // An option goes before the line of its name, of which a call could take only less.
    acquire.max_hold = acquire.max_hold.or(client.max_hold.take());
    acquire.complete(lock, &client);
    let is_ensemble = urls(&client).iter().any(|node| ensemble::is_member(node));
    Ok((log.listen(client.into()).build()?, is_ensemble))
}

/// The client, and the ttl of a lock for which the arguments name none.
pub(crate) fn client_and_ttl(arguments: &NodeArguments) -> Result<(LockClient, Duration), Failure> {
    let Settings { client, lock, .. } = settings_of(arguments)?;
    let ttl = lock.ttl(client.max_ttl);
    Ok((Builder::from(client).build()?, ttl))
}

/// The builder, and its `node_timeout` if that is not the default.
pub(crate) fn builder_with_timeout(
    arguments: &NodeArguments,
) -> Result<(Builder, Option<Duration>), Failure> {
    let client = settings_of(arguments)?.client;
    let timeout = client.node_timeout;
    Ok((client.into(), timeout))
}

pub(crate) fn builder(arguments: &NodeArguments) -> Result<Builder, Failure> {
    Ok(settings_of(arguments)?.client.into())
}

struct Settings {
    client: ClientSettings,
    lock: LockDefaults,
    /// Files that were not looked for, and why.
    unseen: Vec<String>,
}

/// The nodes' URLs, or lists of them.
fn urls(settings: &ClientSettings) -> Vec<String> {
    let mut urls = settings.nodes.clone();
    for name in &settings.nodes_from_env {
        if let Some(list) = env::var_os(name) {
            urls.push(list.to_string_lossy().into_owned());
        }
    }
    urls
}

fn settings_of(arguments: &NodeArguments) -> Result<Settings, Failure> {
    let has_variable = env::var_os(VARIABLE).is_some_and(|value| !value.is_empty());
    let is_named = !arguments.node.is_empty() || has_variable;
    if arguments.node.iter().any(|url| file::has_password(url)) {
        output::note(&format!(
            "warning: --node has a password, and every user can see arguments: name the nodes in \
             {VARIABLE} or in a file"
        ));
    }
    let mut unseen = Vec::new();
    let file = match &arguments.config {
        Some(path) => file::named(path)?,
        None if is_named => File::default(),
        None => file::first_of(default_paths(), &mut unseen)?,
    };
    let tls = match arguments.config {
        Some(_) => arguments
            .tls
            .clone()
            .or(&file.tls)
            .or(&TlsArguments::from_env()),
        None => arguments
            .tls
            .clone()
            .or(&TlsArguments::from_env())
            .or(&file.tls),
    };
    let File {
        settings: mut client,
        lock,
        ..
    } = file;
    if !arguments.node.is_empty() {
        client.nodes.clone_from(&arguments.node);
        client.nodes_from_env.clear();
    } else if client.nodes.is_empty() && client.nodes_from_env.is_empty() {
        if !has_variable {
            return Err(no_nodes(&unseen));
        }
        client.nodes_from_env.push(VARIABLE.to_owned());
    }
    tls.apply(&mut client)?;
    client.max_ttl = arguments.max_ttl.or(client.max_ttl);
    client.failover_bound = arguments.failover_bound.or(client.failover_bound);
    client.clock_skew = arguments.clock_skew.or(client.clock_skew);
    client.node_timeout = arguments.node_timeout.or(client.node_timeout);
    if let Some(timeout) = arguments.session_timeout {
        ensemble::set_session_timeout(&mut client, timeout)?;
    }
    client.key_prefix = key_prefix(arguments, client.key_prefix.take());
    if arguments.no_restart_guard {
        client.restart_guard = Some(false);
    }
    client
        .client_name
        .get_or_insert_with(|| "redlatch-command".to_owned());
    client.owner.get_or_insert_with(default_owner);
    Ok(Settings {
        client,
        lock,
        unseen,
    })
}

/// That of the arguments, of the variable or of the file. A file that the user named counts before
/// the variable.
fn key_prefix(arguments: &NodeArguments, of_file: Option<Vec<u8>>) -> Option<Vec<u8>> {
    if let Some(prefix) = &arguments.key_prefix {
        return Some(prefix.clone().into_bytes());
    }
    let value = env::var_os(PREFIX_VARIABLE).filter(|value| !value.is_empty());
    let of_variable = value.map(OsString::into_vec);
    match arguments.config {
        Some(_) => of_file.or(of_variable),
        None => of_variable.or(of_file),
    }
}

fn no_nodes(unseen: &[String]) -> Failure {
    let mut paths = Vec::new();
    for path in default_paths() {
        let path = path.display().to_string();
        // With why it was not looked for.
        let why = unseen.iter().find(|it| it.starts_with(&path));
        paths.push(why.cloned().unwrap_or(path));
    }
    let paths = paths.join(", ");
    Failure::usage(&format!(
        "no nodes: name them with --node, in {VARIABLE} or in a file ({paths})"
    ))
}

/// The first of these that exists is read.
fn default_paths() -> impl Iterator<Item = PathBuf> {
    let home = env::var_os("HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from);
    let config = env::var_os("XDG_CONFIG_HOME")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    let own = config.or(home.map(|home| home.join(".config")));
    own.map(|own| own.join("redlatch.conf"))
        .into_iter()
        .chain([PathBuf::from(SYSTEM_FILE)])
}

/// Does a file's mode let every user of the machine read it? A group's members may: that is how a
/// file is shared by the users of several services.
pub(crate) fn is_open_to_all(metadata: &Metadata) -> bool {
    const READ_BY_OTHERS: u32 = 0o004;
    metadata.is_file() && metadata.permissions().mode() & READ_BY_OTHERS != 0
}

/// Says so on stderr. The command goes on: the secret is known already, and a job that has to run
/// need not fail for that.
pub(crate) fn warn_of_open_file(path: &Path, secret: &str) {
    let path = path.display();
    output::note(&format!(
        "warning: {path} has {secret}, and its mode lets every user read it: chmod o-r {path}"
    ));
}
