//! Processes compete for a lock on one group, whose master is killed and stopped again and again,
//! each time with replicas that are late; and some of them are killed or stopped as well. With the
//! rule of groups there are never two holders. Without it there are, by the same record, when the
//! group is one server behind a relay that leads to the present master; and so there are with what
//! other libraries do.
//!
//! `REDLATCH_CROWD_SECONDS` sets for how long (20).

use std::cell::RefCell;
use std::env;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use redlatch::LockClient;
use rustix::process::{Pid, Signal, kill_process};
use support::claims::{Claims, compete, work};
use support::eventually;
use support::locks::LIMIT;
use support::program::{end_with_parent, test_process};
use support::proxy::Proxy;
use support::sentinel::{SentinelGroup, info};

use super::adopt_for;
use super::rivals::{Held, Master, Rival};

/// Longer than it takes to promote another server: a lock that was lost is held then.
const TTL: Duration = Duration::from_secs(5);
const BOUND: Duration = Duration::from_millis(500);
const MEMBERS: usize = 6;

fn time() -> Duration {
    let seconds = env::var("REDLATCH_CROWD_SECONDS").ok();
    Duration::from_secs(seconds.map_or(20, |seconds| seconds.parse().expect("a number")))
}

/// Has another server promoted. In every second turn the old one is stopped, and continues
/// afterwards; in the others it is killed, and what it has granted last is lost. Returns when, and
/// whether it had granted something.
fn fail_over(
    group: &mut SentinelGroup,
    turn: usize,
    relay: &Proxy,
    lost_within: Duration,
    all_claims: &Claims,
) -> (Instant, bool) {
    let before = group.master();
    let replicas: Vec<_> = (0..group.servers.len())
        .filter(|it| *it != before)
        .collect();
    replicas.iter().for_each(|it| group.servers[*it].pause());
    // They are stopped and cannot connect again: the locks of this time are not replicated.
    group.servers[before].command(&["CLIENT", "KILL", "TYPE", "replica"]);
    let since = Instant::now();
    eventually(lost_within, || all_claims.is_held(since, TTL));
    let has_granted = all_claims.next_begun(since).is_some();
    let at = Instant::now();
    let is_stopped = turn % 2 == 1;
    if is_stopped {
        group.servers[before].pause();
    } else {
        group.servers[before].kill();
    }
    replicas.iter().for_each(|it| group.servers[*it].resume());
    assert!(
        eventually(3 * LIMIT, || group.master() != before),
        "nobody is promoted"
    );
    let port = group.servers[group.master()].port().to_string();
    relay.lead_to(port.parse().expect("a port"));
    if is_stopped {
        group.servers[before].resume();
        thread::sleep(BOUND);
    } else {
        group.servers[before].restart();
    }
    let old = &group.servers[before];
    // Sentinel says so too, some seconds later.
    assert!(
        old.command(&["REPLICAOF", "127.0.0.1", &port])
            .text()
            .starts_with("OK")
    );
    assert!(eventually(LIMIT, || info(old, "master_link_status") == "up"));
    (at, has_granted)
}

/// How the processes lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ByTheRule,
    WithoutIt,
    AsOthers(Rival),
}

const WAYS: [Way; 4] = [
    Way::ByTheRule,
    Way::WithoutIt,
    Way::AsOthers(Rival::Redisson),
    Way::AsOthers(Rival::Rueidislock),
];

/// The way, the number and the address of a process of the crowd.
const MEMBER: &str = "REDLATCH_CROWD_MEMBER";

#[test]
fn a_member_of_the_crowd() {
    let Ok(order) = env::var(MEMBER) else { return };
    end_with_parent();
    let words: Vec<&str> = order.split(' ').collect();
    let number = |index: usize| words[index].parse().expect("a number");
    let way = WAYS[number(0)];
    let number = number(1);
    let address = words[2];
    let all_claims = Claims::telling();
    let builder = LockClient::builder()
        .node_timeout(Duration::from_millis(300))
        .max_ttl(TTL);
    let builder = match way {
        Way::ByTheRule => builder
            .nodes(format!("{address}?replicas=2"))
            .failover_bound(BOUND),
        Way::WithoutIt => builder.nodes(address).restart_guard(false),
        Way::AsOthers(rival) => {
            let port = address.rsplit(':').next().unwrap().trim_end_matches("/0");
            let master = RefCell::new(Master::at(port.parse().unwrap()));
            return compete(number, TTL, &all_claims, || {
                Held::acquire(rival, &master, TTL)
            });
        }
    };
    work(number, &builder.build().unwrap(), TTL, &all_claims);
}

/// The processes that compete. They end when this is dropped.
struct Crowd<'a> {
    way: Way,
    address: String,
    all_claims: &'a Claims,
    members: Vec<Child>,
    started: usize,
}

impl<'a> Crowd<'a> {
    fn start<'s>(&mut self, scope: &'s thread::Scope<'s, '_>)
    where
        'a: 's,
    {
        let way = WAYS.iter().position(|way| *way == self.way).unwrap();
        let client = self.started;
        let all_claims = self.all_claims;
        let order = format!("{way} {client} {}", self.address);
        let mut process = test_process("groups::crowd::a_member_of_the_crowd");
        let mut process = process.env(MEMBER, order).spawn().unwrap();
        let output = process.stdout.take().unwrap();
        scope.spawn(move || all_claims.hear(client, output));
        self.members.push(process);
        self.started += 1;
    }

    /// Stops one of the processes for a while, or kills one, in whose place another one comes.
    fn disturb<'s>(&mut self, turn: usize, scope: &'s thread::Scope<'s, '_>)
    where
        'a: 's,
    {
        let index = turn % self.members.len();
        if turn % 2 == 0 {
            let mut killed = self.members.remove(index);
            killed.kill().unwrap();
            killed.wait().unwrap();
            self.start(scope);
        } else {
            let member = Pid::from_child(&self.members[index]);
            kill_process(member, Signal::STOP).unwrap();
            thread::sleep(BOUND);
            kill_process(member, Signal::CONT).unwrap();
        }
    }
}

impl Drop for Crowd<'_> {
    fn drop(&mut self) {
        for member in &mut self.members {
            // Both fail only if the process has ended already.
            let _ = member.kill();
            let _ = member.wait();
        }
    }
}

/// Fails over, again and again, until this is enough of the record. Returns that, and when the
/// masters were stopped or killed.
fn storm(way: Way, mut is_enough: impl FnMut(&Claims) -> bool) -> (Claims, Vec<Instant>) {
    let mut group = SentinelGroup::start(2);
    let has_rule = way == Way::ByTheRule;
    adopt_for(&group.servers[0], if has_rule { "replicas=2" } else { "" });
    let relay = Proxy::start(group.servers[0].port());
    let address = if has_rule { group.url() } else { relay.url() };
    let all_claims = Claims::default();
    let mut failovers = Vec::new();
    // With the rule, no lock counts without a replica.
    let lost_within = if has_rule { BOUND * 4 / 5 } else { LIMIT };
    thread::scope(|scope| {
        let members = Vec::new();
        let all_claims = &all_claims;
        let mut crowd = Crowd {
            way,
            address,
            all_claims,
            members,
            started: 0,
        };
        (0..MEMBERS).for_each(|_| crowd.start(scope));
        let mut lost = 0;
        for turn in 0.. {
            let since = Instant::now();
            let is_held = eventually(3 * LIMIT, || {
                // On a busy machine, Sentinels may promote another one by themselves.
                let master = group.servers[group.master()].port();
                if relay.leads_to() != master {
                    relay.lead_to(master);
                }
                all_claims.is_held(since, TTL)
            });
            assert!(is_held, "turn {turn}: no client gets the lock any more");
            if has_rule {
                // The next lock is to be the one that is lost.
                let soon = all_claims.free_at().unwrap() - BOUND / 5;
                thread::sleep(soon.saturating_duration_since(Instant::now()));
            }
            let (at, is_lost) = fail_over(&mut group, turn, &relay, lost_within, all_claims);
            failovers.push(at);
            lost += usize::from(is_lost);
            if is_enough(all_claims) {
                let grants = all_claims.claims().len();
                eprintln!(
                    "{way:?}: {} failovers, {lost} lost a lock, {grants} grants",
                    turn + 1
                );
                break;
            }
            crowd.disturb(turn, scope);
        }
    });
    (all_claims, failovers)
}

#[test]
fn failovers_under_load_never_give_a_lock_to_two() {
    let start = Instant::now();
    let (all_claims, _) = storm(Way::ByTheRule, |_| start.elapsed() > time());
    assert_eq!(
        all_claims.two_holders().map(|pair| format!("{pair:?}")),
        None
    );
}

#[track_caller]
fn gives_it_to_two(way: Way) {
    let start = Instant::now();
    let (all_claims, _) = storm(way, |all_claims| {
        let is_seen = eventually(TTL, || all_claims.two_holders().is_some());
        assert!(
            is_seen || start.elapsed() < LIMIT * 3,
            "no double holder was seen"
        );
        is_seen
    });
    let (first, second) = all_claims.two_holders().expect("seen before");
    assert_ne!(first.client, second.client);
}

#[test]
fn without_the_rule_they_do() {
    gives_it_to_two(Way::WithoutIt);
}

#[test]
fn so_they_do_by_redisson_which_waits_for_replicas() {
    gives_it_to_two(Way::AsOthers(Rival::Redisson));
}

#[test]
fn so_they_do_by_rueidislock_whose_keys_are_on_one_master() {
    gives_it_to_two(Way::AsOthers(Rival::Rueidislock));
}

/// What failovers cost, and to how many they give the lock, for each way: a table, of as many
/// failovers as `REDLATCH_FAILOVERS` says (10).
#[test]
#[ignore = "a measurement of minutes"]
fn failovers_beside_other_libraries() {
    let number = env::var("REDLATCH_FAILOVERS").map_or(10, |number| number.parse().unwrap());
    for way in WAYS {
        let mut turns = 0;
        let (all_claims, failovers) = storm(way, |_| {
            turns += 1;
            turns == number
        });
        let ends = failovers[1..].iter().copied().chain([Instant::now()]);
        let doubled: Vec<Instant> = all_claims
            .overlaps()
            .iter()
            .map(|(_, it)| it.from)
            .collect();
        let is_doubled =
            |(from, to): &(Instant, Instant)| doubled.iter().any(|at| from < at && at < to);
        let doubles = failovers
            .iter()
            .copied()
            .zip(ends)
            .filter(is_doubled)
            .count();
        let next = |at: &Instant| Some((all_claims.next_begun(*at)? - *at).as_secs_f64());
        let mut next: Vec<f64> = failovers.iter().filter_map(next).collect();
        next.sort_by(f64::total_cmp);
        let median = next[next.len() / 2];
        let worst = next[next.len() - 1];
        eprintln!("| {way:?} | {doubles} of {number} | {median:.1} s | {worst:.1} s |");
    }
}
