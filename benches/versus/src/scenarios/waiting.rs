//! The cost of a long wait: one client holds the lock all the time, and others wait for it.

use super::Context;
use crate::contender::{Contender, Order};
use crate::handoffs::{nanos, now};
use crate::peers::Peer;
use crate::report::{Findings, Table, rate};
use crate::traffic::{self, Monitor};
use std::thread;
use std::time::Duration;

const WAITERS: [usize; 3] = [1, 8, 64];

const PEERS: [Peer; 1] = [Peer::Redlatch];

/// Until all waiters have asked, and until the commands of that are over.
const ASKED: Duration = Duration::from_millis(500);
const SETTLED: Duration = Duration::from_secs(2);

/// How long commands are counted.
const COUNTED: Duration = Duration::from_secs(28);
const COUNTED_QUICK: Duration = Duration::from_secs(8);

pub fn run(context: &Context) -> Vec<Findings> {
    let waiters = context.handoff.clients.map_or(WAITERS.to_vec(), |clients| vec![clients]);
    let mut table = Table::new(&[
        "library",
        "waiters",
        "sent/s",
        "per waiter",
        "from scripts/s",
        "calls/s by INFO",
    ]);
    let counted = if context.is_quick { COUNTED_QUICK } else { COUNTED };
    let counted = context.handoff.duration.unwrap_or(counted);
    for count in waiters {
        for peer in PEERS {
            let costs = measure(context, peer, count, counted);
            table.row([
                peer.name().to_owned(),
                count.to_string(),
                rate(costs.sent),
                format!("{:.2}", costs.sent / count as f64),
                rate(costs.inner),
                rate(costs.calls),
            ]);
        }
    }
    vec![Findings {
        title: context.title("waiting"),
        about: format!(
            "One process holds the lock, and others, each a client of its own, wait for it. \
             Counted for {:.0} s, from {:.1} s after they had asked, per node: commands that the \
             clients sent and calls that scripts made, both with MONITOR on one node, and the \
             calls by INFO, which are both, as a mean over all nodes. A single waiter is the \
             first in line.",
            counted.as_secs_f64(),
            SETTLED.as_secs_f64(),
        ),
        table,
        figures: Vec::new(),
        groups: Vec::new(),
    }]
}

/// Per second and node.
struct Costs {
    sent: f64,
    inner: f64,
    calls: f64,
}

fn measure(context: &Context, peer: Peer, waiters: usize, counted: Duration) -> Costs {
    let servers = &context.servers;
    let mut contenders = Contender::start_all(waiters + 1, peer, &servers.urls());
    let prefix = format!("versus-{}:waiting{waiters}", peer.word());
    let start = now();
    let hold = ASKED + SETTLED + counted;
    let mut order = Order {
        resource: format!("{prefix}:same"),
        start,
        end: u64::MAX,
        hold,
        pause: Duration::ZERO,
        every: Duration::ZERO,
        asks: 1,
    };
    contenders[0].begin(&order);
    (order.start, order.hold) = (start + nanos(ASKED), Duration::ZERO);
    contenders[1..].iter_mut().for_each(|contender| contender.begin(&order));
    thread::sleep(ASKED + SETTLED);

    let monitor = Monitor::start(servers.addresses()[context.nodes - 1]);
    let before = traffic::calls(servers);
    let began = now();
    // The holder releases in a moment: counting ends before that.
    thread::sleep(Duration::from_nanos((start + nanos(hold)).saturating_sub(now())) * 99 / 100);
    let seconds = (now() - began) as f64 / 1e9;
    let calls = traffic::calls_since(servers, &before);
    let commands = monitor.stop();

    let held = contenders[0].finish();
    for contender in &mut contenders[1..] {
        let waited = contender.finish();
        assert!(waited[0].granted >= held[0].releasing, "two holders of one lock at the same time");
    }
    drop(contenders);
    servers.expect_gone(&prefix, context.nodes);
    Costs {
        // The INFO commands are the first and the last that it saw.
        sent: commands.sent.saturating_sub(2) as f64 / seconds,
        inner: commands.inner as f64 / seconds,
        calls: calls / seconds,
    }
}
