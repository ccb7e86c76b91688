//! Locks in an event loop without an executor: a loop over mio, which callbacks wake.
//!
//! ```sh
//! cargo run -p redlatch-integrations --example from_mio
//! cargo run -p redlatch-integrations --example from_mio -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts three Redis-like nodes inside this process.

use crossbeam_channel::unbounded;
use mio::{Events, Poll, Token, Waker};
use redlatch::LockClient;
use redlatch::embedded::Nodes;
use std::error::Error;
use std::sync::Arc;

type Failure = Box<dyn Error + Send + Sync>;

/// A lock was granted, or refused.
const GRANTS: Token = Token(0);

const SESSIONS: u32 = 10;

fn main() -> Result<(), Failure> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        let nodes = Nodes::start(3)?;
        story(&nodes.urls())
    } else {
        story(&urls)
    }
}

pub(crate) fn story(urls: &[String]) -> Result<(), Failure> {
    let client = LockClient::new(urls)?;
    let mut poll = Poll::new()?;
    let waker = Arc::new(Waker::new(poll.registry(), GRANTS)?);
    let (sender, grants) = unbounded();
    // With the process number, so that several of these programs may run at a time.
    let name = format!("mio:{}", std::process::id());
    for session in 0..SESSIONS {
        let sender = sender.clone();
        let waker = Arc::clone(&waker);
        let request = client.request(&name).keep_alive();
        request.lock_async().then(move |lock| {
            // If the loop is gone, the lock is dropped: released.
            if sender.send((session, lock)).is_ok() {
                let _ = waker.wake();
            }
        });
    }
    let mut events = Events::with_capacity(16);
    let mut served = 0;
    while served < SESSIONS {
        poll.poll(&mut events, None)?;
        // Sockets would be served here as well.
        for _ in events.iter().filter(|event| event.token() == GRANTS) {
            while let Ok((session, lock)) = grants.try_recv() {
                let lock = lock?;
                lock.ensure_held()?;
                if session != served {
                    return Err("the sessions are not served in order".into());
                }
                drop(lock); // the next one gets it
                served += 1;
            }
        }
    }
    say(&format!("{served} sessions have had the lock, in order."));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
