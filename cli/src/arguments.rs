//! The command line.

use super::doctor::arguments::DoctorArguments;
use super::exporter::arguments::ExporterArguments;
use super::lock::LockArguments;
use super::registers::arguments::RegistersArguments;
use super::run::arguments::RunArguments;
use super::token::{AcquireCommand, ExtendArguments};
use super::top::arguments::TopArguments;
use super::{duration, exit, names};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Runs commands under a distributed lock, shows locks, and reads and changes registers.
///
/// The lock is held on a majority of several independent Redis or Valkey servers, the nodes, or on
/// a ZooKeeper ensemble. Their URLs are taken from --node; or else from --config; or else from the
/// environment variable REDLATCH_NODES, separated by commas; or else from ~/.config/redlatch.conf
/// or /etc/redlatch.conf.
/// A URL with a password belongs in the variable or in a file: other users can see arguments.
///
/// TIME is written as 500ms, 30s, 5m or 1h30m; a number alone is seconds.
///
/// A file is in TOML, with a line such as `nodes = ["redis://10.0.0.1"]`, and may set all settings
/// of the library. REDLATCH_TLS_CA, REDLATCH_TLS_CERT
/// and REDLATCH_TLS_KEY name the same files as the options --tls-ca, --tls-cert and --tls-key, and
/// REDLATCH_KEY_PREFIX is the prefix of --key-prefix.
#[derive(Debug, Parser)]
#[command(name = "redlatch", version)]
#[command(after_long_help = exit::help(), arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) nodes: NodeArguments,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The nodes, and settings that all clients of a lock share.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Nodes")]
pub(crate) struct NodeArguments {
    /// A node's URL, such as redis://10.0.0.1, or rediss://… for TLS; once for each node. With
    /// replicas: redis+sentinel://s1,s2,s3/name?replicas=2, redis+cluster://h1,h2,h3. Or the
    /// servers of a ZooKeeper ensemble: zk://h1,h2,h3/path, or zks://… for TLS.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) node: Vec<String>,
    /// A file with nodes and settings, in TOML: lines such as `nodes = ["redis://10.0.0.1"]`.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The longest ttl of any lock; all clients must set the same [default: 60s].
    #[arg(long, global = true, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) max_ttl: Option<Duration>,
    /// How long a master with replicas that was replaced may still carry out commands; all clients
    /// must set the same [default: 15s; not used with ?replicas=].
    #[arg(long, global = true, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) failover_bound: Option<Duration>,
    /// How far apart the clocks of two servers of a node with replicas are at most; all clients
    /// must set the same [default: 1s].
    #[arg(long, global = true, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) clock_skew: Option<Duration>,
    /// How long a round over all nodes may take [default: 50ms; on ZooKeeper, how long a request
    /// may take: a third of the session timeout].
    #[arg(long, global = true, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) node_timeout: Option<Duration>,
    /// How long a ZooKeeper ensemble keeps the locks of a client that it does not hear from; for
    /// zk:// URLs only [default: 10s].
    #[arg(long, global = true, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) session_timeout: Option<Duration>,
    /// The prefix of the locks' keys on the nodes [default: none].
    #[arg(long, global = true, value_name = "TEXT")]
    pub(crate) key_prefix: Option<String>,
    /// Count grants of nodes that were just started: for tests, and for nodes that write every
    /// change to disk before they answer.
    #[arg(long, global = true)]
    pub(crate) no_restart_guard: bool,
    #[command(flatten)]
    pub(crate) tls: TlsArguments,
}

/// Which certificates secure the connections to nodes whose URLs ask for TLS.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "TLS, for nodes with rediss://, rediss+…:// or zks:// URLs")]
pub(crate) struct TlsArguments {
    /// Trust the CA certificates in this file, and not those of the system; may be given again.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_ca: Vec<PathBuf>,
    /// Trust the root certificates that are built into this program, and not those of the system.
    #[arg(long, global = true)]
    pub(crate) tls_bundled_roots: bool,
    /// Only a file can name them beside others.
    #[arg(skip)]
    pub(crate) system_roots: bool,
    /// The certificate of this client, for servers that want one.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of that certificate, without a passphrase.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArguments),
    Lock(LockArguments),
    Acquire(AcquireCommand),
    Extend(ExtendArguments),
    Status(StatusArguments),
    Doctor(DoctorArguments),
    Inspect(InspectArguments),
    /// Show who waits for a lock, from the first to the last.
    Waiters(ShownLock),
    Top(TopArguments),
    Exporter(ExporterArguments),
    Release(ReleaseArguments),
    Registers(RegistersArguments),
    Transactions(TransactionsArguments),
    /// Let the grants of replicated groups count at once.
    ///
    /// For groups that are used for the first time: an empty group looks like one that has
    /// forgotten its locks. Without --yes, it says what it would do, and does nothing.
    Adopt(GroupArguments),
    /// Have the grants of replicated groups wait as after a failover.
    ///
    /// For a master that was replaced, and is master again without a restart and without having
    /// been told: no server and no client notices that. Without --yes, it says what it would do,
    /// and does nothing.
    Renew(GroupArguments),
    Bench(BenchArguments),
    /// Print a script that completes the arguments of this program in a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page of this program, or of one of its commands.
    Man {
        /// One of its commands, such as run, or registers set.
        command: Vec<String>,
    },
}

impl Command {
    /// Or some of its ways do, and it sees to the others.
    pub(crate) fn catches_signals(&self) -> bool {
        matches!(
            self,
            Self::Run(_) | Self::Lock(_) | Self::Acquire(_) | Self::Top(_) | Self::Bench(_)
        )
    }
}

/// Show the nodes: whether they are up, their versions and round trips; of a ZooKeeper ensemble
/// also the servers' roles, and the last transaction of each.
///
/// The exit code is 0 if a majority is up, or any server of an ensemble, which serves clients only
/// while a majority is up; and 69 otherwise, or 77 if the nodes refuse the client.
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Show them again each second.
    #[arg(long)]
    pub(crate) watch: bool,
    /// As JSON: a list of objects; with --watch, a line each second.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show who holds a lock, on each node.
///
/// With --quiet, nothing is printed, and the exit code is that of a `redlatch run --no-wait` that
/// would come now: 0 if the lock is free; 1 if it is held or shared; 3 if it is free and others
/// wait for it; 71 if it is free and quarantined; 69 if no majority agrees; 70 if it is not a lock.
#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    #[command(flatten)]
    pub(crate) lock: ShownLock,
    /// Print nothing: the exit code tells.
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShownLock {
    /// The name of the lock.
    #[arg(add = names::locks())]
    pub(crate) name: OsString,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Release a lock by its token, or remove the lock of another client.
///
/// With --token, or a token in REDLATCH_TOKEN, it releases the lock that `redlatch acquire` has
/// acquired. The exit code is 75 if that had ended before, and somebody else may have had it.
///
/// With --force, it needs no token. Shows the lock and asks first. Only what was shown is removed:
/// a lock that another client has acquired since stays. On Redis nodes, the holder is not told: use
/// it when you know that the holder is gone. On ZooKeeper, it learns of it within a seventh of its
/// session timeout.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArguments {
    /// The name of the lock.
    #[arg(add = names::locks())]
    pub(crate) name: OsString,
    /// Another lock that is held together with it, as it was acquired; may be given again.
    #[arg(long, value_name = "NAME", conflicts_with = "force", add = names::locks())]
    pub(crate) also: Vec<OsString>,
    /// The token that `redlatch acquire` has printed [default: that in REDLATCH_TOKEN, which other
    /// users cannot see].
    #[arg(long, conflicts_with = "force")]
    pub(crate) token: Option<String>,
    /// Release it without its token, whoever has it.
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not ask.
    #[arg(long, requires = "force")]
    pub(crate) yes: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the transactions that are not at their end, and for whom each waits.
///
/// An open one waits for votes, and may be aborted. A committed one waits for participants that
/// have not finished: they do when they are started again. Reads the names of the keys from one
/// node after another with SCAN, 500 in a step.
#[derive(Debug, Args)]
pub(crate) struct TransactionsArguments {
    /// As JSON: a list of objects, or of an abortion an object.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Option<TransactionsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TransactionsCommand {
    Abort(AbortArguments),
}

/// Abort a transaction, unless it is committed.
///
/// Its participants roll back when they ask for the decision. Of a transaction that is over, or
/// never was, nothing is known, and nothing is done: the exit code is 4.
#[derive(Debug, Args)]
pub(crate) struct AbortArguments {
    /// The id, as `redlatch transactions` shows it.
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct GroupArguments {
    /// The groups, such as redis+sentinel://h1,h2,h3/mymaster, besides those of --node [default:
    /// all that are named elsewhere].
    pub(crate) url: Vec<String>,
    /// Do it.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Measure how fast the nodes grant a lock and hand it over.
///
/// One client acquires and releases a free lock again and again; then two clients take turns. The
/// lock's name begins with `redlatch-bench:`, and nothing of it stays.
#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// How often a free lock is acquired and released.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(crate) rounds: u32,
    /// How often one client hands the lock to the other.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) handoffs: u32,
    /// Write the histograms to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// As JSON, without the histograms.
    #[arg(long)]
    pub(crate) json: bool,
}
