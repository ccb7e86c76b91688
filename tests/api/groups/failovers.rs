//! What a failover costs, measured: for how long no new lock is granted, how often the servers
//! prove that nothing is missing, and that nobody is granted a lock that is held.
//!
//! `REDLATCH_FAILOVERS` sets how many of each kind there are (10), and `REDLATCH_FAILOVERS_OF`
//! which kinds: parts of their names, as `Sentinels Kill,OneShard`.

use std::env;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::error::NodeAnswer;
use redlatch::status::GroupStatus;
use redlatch::{LockClient, LockGuard};
use support::claims::{Claims, Over, work};
use support::eventually;
use support::locks::{LIMIT, can_be_acquired};
use support::sentinel::{NAME, SentinelGroup};
use support::transport::trusting;

use super::shapes::{Group, Loss, Shape, told};
use super::{adopt_for, builder};

const SHAPES: [Shape; 5] = [
    Shape::Sentinels,
    Shape::OneShard,
    Shape::OneOfThree,
    Shape::ThreeShards,
    Shape::Name,
];

const LOSSES: [Loss; 5] = [
    Loss::Kill,
    Loss::Stop,
    Loss::Restart,
    Loss::HandedOver,
    Loss::Forced,
];

/// As in the first example of the guide.
const TTL: Duration = Duration::from_secs(12);

/// As long as new locks do not count without a proof.
const QUARANTINE: Duration = Duration::from_secs(13);

/// A witness must have been up for longer: the quarantine, and the grain of the uptime.
const LONG: Duration = Duration::from_secs(15);

/// Those who compete for one lock all the time, and who fill the sockets of a master that is
/// stopped.
const MEMBERS: usize = 6;

fn client(url: &str) -> LockClient {
    builder(url).max_ttl(TTL).build().unwrap()
}

/// All servers follow the master, whoever that is by now, and have been up for long.
#[track_caller]
fn settle(group: &Group, shape: Shape) -> usize {
    let mut left = None;
    let mut master = None;
    let is_settled = eventually(4 * LIMIT, || {
        master = group.master();
        let Some(master) = master else { return false };
        let servers = group.servers();
        let port = servers[master].client_port().to_string();
        let is_in_place = |index: usize| {
            let of_link = |name| told(servers[index], "replication", name).unwrap_or_default();
            let follows = of_link("master_port") == port && of_link("master_link_status") == "up";
            let uptime = told(servers[index], "server", "uptime_in_seconds");
            let uptime = uptime.and_then(|it| it.parse().ok()).unwrap_or_default();
            (index == master || follows) && Duration::from_secs(uptime) > LONG
        };
        left = (0..servers.len()).find(|index| !is_in_place(*index));
        left.is_none()
    });
    assert!(is_settled, "{left:?} does not follow the master {master:?}");
    if matches!(shape, Shape::Sentinels) {
        // The next failover is refused until then: twice the Sentinels' `failover-timeout`.
        thread::sleep(Duration::from_secs(7));
    }
    master.unwrap()
}

/// The group that is replaced, as this client sees it.
fn status(client: &LockClient) -> Option<GroupStatus> {
    client.nodes().remove(0).group.take()
}

/// For how long there was no new lock in all, and after the promotion, and whether the servers had
/// proven that nothing was missing.
#[derive(Debug)]
struct Failover {
    took: Duration,
    paused: Duration,
    is_proven: bool,
    is_kept_lost: bool,
}

/// When this client gets a new lock, again and again, each of another name: one that was released
/// at the former master alone may be taken for the rest of its ttl.
fn take_again_and_again(client: &LockClient, granted: &Mutex<Vec<Instant>>, is_over: &AtomicBool) {
    let wait = Duration::from_secs(1);
    for number in 0.. {
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        let request = client.request(format!("new:{number}")).ttl(TTL);
        if let Ok(Some(guard)) = request.try_lock_for(wait) {
            granted.lock().unwrap().push(Instant::now());
            drop(guard);
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The longest time without a new lock, from when to when.
fn longest_pause(granted: &[Instant]) -> (Instant, Instant) {
    let pauses = granted.windows(2).map(|pair| (pair[0], pair[1]));
    pauses.max_by_key(|(from, to)| *to - *from).unwrap()
}

/// A failover, until new locks count in the next reign.
#[track_caller]
fn fail_over(
    group: &mut Group,
    (shape, loss): (Shape, Loss),
    kept: &LockGuard,
    other: &LockClient,
) -> Option<Failover> {
    let before = settle(group, shape);
    let mut reign = None;
    let is_known = || {
        reign = status(other).map(|it| it.reign);
        reign.is_some()
    };
    assert!(eventually(LIMIT, is_known), "{:?}", other.nodes());
    let granted = Mutex::new(Vec::new());
    let count = || granted.lock().unwrap().len();
    let is_over = AtomicBool::new(false);
    let mut promoted = None;
    let mut proven = None;
    thread::scope(|scope| {
        scope.spawn(|| take_again_and_again(other, &granted, &is_over));
        let _over = Over(&is_over);
        assert!(eventually(LIMIT, || count() > 3), "no new lock before");
        if !group.replace(before, loss) {
            return;
        }
        promoted = Some(Instant::now());
        let counts = || {
            let is_given = can_be_acquired(other, "kept");
            assert!(!is_given || kept.ensure_held().is_err(), "two holders");
            let next = status(other).filter(|it| Some(&it.reign) != reign.as_ref());
            let is_over = |it: &GroupStatus| it.age.is_some_and(|age| age > QUARANTINE);
            proven = next.filter(|it| it.is_proven || is_over(it));
            proven.is_some()
        };
        assert!(eventually(4 * LIMIT, counts), "{:?}", status(other));
        let so_far = count();
        assert!(eventually(LIMIT, || count() > so_far + 1), "no new lock");
    });
    let promoted = promoted?;
    group.rejoin(before, loss);
    let (from, to) = longest_pause(&granted.into_inner().unwrap());
    Some(Failover {
        took: to - from,
        paused: to.saturating_duration_since(promoted),
        is_proven: proven.is_some_and(|it| it.is_proven),
        is_kept_lost: kept.ensure_held().is_err(),
    })
}

/// The median, the nineteenth of twenty, and the longest.
fn show(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64();
    format!("{:.1} / {:.1} / {:.1} s", at(50), at(95), at(100))
}

/// All failovers of one kind, on one group.
fn measure(shape: Shape, loss: Loss, number: usize) {
    let mut group = Group::start(shape);
    let url = group.url(shape);
    let other = client(&url);
    let is_adopted = || {
        let reports = other.adopt_groups().unwrap();
        let mut answers = reports.iter().map(|report| &report.answer);
        answers.all(|it| *it == NodeAnswer::Answered)
    };
    assert!(eventually(LIMIT, is_adopted));
    let holder = client(&url);
    let keep = || {
        let request = holder.request("kept").ttl(TTL).keep_alive();
        let kept = request.try_lock_for(3 * LIMIT).unwrap();
        kept.expect("it is free")
    };
    let mut failovers = Vec::new();
    let all_claims = Claims::default();
    thread::scope(|scope| {
        let _over = Over(&all_claims.is_over);
        for member in 0..MEMBERS {
            let member_client = client(&url);
            let all_claims = &all_claims;
            scope.spawn(move || work(member, &member_client, TTL, all_claims));
        }
        let mut kept = keep();
        for _ in 0..number {
            let Some(failover) = fail_over(&mut group, (shape, loss), &kept, &other) else {
                break;
            };
            assert!(all_claims.two_holders().is_none(), "two holders");
            eprintln!("{shape:?} {loss:?}: {failover:.1?}");
            if failover.is_kept_lost {
                kept = keep();
            }
            failovers.push(failover);
        }
    });
    if failovers.is_empty() {
        eprintln!("{shape:?} {loss:?}: the servers know none");
        return;
    }
    let proven = failovers.iter().filter(|it| it.is_proven).count();
    let lost = failovers.iter().filter(|it| it.is_kept_lost).count();
    let took = show(failovers.iter().map(|it| it.took).collect());
    let paused = show(failovers.iter().map(|it| it.paused).collect());
    eprintln!(
        "{shape:?} {loss:?}: {} failovers, {proven} proven, {lost} kept locks lost; no new lock \
         for {took}, until {paused} after the promotion; {} claims without two holders",
        failovers.len(),
        all_claims.claims().len()
    );
}

#[test]
#[ignore = "a measurement of minutes"]
fn what_a_failover_costs() {
    let number = env::var("REDLATCH_FAILOVERS").map_or(10, |number| number.parse().unwrap());
    let wanted = env::var("REDLATCH_FAILOVERS_OF").unwrap_or_default();
    for shape in SHAPES {
        for loss in LOSSES {
            let name = format!("{shape:?} {loss:?}");
            if wanted.split(',').any(|part| name.contains(part)) {
                measure(shape, loss, number);
            }
        }
    }
}

/// As long as the longest ttl is unless it is set.
const MINUTE: Duration = Duration::from_secs(60);

/// Gives servers and Sentinels the settings that they have without a configuration.
fn set_defaults(group: &SentinelGroup) {
    for server in &group.servers {
        for (name, value) in [
            ("repl-diskless-sync-delay", "5"),
            ("repl-backlog-ttl", "3600"),
        ] {
            server.command(&["CONFIG", "SET", name, value]);
        }
    }
    for sentinel in &group.sentinels {
        for (name, value) in [
            ("down-after-milliseconds", "30000"),
            ("failover-timeout", "180000"),
        ] {
            sentinel.command(&["SENTINEL", "SET", NAME, name, value]);
        }
    }
}

/// Kills the master of a group that has all defaults.
fn kill_with_defaults(query: &str) {
    let mut group = SentinelGroup::start(2);
    set_defaults(&group);
    adopt_for(&group.servers[0], query);
    let url = format!("{}{query}", group.url());
    let build = || {
        trusting(LockClient::builder().nodes(&*url))
            .build()
            .unwrap()
    };
    let [holder, other] = [build(), build()];
    let request = holder.request("kept").ttl(MINUTE).keep_alive();
    let kept = request.try_lock_for(LIMIT).unwrap().expect("it is free");
    let uptime = || told(&group.servers[2], "server", "uptime_in_seconds");
    let is_up_for_long = || uptime().is_some_and(|it| it.parse::<u64>().unwrap() > 63);
    assert!(eventually(2 * MINUTE, is_up_for_long));
    let since = Instant::now();
    group.servers[0].kill();
    assert!(eventually(3 * MINUTE, || group.master() != 0));
    let promoted = since.elapsed();
    let next = other.request("orders").try_lock_for(3 * MINUTE).unwrap();
    let took = since.elapsed();
    assert!(next.is_some(), "no new lock");
    eprintln!(
        "all defaults, {query:?}: promoted after {promoted:.1?}, a new lock after {took:.1?}, kept \
         lock held: {}",
        kept.ensure_held().is_ok()
    );
}

#[test]
#[ignore = "a measurement of minutes"]
fn what_a_failover_costs_with_all_defaults() {
    thread::scope(|scope| {
        for query in ["?replicas=2", ""] {
            scope.spawn(move || kill_with_defaults(query));
        }
    });
}
