//! Names of locks and of registers, for shells that complete them.

use super::arguments::NodeArguments;
use super::settings;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use redlatch::LockClient;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The variable with which a shell calls this program to complete a word.
pub(crate) const VARIABLE: &str = "REDLATCH_COMPLETE";

/// For how long a shell waits. The nodes may have millions of other keys.
const LIMIT: Duration = Duration::from_secs(1);

const COUNT_MAX: usize = 200;

/// Reads the names that match a pattern, as far as somebody takes them.
type Read = fn(&LockClient, &[u8], &Sender<Vec<u8>>) -> Option<()>;

pub(crate) fn locks() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        named_like(word, |client, pattern, names| {
            client
                .locks(pattern)
                .try_for_each(|lock| names.send(lock.ok()?.as_ref().to_vec()).ok())
        })
    })
}

pub(crate) fn registers() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        named_like(word, |client, pattern, names| {
            let mut registers = client.registers().list(pattern);
            registers.try_for_each(|it| names.send(it.ok()?.name().as_bytes().to_vec()).ok())
        })
    })
}

/// The names that begin with the word, on the nodes that the environment or a file names. Without
/// such nodes, and if they do not answer, there are none.
fn named_like(word: &OsStr, read: Read) -> Vec<CompletionCandidate> {
    let Ok(client) = settings::client(&NodeArguments::default()) else {
        return Vec::new();
    };
    let quoted = word.as_bytes().iter().flat_map(|byte| {
        let is_special = b"*?[]\\".contains(byte);
        is_special.then_some(b'\\').into_iter().chain([*byte])
    });
    let pattern: Vec<u8> = quoted.chain([b'*']).collect();
    let (sender, names) = channel();
    // It ends with this program.
    thread::spawn(move || read(&client, &pattern, &sender));
    let until = Instant::now() + LIMIT;
    let next = || {
        names
            .recv_timeout(until.saturating_duration_since(Instant::now()))
            .ok()
    };
    let found: Vec<Vec<u8>> = std::iter::from_fn(next).take(COUNT_MAX).collect();
    found
        .into_iter()
        .map(|name| CompletionCandidate::new(OsString::from_vec(name)))
        .collect()
}
