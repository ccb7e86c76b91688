//! The cost of a long wait: one client holds the lock all the time, and others wait for it.

use super::Context;
use crate::report::{Table, rate};
use crate::traffic::Monitor;
use crate::work::{Kind, Order, nanos, now, sleep_until};
use crate::worker::Worker;
use std::time::Duration;

const WAITERS: [usize; 3] = [1, 8, 64];

/// Until all waiters have asked, and until the commands of that are over.
const ASKED: Duration = Duration::from_millis(500);
const SETTLED: Duration = Duration::from_secs(2);

/// The holder releases in a moment: counting ends before that.
const LEFT: Duration = Duration::from_millis(300);

pub fn run(context: &Context) {
    let counted = context.options.slice.unwrap_or(Duration::from_secs(28));
    let waiters = context
        .options
        .clients
        .map_or(WAITERS.to_vec(), |clients| vec![clients]);
    let mut table = Table::new(&["waiters", "commands/s", "per waiter"]);
    for count in waiters {
        let sent = measure(context, count, counted);
        table.row([
            count.to_string(),
            rate(sent),
            format!("{:.2}", sent / count as f64),
        ]);
    }
    let about = format!(
        "One process holds the lock, and others, each a client of its own, wait for it. Counted \
         for {counted:?}, from {SETTLED:?} after they had asked: commands that the clients sent, \
         with MONITOR on one node. A single waiter is the first in line."
    );
    table.print(
        &format!("waiting, {} nodes", context.servers.addresses().len()),
        &about,
    );
}

/// Commands a second and node.
fn measure(context: &Context, waiters: usize, counted: Duration) -> f64 {
    let servers = &context.servers;
    let mut clients = Worker::start_all(waiters + 1, &context.job("redlatch"));
    let start = now();
    let hold = nanos(ASKED + SETTLED + counted + LEFT);
    // Each asks once only: none begins anew when it has released the lock.
    let kind = Kind::Contended;
    let every = 0;
    let end = start + nanos(ASKED);
    let prefix = format!("versus-redlatch:waiting{waiters}");
    let mut order = Order {
        kind,
        prefix,
        start,
        end,
        hold,
        every,
        locks_max: usize::MAX,
    };
    clients[0].begin(&order);
    (order.start, order.end) = (end, end + nanos(SETTLED));
    order.hold = 0;
    clients[1..]
        .iter_mut()
        .for_each(|client| client.begin(&order));
    sleep_until(start + nanos(ASKED + SETTLED));

    let monitor = Monitor::start(servers.last_address());
    let began = now();
    sleep_until(start + hold - nanos(LEFT));
    let seconds = (now() - began) as f64 / 1e9;
    let sent = monitor.stop().sent as f64 / seconds;

    let mut records = clients
        .iter_mut()
        .map(|client| client.finish().clients[0][0]);
    let held = records.next().expect("the holder is the first");
    for waited in records {
        assert!(
            waited.granted >= held.releasing,
            "two holders of one lock at the same time"
        );
    }
    servers.expect_gone(&order.prefix);
    sent
}
