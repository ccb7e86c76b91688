//! Servers that fail while a lock is held: the holder keeps it and waiters keep their places, as
//! long as a majority is there again in time.

use crate::client::{Client, now};
use crate::contention::plan;
use crate::drive::{LIMIT, drive};
use redlatch_protocol::time::Time;
use std::time::{Duration, Instant};
use support::needs_zookeeper;
use support::zookeeper::Ensemble;

/// The timeout of the sessions: 3/7 of it is longer than an election.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What happens to a server.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    Pause,
}

/// A holder and a waiter, which know all servers.
struct Pair {
    holder: Client,
    waiter: Client,
    /// The least time that the lock was still valid for.
    least: Duration,
}

impl Pair {
    #[track_caller]
    fn contend(ensemble: &Ensemble, name: &str, timeout: Duration) -> Self {
        let client = |()| Client::with_timeout(&ensemble.ports(), timeout);
        let [mut holder, mut waiter] = [(); 2].map(client);
        holder.acquire(plan("/locks", name));
        waiter.contend(plan("/locks", name));
        let mut pair = Self {
            holder,
            waiter,
            least: Duration::MAX,
        };
        pair.run("the queue", |pair| {
            pair.waiter.contention().contender.place() == Some(1)
        });
        pair
    }

    /// Both have turns until the condition holds. Notes how long the lock is still valid for.
    /// Panics with `what` after a generous limit.
    #[track_caller]
    fn run(&mut self, what: &str, mut condition: impl FnMut(&mut Self) -> bool) {
        let start = Instant::now();
        while !condition(self) {
            let is_lost = self.holder.contention().is_lost;
            let least = self.least;
            assert!(
                start.elapsed() < LIMIT,
                "{what} has not come. Lost: {is_lost}, valid for {least:?} more at least"
            );
            let until = now().after(Duration::from_millis(10));
            drive(&mut [&mut self.holder, &mut self.waiter], what, |_| {
                now() >= until
            });
            let valid_until = self.holder.contention().valid_until;
            self.least = self.least.min(valid_until.since(now()));
        }
    }

    /// The number of the server that the holder is connected to.
    fn server(&self) -> usize {
        self.holder.session.server()
    }
}

/// The fault befalls the server, and the lock is still held when the others have gone on.
fn befall(ensemble: &mut Ensemble, server: usize, fault: Fault, name: &str) {
    let mut pair = Pair::contend(ensemble, name, TIMEOUT);
    let before = pair.holder.contention().valid_until;
    match fault {
        Fault::Kill => ensemble[server].kill(),
        Fault::Pause => ensemble[server].pause(),
    }
    let is_proven = |pair: &Pair, since: Time| {
        pair.holder.contention().valid_until > since.after(Duration::from_secs(2))
    };
    pair.run("a proof that is later than the fault", |pair| {
        is_proven(pair, before)
    });
    match fault {
        Fault::Kill => ensemble[server].restart(),
        Fault::Pause => ensemble[server].resume(),
    }
    println!(
        "{fault:?} of {name}: the lock was valid for {:?} more at least",
        pair.least
    );
    assert!(
        !pair.holder.contention().is_lost && pair.least > Duration::ZERO,
        "{name}"
    );
    assert!(pair.waiter.held().is_none());
    pair.holder.give_up();
    pair.run("the next holder", |pair| pair.waiter.held().is_some());
    assert_eq!(pair.waiter.contention().attempts, 1, "with the same znode");
    ensemble.await_serving();
}

/// A follower and then the leader, each with the fault.
fn befall_each(fault: Fault) {
    let mut ensemble = needs_zookeeper!().ensemble(3).sync_limit(4).start();
    let follower = ensemble.followers()[0];
    befall(&mut ensemble, follower, fault, "a follower");
    let leader = ensemble.leader();
    befall(&mut ensemble, leader, fault, "the leader");
}

#[test]
fn a_lock_outlives_servers_that_are_killed() {
    befall_each(Fault::Kill);
}

#[test]
fn a_lock_outlives_servers_that_are_stopped() {
    befall_each(Fault::Pause);
}

#[test]
fn a_client_leaves_a_server_that_is_silent() {
    let ensemble = needs_zookeeper!().start(3);
    let mut pair = Pair::contend(&ensemble, "a", TIMEOUT);
    let silent = pair.server();
    ensemble[silent].pause();
    pair.run("another server", |pair| {
        pair.server() != silent && !pair.holder.session.is_down()
    });
    ensemble[silent].resume();
    assert!(pair.least > Duration::ZERO && !pair.holder.contention().is_lost);
}

#[test]
fn without_a_majority_the_holder_stops_believing_and_its_delete_is_carried_out_later() {
    let mut ensemble = needs_zookeeper!().start(3);
    let mut pair = Pair::contend(&ensemble, "a", Duration::from_secs(4));
    for follower in ensemble.followers() {
        ensemble[follower].kill();
    }
    pair.run("the end of its validity", |pair| {
        pair.holder.contention().valid_until <= now()
    });
    assert!(pair.waiter.held().is_none());
    for server in ensemble.iter_mut() {
        server.restart();
    }
    pair.holder.give_up();
    pair.run("the next holder", |pair| pair.waiter.held().is_some());
    assert_eq!(
        (pair.waiter.contention().attempts, pair.waiter.sessions_lost),
        (1, 0)
    );
}
