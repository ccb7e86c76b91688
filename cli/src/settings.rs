//! Which nodes to use, and with which settings: from the arguments, the environment or a file.

mod file;

use super::acquire::{AcquireArguments, LockDefaults};
use super::arguments::{NodeArguments, TlsArguments};
use super::exit::Failure;
use super::log::Log;
use super::{ensemble, output};
use file::File;
use redlatch::{Builder, LockClient};
use std::env;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
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
    let settings = settings_of(arguments)?;
    settings.unseen.iter().for_each(|text| log.unseen(text));
    acquire.complete(settings.lock, settings.max_ttl);
    let is_ensemble = settings.nodes.iter().any(|node| ensemble::is_member(node));
    Ok((log.listen(settings.builder).build()?, is_ensemble))
}

/// The client, and the ttl of a lock for which the arguments name none.
pub(crate) fn client_and_ttl(arguments: &NodeArguments) -> Result<(LockClient, Duration), Failure> {
    let Settings { builder, lock, max_ttl, .. } = settings_of(arguments)?;
    Ok((builder.build()?, lock.ttl(max_ttl)))
}

/// The builder, and its `node_timeout` if that is not the default.
pub(crate) fn builder_with_timeout(
    arguments: &NodeArguments,
) -> Result<(Builder, Option<Duration>), Failure> {
    let Settings { builder, node_timeout, .. } = settings_of(arguments)?;
    Ok((builder, node_timeout))
}

pub(crate) fn builder(arguments: &NodeArguments) -> Result<Builder, Failure> {
    settings_of(arguments).map(|settings| settings.builder)
}

struct Settings {
    builder: Builder,
    /// The nodes' URLs, or lists of them.
    nodes: Vec<String>,
    node_timeout: Option<Duration>,
    max_ttl: Option<Duration>,
    lock: LockDefaults,
    /// Files that were not looked for, and why.
    unseen: Vec<String>,
}

fn settings_of(arguments: &NodeArguments) -> Result<Settings, Failure> {
    let variable = env::var_os(VARIABLE).filter(|value| !value.is_empty());
    let is_named = !arguments.node.is_empty() || variable.is_some();
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
        Some(_) => arguments.tls.clone().or(&file.tls).or(&TlsArguments::from_env()),
        None => arguments.tls.clone().or(&TlsArguments::from_env()).or(&file.tls),
    };
    let builder = LockClient::builder();
    let (builder, nodes) = if !arguments.node.is_empty() {
        (builder.nodes(&arguments.node), arguments.node.clone())
    } else if !file.nodes.is_empty() {
        (builder.nodes(&file.nodes), file.nodes)
    } else if let Some(list) = variable {
        (builder.nodes_from_env(VARIABLE), vec![list.to_string_lossy().into_owned()])
    } else {
        let paths = default_paths().map(|path| path.display().to_string());
        // With why it was not looked for.
        let shown =
            |path: String| unseen.iter().find(|it| it.starts_with(&path)).cloned().unwrap_or(path);
        return Err(Failure::usage(&format!(
            "no nodes: name them with --node, in {VARIABLE} or in a file ({})",
            paths.map(shown).collect::<Vec<_>>().join(", ")
        )));
    };
    let mut builder = tls.apply(builder, &nodes)?;
    let max_ttl = arguments.max_ttl.or(file.max_ttl);
    if let Some(max_ttl) = max_ttl {
        builder = builder.max_ttl(max_ttl);
    }
    let node_timeout = arguments.node_timeout.or(file.node_timeout);
    if let Some(timeout) = node_timeout {
        builder = builder.node_timeout(timeout);
    }
    if let Some(timeout) = arguments.session_timeout.or(file.session_timeout) {
        builder = ensemble::with_session_timeout(builder, timeout)?;
    }
    let of_file = file.key_prefix.map(OsString::from);
    let of_variable = env::var_os(PREFIX_VARIABLE).filter(|value| !value.is_empty());
    let prefix = match arguments.config {
        Some(_) => of_file.or(of_variable),
        None => of_variable.or(of_file),
    };
    if let Some(prefix) = arguments.key_prefix.clone().map(OsString::from).or(prefix) {
        builder = builder.key_prefix(prefix.as_bytes());
    }
    let guard = !arguments.no_restart_guard && file.restart_guard.unwrap_or(true);
    let builder = builder.restart_guard(guard).client_name("redlatch-command");
    Ok(Settings { builder, nodes, node_timeout, max_ttl, lock: file.lock, unseen })
}

/// The first of these that exists is read.
fn default_paths() -> impl Iterator<Item = PathBuf> {
    let home = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let config = env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let own = config.or(home.map(|home| home.join(".config")));
    own.map(|own| own.join("redlatch.conf")).into_iter().chain([PathBuf::from(SYSTEM_FILE)])
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
