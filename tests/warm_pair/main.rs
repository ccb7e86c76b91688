//! Acquires and releases a free lock as often as it is told: `warm_pair COUNT URL...`.

use redlatch::LockClient;
use std::env;
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let count: u32 = arguments.next().ok_or("no count")?.parse()?;
    let ten_seconds = Duration::from_secs(10);
    // A limit that no machine reaches: a round that is given up enters what a plain one does not.
    let builder = LockClient::builder()
        .nodes(arguments)
        .node_timeout(Duration::from_secs(2));
    let client = builder.restart_guard(false).build()?;
    for _ in 0..count {
        drop(client.lock("warm", ten_seconds)?);
    }
    Ok(())
}
