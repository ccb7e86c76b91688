//! A crowd in a storm: connections are cut and stall, sessions end and znodes are removed at random
//! moments, and there is never more than one holder that believes in its lock.
//!
//! `REDLATCH_ZOOKEEPER_STORM` sets for how many seconds, and the seed is printed. The servers'
//! threads are not part of it, so a seed does not tell everything.

use crate::client::{Client, now};
use crate::contention::plan;
use crate::drive::drive;
use crate::expiry::expire;
use crate::messages::names_if_there;
use redlatch_protocol::engine::Jitter;
use redlatch_protocol::time::Time;
use redlatch_zookeeper::message::EnsembleRequest;
use std::env;
use std::time::Duration;
use support::needs_zookeeper;
use support::zookeeper::{Direction, Link, Shared};

const CLIENTS: usize = 5;

/// The shortest that the server grants: a stalled connection may cost the session.
const TIMEOUT: Duration = Duration::from_millis(1_000);

/// So many tell something.
const GRANTS_MIN: usize = 20;

/// The clients, each behind a link of its own.
struct Storm<'a> {
    shared: &'a Shared,
    random: Jitter,
    clients: Vec<Client>,
    links: Vec<Link>,
    /// Until when the links stall.
    stalled_until: Vec<Time>,
    operator: Client,
    /// The token of the latest holder.
    token: i64,
    /// What has happened how often: grants, cuts, stalls, lost sessions, removed znodes.
    counts: [usize; 5],
}

impl<'a> Storm<'a> {
    fn new(shared: &'a Shared, seed: u64) -> Self {
        let links: Vec<Link> = (0..CLIENTS).map(|_| Link::to(shared[0].port())).collect();
        let client = |link: &Link| Client::with_timeout(&[link.port()], TIMEOUT);
        Self {
            shared,
            random: Jitter::from_seed(seed),
            clients: links.iter().map(client).collect(),
            links,
            stalled_until: vec![Time::ZERO; CLIENTS],
            operator: Client::new(&shared.ports()),
            token: 0,
            counts: [0; 5],
        }
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.random.next_u64() % times == 0
    }

    /// Something bad happens to this client, now and then.
    fn befall(&mut self, number: usize) {
        if self.one_in(1_500) {
            self.counts[1] += 1;
            self.links[number].cut();
        }
        if self.one_in(3_000) {
            self.counts[2] += 1;
            let both = [Direction::Forth, Direction::Back];
            let direction = both[usize::from(self.one_in(2))];
            self.links[number].hold(direction);
            self.stalled_until[number] = now().after(self.random.below(TIMEOUT * 2));
        }
        if now() >= self.stalled_until[number] {
            self.links[number].release(Direction::Forth);
            self.links[number].release(Direction::Back);
        }
        let id = self.clients[number].session.id();
        let identity = self.clients[number].identity;
        if id.is_some() && id == identity.map(|(id, _)| id) && self.one_in(600) {
            self.counts[3] += usize::from(expire(self.shared[0].port(), &self.clients[number]));
            // Nobody else may end a session, so nothing is promised about it: neither if it has the
            // lock, nor if the answer that gives it the lock is on its way.
            self.clients[number].give_up();
        }
        let path = self.clients[number]
            .held()
            .map(|held| held.paths[0].clone());
        if let Some(path) = path.filter(|_| self.one_in(1_000)) {
            self.counts[4] += 1;
            self.operator.ask(EnsembleRequest::Delete(path));
            // The same: the holder would believe in the lock until its next beat.
            self.clients[number].give_up();
        }
    }

    /// The client holds the lock for a while, and contends again.
    fn go_on(&mut self, number: usize) {
        let client = &mut self.clients[number];
        client.turn();
        let is_over = client.contends().is_none_or(|contention| {
            contention.left.is_some() || contention.is_lost || contention.is_contended
        });
        if is_over {
            let mut plan = plan(self.shared.root(), "a");
            plan.waits = !self.one_in(4);
            return self.clients[number].contend(plan);
        }
        let Some(held) = client.held() else { return };
        let token = held.created_by;
        let is_expired = client.contention().valid_until <= now();
        assert!(
            token >= self.token || is_expired,
            "{token} after {}",
            self.token
        );
        if token > self.token {
            self.token = token;
            self.counts[0] += 1;
        }
        if is_expired || self.one_in(30) {
            self.clients[number].give_up();
        }
    }

    fn check(&self) {
        let time = now();
        let believes =
            |client: &&Client| client.held().is_some() && client.contention().valid_until > time;
        let tokens = self.clients.iter().filter(believes);
        let tokens: Vec<i64> = tokens
            .map(|client| client.held().unwrap().created_by)
            .collect();
        assert!(tokens.len() <= 1, "two holders: {tokens:?}");
    }

    /// Nobody is left behind, and nothing.
    fn calm_down(&mut self) {
        for link in &self.links {
            link.release(Direction::Forth);
            link.release(Direction::Back);
        }
        let mut clients: Vec<&mut Client> = self.clients.iter_mut().collect();
        clients.iter_mut().for_each(|client| client.give_up());
        drive(&mut clients, "the end", |clients| {
            clients.iter().all(|client| {
                let contention = client.contention();
                contention.left.is_some() || contention.is_lost || contention.is_contended
            })
        });
        let directory = format!("{}/a", self.shared.root());
        let operator = &mut self.operator;
        // The server removes an empty directory of locks once a minute.
        let left = |operator: &mut Client| names_if_there(operator, &directory).unwrap_or_default();
        let is_empty = support::eventually(Duration::from_secs(30), || left(operator).is_empty());
        assert!(is_empty, "left behind: {:?}", left(&mut self.operator));
    }
}

#[test]
fn a_crowd_in_a_storm_has_one_holder_at_a_time_and_leaves_nothing_behind() {
    let shared = needs_zookeeper!().shared();
    let seconds = env::var("REDLATCH_ZOOKEEPER_STORM").ok();
    let seconds = seconds.map_or(6, |text| text.parse().expect("a number of seconds"));
    let seed = u64::from(std::process::id()) << 32 ^ now().as_nanos();
    let mut storm = Storm::new(&shared, seed);
    let end = now().after(Duration::from_secs(seconds));
    // A loaded machine grants less in that time.
    let at_last = end.after(Duration::from_secs(120));
    while now() < end || storm.counts[0] < GRANTS_MIN && now() < at_last {
        for number in 0..CLIENTS {
            storm.befall(number);
            storm.go_on(number);
        }
        storm.check();
        std::thread::sleep(Duration::from_micros(200));
    }
    storm.calm_down();
    let [grants, cuts, stalls, expired, removed] = storm.counts;
    println!(
        "seed {seed}: {grants} grants, {cuts} cuts, {stalls} stalls, {expired} sessions ended, \
         {removed} znodes removed"
    );
    assert!(grants >= GRANTS_MIN, "{grants}");
}
