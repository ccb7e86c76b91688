//! Very many of `redlatch run` at once.

use std::fs;
use std::time::Duration;

use super::program::{Running, redlatch};
use support::eventually;
use support::locks::{LONG, all_nodes_client};
use support::program::in_memory;
use support::servers::Servers;
use support::waiters::{await_queued, queued};

const COUNT: usize = 200;

#[test]
fn two_hundred_at_once_on_one_name_are_served_in_order_and_leave_nothing() {
    let servers = Servers::start(3);
    let folder = in_memory();
    let file = folder.path().join("served");
    // However long it takes to start them all.
    let holder = all_nodes_client(servers.urls());
    let held = holder
        .request("name")
        .ttl(LONG)
        .keep_alive()
        .lock()
        .expect("it is free");
    // Each says when it begins and when it ends. Two at a time would show.
    let script = format!(
        "echo \"in $0\" >> {0}; echo \"out $0\" >> {0}",
        file.display()
    );
    let mut all: Vec<Running> = Vec::new();
    for number in 0..COUNT {
        let number = number.to_string();
        let arguments = ["run", "name", "--", "sh", "-c", &script, &number];
        all.push(Running::start(&mut redlatch(&servers, &arguments)));
        // One after another, so that their order is known.
        let place = all.len();
        let joined = || {
            servers
                .iter()
                .filter(|server| queued(server, "name") == place)
                .count()
        };
        assert!(
            eventually(Duration::from_secs(30), || joined() >= 2),
            "{place} does not queue"
        );
    }
    await_queued(&servers, "name", COUNT);
    drop(held);
    for running in all {
        let ended = running.end();
        // On a busy machine, some wait for long.
        let is_expected = |line: &str| line.starts_with("redlatch: name: waiting for ");
        assert!(
            ended.code == 0 && ended.stderr.lines().all(is_expected),
            "{ended:?}"
        );
    }
    let served = fs::read_to_string(&file).expect("they wrote");
    let expected: String = (0..COUNT)
        .map(|number| format!("in {number}\nout {number}\n"))
        .collect();
    assert_eq!(served, expected);
    support::waiters::await_keys(&servers, &[]);
}
