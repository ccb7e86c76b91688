//! How long a holder believes in its lock when its server is cut off: never as long as until
//! another client can have it, whatever is cut and whenever.
//!
//! The sessions have the shortest timeout that servers allow, two ticks. Then half a tick, which
//! the rule of validity allows for, is a quarter of the timeout. `REDLATCH_ZOOKEEPER_CUTS` sets how
//! often each kind of cut is tried.

use crate::client::{Client, now};
use crate::contention::plan;
use crate::drive::drive;
use redlatch_protocol::engine::Jitter;
use redlatch_protocol::time::Time;
use std::env;
use std::time::Duration;
use support::needs_zookeeper;
use support::zookeeper::Ensemble;

const TICK: Duration = Duration::from_millis(500);

/// The timeout of the holder's session.
const TIMEOUT: Duration = Duration::from_millis(1_000);

/// How a server is cut off.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// What it sends to other servers does not arrive.
    From,
    /// What others send to it does not arrive.
    To,
    Both,
    /// Its process is stopped.
    Pause,
}

const CUTS: [Cut; 4] = [Cut::From, Cut::To, Cut::Both, Cut::Pause];

impl Cut {
    fn begin(self, ensemble: &Ensemble, server: usize) {
        let links = ensemble.links();
        match self {
            Self::From => links.stall_from(server),
            Self::To => links.stall_to(server),
            Self::Both => {
                links.stall_from(server);
                links.stall_to(server);
            }
            Self::Pause => ensemble[server].pause(),
        }
    }

    fn end(self, ensemble: &Ensemble, server: usize) {
        match self {
            Self::Pause => ensemble[server].resume(),
            Self::From | Self::To | Self::Both => ensemble.links().heal(),
        }
    }
}

/// What was seen of a cut.
struct Seen {
    cut_at: Time,
    /// The end of the holder's belief.
    valid_until: Time,
    /// When the holder last heard from its server.
    heard_at: Time,
    /// When another client had the lock.
    next_at: Time,
}

/// How often each kind of cut is tried.
fn repetitions() -> usize {
    let named = env::var("REDLATCH_ZOOKEEPER_CUTS").ok();
    named.map_or(1, |count| {
        count.parse().expect("REDLATCH_ZOOKEEPER_CUTS is a number")
    })
}

/// Cuts the holder's server off after a while. `None` if the holder had lost the lock before: the
/// machine was too busy for so short a session.
fn observe(
    ensemble: &Ensemble,
    server: usize,
    name: &str,
    cut: Cut,
    wait: Duration,
) -> Option<Seen> {
    let others: Vec<u16> = (0..ensemble.len())
        .filter(|other| *other != server)
        .map(|other| ensemble[other].port())
        .collect();
    let mut holder = Client::with_timeout(&[ensemble[server].port()], TIMEOUT);
    let mut waiter = Client::new(&others);
    holder.acquire(plan("/locks", name));
    waiter.contend(plan("/locks", name));
    drive(&mut [&mut holder, &mut waiter], "the queue", |clients| {
        clients[1].contention().contender.place().is_some() || clients[1].held().is_some()
    });
    let until = now().after(wait);
    drive(&mut [&mut holder, &mut waiter], "a while", |_| {
        now() >= until
    });
    cut.begin(ensemble, server);
    let cut_at = now();
    let is_late = holder.held().is_none() || holder.contention().valid_until <= cut_at;
    drive(
        &mut [&mut holder, &mut waiter],
        "the next holder",
        |clients| clients[1].held().is_some(),
    );
    let next_at = now();
    let valid_until = holder.contention().valid_until;
    let heard_at = holder.heard_at;
    cut.end(ensemble, server);
    drive(&mut [&mut holder, &mut waiter], "the loss", |clients| {
        clients[0].contention().is_lost
    });
    waiter.release();
    (!is_late).then_some(Seen {
        cut_at,
        valid_until,
        heard_at,
        next_at,
    })
}

/// Tries all cuts of servers that `choose` chooses, and prints what was seen.
fn try_cuts(mut ensemble: Ensemble, what: &str, choose: impl Fn(&Ensemble) -> usize) {
    let seed = u64::from(std::process::id()) << 32 ^ now().as_nanos();
    let mut random = Jitter::from_seed(seed);
    let kinds = CUTS.into_iter().cycle().take(CUTS.len() * repetitions());
    let mut margins = Vec::new();
    let mut deceptive = 0;
    for (number, cut) in kinds.enumerate() {
        ensemble.await_serving();
        let server = choose(&ensemble);
        let wait = random.below(TICK * 3);
        let Some(seen) = observe(&ensemble, server, &format!("{what}-{number}"), cut, wait) else {
            println!("{what} {cut:?}: lost before the cut");
            continue;
        };
        let after = |time: Time| time.since(seen.cut_at).as_secs_f64() / TIMEOUT.as_secs_f64();
        let valid_until = after(seen.valid_until);
        let next_at = after(seen.next_at);
        println!("{what} {cut:?}: valid until {valid_until:.2} T, the next one at {next_at:.2} T");
        assert!(
            seen.valid_until < seen.next_at,
            "{what} {cut:?}: two holders for {:?}",
            seen.valid_until.since(seen.next_at)
        );
        margins.push(next_at - valid_until);
        // What a client does that trusts the last answer.
        deceptive += usize::from(seen.heard_at.after(TIMEOUT) > seen.next_at);
    }
    assert!(
        !margins.is_empty(),
        "the machine is too busy for sessions of {TIMEOUT:?}"
    );
    let least = margins.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "{what}: the least margin of {} cuts was {least:.2} T",
        margins.len()
    );
    println!("{what}: {deceptive} times, the last answer + T was later than the next holder");
}

#[test]
fn no_holder_at_a_follower_that_is_cut_off_believes_for_too_long() {
    let ensemble = needs_zookeeper!()
        .ensemble(3)
        .with_links()
        .tick(TICK)
        .init_limit(6)
        .sync_limit(4)
        .start();
    try_cuts(ensemble, "follower", |ensemble| ensemble.followers()[0]);
}

#[test]
fn no_holder_at_a_leader_that_is_cut_off_believes_for_too_long() {
    let ensemble = needs_zookeeper!()
        .ensemble(3)
        .with_links()
        .tick(TICK)
        .init_limit(6)
        .sync_limit(4)
        .start();
    try_cuts(ensemble, "leader", Ensemble::leader);
}
