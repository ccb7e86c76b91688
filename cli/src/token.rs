//! `redlatch acquire`, `extend` and `release --token`: a lock that no process holds, but whoever
//! has its token.

use super::acquire::{self, AcquireArguments};
use super::arguments::NodeArguments;
use super::exit::{self, Failure};
use super::inspect::{exact, shown};
use super::log::Log;
use super::run::signals::Signals;
use super::{duration, names, output, settings};
use clap::Args;
use redlatch::error::NotResumable;
use redlatch::{FencingToken, LockClient, LockGuard, LockToken};
use serde_json::json;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

const VARIABLE: &str = "REDLATCH_TOKEN";

/// How long a lock is extended that is about to be released: for a round, and a while in which this
/// process may be stopped. It shortens nothing.
const RELEASING: Duration = Duration::from_secs(5);

/// How often it is looked for a signal while the token is printed.
const LOOK: Duration = Duration::from_millis(20);

/// Acquire a lock that stays held when this command has ended, and print its token.
///
/// For the steps of a CI job, of a playbook, or of work that one machine begins and another one
/// ends. The lock ends with its ttl, unless `redlatch extend` extends it or `redlatch release`
/// releases it, with the token. Whoever has the token has the lock: it is a secret. The token is
/// one word; with --fenced, the fencing token stands behind it, after a space, and with --permits
/// the number of the permit behind that. On Redis nodes only: on ZooKeeper a lock ends with the
/// process that acquired it.
///
/// TIME is written as 500ms, 30s, 5m or 1h30m; a number alone is seconds. A ttl of more than a
/// minute needs --max-ttl, or the line max-ttl in a file, the same for all clients of a lock.
#[derive(Debug, Args)]
#[command(after_long_help = format!("Examples:\n{EXAMPLES}\n{}", exit::help()))]
#[command(mut_arg("hold_at_least", |argument| argument.hide(true)))]
#[command(mut_arg("max_hold", |argument| argument.hide(true)))]
pub(crate) struct AcquireCommand {
    #[command(flatten)]
    pub(crate) acquire: AcquireArguments,
    /// Ask for a fencing token: a number that grows with every grant.
    #[arg(long)]
    pub(crate) fenced: bool,
    /// Print the token as JSON: an object on a line of its own.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Extend a lock, by its token, to a time from now.
///
/// It never shortens the lock. The exit code is 75 if the lock has ended, and somebody else may
/// have had it.
#[derive(Debug, Args)]
pub(crate) struct ExtendArguments {
    /// The name of the lock.
    #[arg(add = names::locks())]
    pub(crate) name: OsString,
    /// Another lock that is held together with it, as it was acquired; may be given again.
    #[arg(long, value_name = "NAME", add = names::locks())]
    pub(crate) also: Vec<OsString>,
    /// The token that `redlatch acquire` has printed [default: that in REDLATCH_TOKEN, which other
    /// users cannot see].
    #[arg(long)]
    pub(crate) token: Option<String>,
    /// For how long from now on the lock stays held [default: 30s, or --max-ttl if that is
    /// shorter].
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) ttl: Option<Duration>,
}

pub(crate) const EXAMPLES: &str =
    "  REDLATCH_TOKEN=$(redlatch acquire deploy --ttl 60s --wait 10m) && export REDLATCH_TOKEN
  redlatch extend deploy --ttl 60s && ./migrate
  redlatch release deploy
";

pub(crate) fn acquire(nodes: &NodeArguments, mut arguments: AcquireCommand) -> Result<u8, Failure> {
    let acquire = &mut arguments.acquire;
    if acquire.hold_at_least.is_some() || acquire.max_hold.is_some() {
        return Err(Failure::usage(&"--hold-at-least and --max-hold: use --ttl"));
    }
    acquire::refuse_own(acquire)?;
    let log = Log::start(acquire);
    let (client, is_ensemble) = settings::lock_client(nodes, acquire, &log)?;
    if is_ensemble {
        return Err(Failure::usage(&NotResumable::Session));
    }
    let signals = Signals::catch(client.cancel_token())?;
    let guard = acquire::acquire(&client, &signals, acquire, arguments.fenced, &log)?;
    let slot = guard.slot();
    let held_until = Instant::now() + guard.remaining();
    let token = guard.into_token()?;
    let printed = print(format!("{}\n", text(&arguments, &token, slot)), &signals);
    if printed.is_err() {
        // Nobody has the token. By a client of its own: a signal cancels the calls of this one.
        let AcquireArguments { name, also, .. } = &arguments.acquire;
        let _ = release(nodes, name, also, &token);
    } else if Instant::now() >= held_until {
        let text = "the lock had ended before its token was read";
        return Err(Failure::new(exit::LOST, &text));
    }
    printed.map(|()| exit::SUCCESS)
}

/// Prints the token, unless a signal ends this program before: who reads it may be slow.
fn print(line: String, signals: &Signals) -> Result<(), Failure> {
    let (sender, printed) = channel();
    let printer = thread::Builder::new().spawn(move || sender.send(output::print(&line)));
    printer.map_err(|error| Failure::system("a thread cannot be started", &error))?;
    loop {
        if let Ok(result) = printed.recv_timeout(LOOK) {
            return result;
        }
        if let Some(signal) = signals.first_that_ends() {
            return Err(acquire::ended_by(Some(signal)));
        }
    }
}

fn text(arguments: &AcquireCommand, token: &LockToken, slot: Option<u32>) -> String {
    let fence = token.fencing_token().map(FencingToken::as_u64);
    if arguments.json {
        let names: Vec<_> = arguments
            .acquire
            .names()
            .map(|name| exact(name.as_bytes()))
            .collect();
        return json!({
            "name": names[0],
            "also": names[1..],
            "token": token.to_string(),
            "fencing_token": fence,
            "permit": slot,
        })
        .to_string();
    }
    let numbers = fence
        .into_iter()
        .chain(slot.map(u64::from))
        .map(|number| number.to_string());
    std::iter::once(token.to_string())
        .chain(numbers)
        .collect::<Vec<_>>()
        .join(" ")
}

pub(crate) fn extend(nodes: &NodeArguments, arguments: &ExtendArguments) -> Result<u8, Failure> {
    let ExtendArguments {
        name,
        also,
        token,
        ttl,
    } = arguments;
    let token = read(token.as_deref())?;
    let (client, default) = settings::client_and_ttl(nodes)?;
    let ttl = ttl.unwrap_or(default);
    let guard = resume(&client, name, also, ttl, &token)?;
    let left = guard.remaining();
    guard.into_token()?;
    let name = shown(name.as_bytes());
    let left = duration::show(left);
    output::print(&format!("{name}: held for at least {left} from now\n"))?;
    Ok(exit::SUCCESS)
}

/// Releases a lock of which this is the token.
pub(crate) fn release(
    nodes: &NodeArguments,
    name: &OsStr,
    also: &[OsString],
    token: &LockToken,
) -> Result<(), Failure> {
    let (client, ttl) = settings::client_and_ttl(nodes)?;
    Ok(resume(&client, name, also, RELEASING.min(ttl), token)?.release()?)
}

fn resume(
    client: &LockClient,
    name: &OsStr,
    also: &[OsString],
    ttl: Duration,
    token: &LockToken,
) -> Result<LockGuard, Failure> {
    let names = std::iter::once(name).chain(also.iter().map(OsString::as_os_str));
    Ok(client
        .request_all(names.map(OsStr::as_bytes))
        .ttl(ttl)
        .resume(token)?)
}

/// The token of the argument, or else of the variable. No text shows any of it.
pub(crate) fn read(argument: Option<&str>) -> Result<LockToken, Failure> {
    let text = match argument {
        Some(argument) => Some(OsString::from(argument)),
        None => env::var_os(VARIABLE).filter(|value| !value.is_empty()),
    };
    let Some(text) = text else {
        return Err(Failure::usage(&format!(
            "no token: name it with --token, or in {VARIABLE}"
        )));
    };
    // What stands behind a token is what `redlatch acquire` has printed behind it.
    let text = text.to_string_lossy();
    let word = text.split_ascii_whitespace().next().unwrap_or_default();
    word.parse()
        .map_err(|error| Failure::usage(&format!("the token: {error}")))
}
