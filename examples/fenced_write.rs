//! A write that comes too late, and a table that refuses it.
//!
//! ```sh
//! cargo run --features embedded --example fenced_write
//! cargo run --features embedded --example fenced_write -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts five Redis-like nodes inside this process.
//!
//! A lock ends by the clock, and no lock can stop a thread that was delayed between its last look
//! at the clock and its write. With a fencing token the table can: it stores the largest token that
//! it has seen, and refuses a write with a smaller one.

use redlatch::embedded::Nodes;
use redlatch::{FencingToken, LockClient, LockGuard};
use std::error::Error;
use std::thread;
use std::time::Duration;

/// Short, so that this program need not run for long.
const TTL: Duration = Duration::from_millis(500);

fn main() -> Result<(), Box<dyn Error>> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        let nodes = Nodes::start(5)?;
        story(&nodes.urls())
    } else {
        story(&urls)
    }
}

/// The resource. In a database it is a row with a column for the token, and one statement:
/// `UPDATE t SET state = ?, fence = ? WHERE id = ? AND fence <= ?`.
#[derive(Default)]
struct Table {
    state: String,
    fence: Option<FencingToken>,
}

impl Table {
    /// Writes, unless another holder with a larger token has written before.
    fn write(&mut self, state: &str, fence: FencingToken) -> bool {
        let is_late = self.fence.is_some_and(|largest| fence < largest);
        if !is_late {
            self.fence = Some(fence);
            state.clone_into(&mut self.state);
        }
        !is_late
    }
}

/// Alice is delayed, Bob gets the lock meanwhile, and then Alice writes.
pub(crate) fn story(urls: &[String]) -> Result<(), Box<dyn Error>> {
    let alice = LockClient::new(urls)?;
    let bob = LockClient::new(urls)?;
    let mut table = Table::default();

    let (alices_lock, alices_token) = take(&alice)?;
    say(&format!(
        "Alice holds the lock, with the token {alices_token}."
    ));
    thread::sleep(TTL); // the machine is busy, the disk is slow, the lid of the laptop was closed
    say("She was delayed for longer than her lock was valid.");

    let (bobs_lock, bobs_token) = take(&bob)?;
    say(&format!(
        "Bob holds the lock now, with the token {bobs_token}."
    ));
    expect(
        table.write("Bob's", bobs_token),
        "the table accepts Bob's write",
    )?;
    say("Bob has written.");

    // If Alice asked her guard first, it would report that the lock is lost.
    expect(
        alices_lock.ensure_held().is_err(),
        "Alice's guard reports the loss",
    )?;
    // But a thread can be stopped between that question and this line.
    expect(
        !table.write("Alice's", alices_token),
        "the table refuses Alice's write",
    )?;
    say(&format!(
        "Alice's write is refused; the table's value is {}.",
        table.state
    ));
    expect(
        table.write("Bob's, again", bobs_token),
        "Bob may write more than once",
    )?;
    drop(bobs_lock);
    Ok(())
}

fn take(client: &LockClient) -> Result<(LockGuard, FencingToken), Box<dyn Error>> {
    let lock = client.request("row:42").ttl(TTL).fenced().lock()?;
    let token = lock.fencing_token().expect("the request asked for a token");
    Ok((lock, token))
}

fn expect(holds: bool, what: &str) -> Result<(), Box<dyn Error>> {
    if holds {
        Ok(())
    } else {
        Err(format!("this should be so: {what}").into())
    }
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
