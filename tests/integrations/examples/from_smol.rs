//! Locks in a program that runs on smol: in order, and no longer waited for when the future is
//! dropped.
//!
//! ```sh
//! cargo run -p redlatch-integrations --example from_smol
//! cargo run -p redlatch-integrations --example from_smol -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts three Redis-like nodes inside this process.

use redlatch::LockClient;
use redlatch::embedded::Nodes;
use smol::future::or;
use smol::{Task, Timer, block_on, spawn};
use std::error::Error;
use std::time::Duration;

type Failure = Box<dyn Error + Send + Sync>;

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
    // With the process number, so that several of these programs may run at a time.
    let name = format!("smol:{}", std::process::id());
    block_on(async {
        let held = client.request(&name).keep_alive().lock_async().await?;
        let tasks: Vec<Task<Result<u32, redlatch::Error>>> = (0..10)
            .map(|number| {
                let waiting = client.request(&name).lock_async();
                spawn(async move {
                    let lock = waiting.await?;
                    drop(lock);
                    Ok(number)
                })
            })
            .collect();
        // The wait is dropped when the time is over.
        let in_time = async {
            Timer::after(Duration::from_millis(100)).await;
            None
        };
        let lock = async { Some(client.request(&name).lock_async().await) };
        if or(lock, in_time).await.is_some() {
            return Err("two have the lock at a time".into());
        }
        say("A wait was dropped after 100 ms.");
        drop(held);
        for task in tasks {
            task.await?;
        }
        say("Ten tasks have had the lock, one after another.");
        Ok(())
    })
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
