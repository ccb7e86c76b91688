//! Tests of the warnings, with literal statuses.

use super::*;
use crate::node::examination::{ClockReading, FailoverSettings, Fsync, Persistence};
use crate::node::{GroupOptions, Host, NodeError, NodeStatus, Role};
use crate::time::Time;
use core::net::IpAddr;

const GUARDED: Standards = Standards {
    restart_guard: true,
    allowed: Duration::from_millis(602),
};
const UNGUARDED: Standards = Standards {
    restart_guard: false,
    ..GUARDED
};

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// A node about which nothing is known.
fn unknown(url: &str) -> NodeStatus {
    NodeStatus {
        last_error: Some(NodeError::OtherProcess),
        ..NodeStatus::unknown(&Arc::from(url))
    }
}

fn warnings(status: &NodeStatus, standards: Standards) -> Vec<NodeWarning> {
    let mut statuses = [status.clone()];
    add_warnings(&mut statuses, standards, Time::ZERO, 0);
    statuses[0].warnings().to_vec()
}

#[test]
fn a_standalone_server_is_no_member_of_an_ensemble() {
    let status = |role| {
        let mut status = NodeStatus::unknown(&"zk://a:2181".into());
        status.role = role;
        status
    };
    let judged = |roles: &[Role]| {
        let mut statuses: Vec<_> = roles.iter().map(|role| status(Some(*role))).collect();
        let standards = Standards {
            restart_guard: true,
            allowed: Duration::ZERO,
        };
        add_warnings(&mut statuses, standards, Time::ZERO, 0);
        statuses
            .iter()
            .map(|status| status.warnings().to_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(judged(&[Role::Standalone]), [[]]);
    let warning = vec![NodeWarning::Standalone];
    assert_eq!(judged(&[Role::Leader, Role::Standalone]), [vec![], warning]);
    assert_eq!(
        judged(&[Role::Leader, Role::Follower, Role::Observer]),
        [[], [], []]
    );
}

#[test]
fn what_is_unknown_is_no_warning() {
    assert_eq!(warnings(&unknown("a"), GUARDED), []);
    assert_eq!(warnings(&unknown("a"), UNGUARDED), []);
    // An append-only file that is flushed nobody knows when.
    let mut status = unknown("a");
    status.persistence.append_only = Some(true);
    assert_eq!(warnings(&status, UNGUARDED), []);
}

#[test]
fn eviction_is_a_warning_where_there_is_a_limit_and_then_lack_of_memory_is_none() {
    let of = |used, max, policy: Option<&str>| {
        let mut status = unknown("a");
        let memory = &mut status.memory;
        (memory.used, memory.max, memory.policy) = (used, max, policy.map(str::to_owned));
        warnings(&status, GUARDED)
    };
    let evicts = [NodeWarning::Evicts {
        policy: "volatile-ttl".to_owned(),
    }];
    assert_eq!(of(Some(1), Some(100), Some("volatile-ttl")), evicts);
    assert_eq!(of(Some(99), Some(100), Some("volatile-ttl")), evicts);
    assert_eq!(of(Some(1), Some(0), Some("allkeys-lru")), []);
    assert_eq!(of(Some(1), None, Some("allkeys-lru")), []);
    let short = |used| vec![NodeWarning::MemoryShort { used, max: 100 }];
    assert_eq!(of(Some(89), Some(100), Some("noeviction")), []);
    assert_eq!(of(Some(90), Some(100), Some("noeviction")), short(90));
    assert_eq!(of(Some(101), Some(100), None), short(101));
    assert_eq!(of(None, Some(100), None), []);
    assert!(short(99)[0].to_string().contains("soon refuses"));
    assert!(!short(100)[0].to_string().contains("soon"));
}

#[test]
fn replication_and_cluster_mode_are_warnings() {
    let of = |role| {
        let mut status = unknown("a");
        status.role = role;
        warnings(&status, GUARDED)
    };
    assert_eq!(of(Some(Role::Master { replicas: 0 })), []);
    assert_eq!(
        of(Some(Role::Master { replicas: 2 })),
        [NodeWarning::HasReplicas { count: 2 }]
    );
    assert_eq!(of(Some(Role::Replica)), [NodeWarning::Replica]);
    let mut status = unknown("a");
    status.is_cluster = Some(true);
    assert_eq!(warnings(&status, GUARDED), [NodeWarning::Cluster]);
}

/// The warnings about a group with a bound of 15 s, whose master has these replicas.
fn of_group(
    named: Option<u32>,
    replicas: u32,
    is_cluster: bool,
    failover: FailoverSettings,
) -> Vec<NodeWarning> {
    let bound = Duration::from_secs(15);
    let max_ttl = Duration::from_secs(60);
    let options = GroupOptions {
        tag: Arc::default(),
        bound,
        max_ttl,
        replicas: named,
    };
    let mut status = unknown("a");
    status.role = Some(Role::Master { replicas });
    (status.is_cluster, status.failover) = (Some(is_cluster), failover);
    status.group_options = Some(Arc::new(options));
    warnings(&status, GUARDED)
}

#[test]
fn a_group_without_a_bound_is_a_warning_unless_a_majority_vouches() {
    let min = |wanted, lag| FailoverSettings {
        min_replicas: Some(wanted),
        max_lag: Some(Duration::from_secs(lag)),
        ..FailoverSettings::default()
    };
    let no_bound = |replicas| vec![NodeWarning::NoBound { replicas }];
    for (replicas, settings) in [
        (1, min(0, 10)),
        (2, min(0, 10)),
        (2, min(1, 0)),
        (3, min(1, 10)),
    ] {
        assert_eq!(
            of_group(None, replicas, false, settings),
            no_bound(replicas)
        );
        assert_eq!(
            of_group(None, replicas, true, settings),
            [],
            "a cluster has another bound"
        );
        if replicas > 1 {
            assert_eq!(of_group(Some(replicas), replicas, false, settings), []);
        }
    }
    for (replicas, settings) in [
        (0, min(0, 10)),
        (1, min(1, 13)),
        (2, min(1, 1)),
        (4, min(2, 9)),
    ] {
        assert_eq!(of_group(None, replicas, false, settings), []);
    }
    assert_eq!(
        of_group(None, 2, false, FailoverSettings::default()),
        [],
        "it is not known"
    );
    let short = |setting, needed| {
        let needed = Duration::from_secs(needed);
        let bound = Duration::from_secs(15);
        vec![NodeWarning::BoundShort {
            setting,
            needed,
            bound,
        }]
    };
    assert_eq!(
        of_group(None, 2, false, min(1, 14)),
        short("min-replicas-max-lag", 16)
    );
    let slow = FailoverSettings {
        cluster_timeout: Some(Duration::from_secs(16)),
        ..min(0, 10)
    };
    assert_eq!(
        of_group(None, 1, true, slow),
        short("cluster-node-timeout", 16)
    );
    assert_eq!(of_group(Some(1), 1, true, slow), []);
    assert!(no_bound(1)[0].to_string().contains("add a second replica"));
    assert!(
        no_bound(4)[0]
            .to_string()
            .contains("min-replicas-to-write to 2 or more")
    );
}

#[test]
fn a_group_that_was_failed_over_lately_has_no_bound_either() {
    let bound = Duration::from_secs(15);
    let max_ttl = Duration::from_secs(60);
    let options = GroupOptions {
        tag: Arc::default(),
        bound,
        max_ttl,
        replicas: None,
    };
    let mut status = unknown("a");
    status.role = Some(Role::Master { replicas: 0 });
    status.group_options = Some(Arc::new(options));
    status.failover.min_replicas = Some(0);
    status.failover.max_lag = Some(Duration::from_secs(10));
    assert_eq!(warnings(&status, GUARDED), [], "a master alone");
    status.persistence.has_replicated = Some(true);
    assert_eq!(
        warnings(&status, GUARDED),
        [NodeWarning::NoBound { replicas: 1 }]
    );
}

#[test]
fn replicas_that_are_not_counted_and_a_backlog_that_ends_are_warnings_about_a_group() {
    let none = FailoverSettings::default();
    let differ = NodeWarning::ReplicasDiffer {
        named: 2,
        connected: 3,
    };
    assert_eq!(of_group(Some(2), 3, false, none), [differ]);
    let ending = |secs| FailoverSettings {
        backlog_ttl: Some(Duration::from_secs(secs)),
        ..none
    };
    let after = Duration::from_secs(3600);
    assert_eq!(
        of_group(Some(2), 2, false, ending(3600)),
        [NodeWarning::BacklogEnds { after }]
    );
    let moving = FailoverSettings {
        replica_migration: Some(true),
        ..FailoverSettings::default()
    };
    assert_eq!(
        of_group(Some(2), 2, true, moving),
        [NodeWarning::ReplicasMove]
    );
    assert_eq!(of_group(None, 2, true, moving), [], "nothing depends on it");
    assert_eq!(of_group(Some(2), 2, false, moving), [], "it is no cluster");
    assert_eq!(of_group(Some(2), 2, false, ending(0)), []);
}

#[test]
fn a_clock_is_off_by_more_than_the_allowance_and_the_error_of_the_reading() {
    let of = |micros: u64| {
        let mut status = unknown("a");
        let between = (Time::from_millis(10), Time::from_millis(14));
        status.clock_reading = Some(ClockReading { micros, between });
        let mut statuses = [status];
        add_warnings(&mut statuses, GUARDED, Time::from_millis(12), 60_000_000);
        (statuses[0].clock, statuses[0].warnings().to_vec())
    };
    assert_eq!(of(60_604_000).1, []);
    assert_eq!(of(60_000_000 - 604_000).1, []);
    for (micros, is_ahead, text) in [
        (
            60_604_001,
            true,
            "ahead of this machine's; locks need no equal clocks, but if",
        ),
        (
            60_000_000 - 604_001,
            false,
            "behind this machine's; locks need no equal clocks, but if",
        ),
        (
            60_000_000 - 604_001,
            false,
            "drift_factor covers 602.0ms at most",
        ),
    ] {
        let (clock, warnings) = of(micros);
        let clock = clock.expect("there is a reading");
        assert_eq!(
            (clock.by, clock.is_ahead),
            (Duration::from_micros(604_001), is_ahead)
        );
        assert_eq!(
            warnings,
            [NodeWarning::ClockOff {
                clock,
                allowed: GUARDED.allowed
            }]
        );
        assert!(warnings[0].to_string().contains(text), "{}", warnings[0]);
    }
}

#[test]
fn nodes_on_one_machine_are_a_warning_about_the_later_one() {
    let at = |peer, own| Some(Host::at(address(peer), Some(address(own))));
    let warned = |hosts: [Option<Host>; 2]| {
        let mut statuses = [unknown("a"), unknown("b")];
        (statuses[0].host, statuses[1].host) = (hosts[0], hosts[1]);
        add_warnings(&mut statuses, GUARDED, Time::ZERO, 0);
        assert_eq!(statuses[0].warnings(), []);
        match statuses[1].warnings() {
            [] => None,
            [NodeWarning::SameHost { url, is_here }] if &**url == "a" => Some(*is_here),
            other => panic!("{other:?}"),
        }
    };
    let far = at("10.0.0.2", "10.0.0.1");
    let here = at("127.0.0.1", "127.0.0.1");
    assert_eq!(warned([far, far]), Some(false));
    assert_eq!(
        warned([far, at("::ffff:10.0.0.2", "::ffff:10.0.0.1")]),
        Some(false)
    );
    assert_eq!(warned([far, at("10.0.0.3", "10.0.0.1")]), None);
    assert_eq!(warned([far, here]), None);
    assert_eq!(warned([None, None]), None);
    // All of these lead to this machine.
    for other in [
        here,
        at("127.0.0.2", "127.0.0.1"),
        at("::1", "::1"),
        at("10.0.0.1", "10.0.0.1"),
        Some(Host::HERE),
    ] {
        assert_eq!(warned([here, other]), Some(true), "{other:?}");
        assert_eq!(warned([other, here]), Some(true), "{other:?}");
    }
}

#[test]
fn forgetting_is_a_warning_unless_the_restart_guard_covers_it() {
    let with = |append_only, fsync| {
        let mut status = unknown("a");
        let persistence = &mut status.persistence;
        (persistence.append_only, persistence.fsync) = (Some(append_only), fsync);
        status
    };
    let forgets = |loss| vec![NodeWarning::Forgets { loss }];
    let everysec = with(true, Some(Fsync::EverySecond));
    assert_eq!(
        warnings(&everysec, UNGUARDED),
        forgets(CrashLoss::LastSeconds)
    );
    assert_eq!(warnings(&everysec, GUARDED), []);
    assert_eq!(warnings(&with(true, Some(Fsync::Always)), UNGUARDED), []);
    // The settings cannot be read, but without the file something is lost in any case.
    assert_eq!(
        warnings(&with(false, None), UNGUARDED),
        forgets(CrashLoss::SinceSnapshot)
    );
    let mut none = with(false, None);
    none.persistence = Persistence {
        snapshots: Some(false),
        ..none.persistence
    };
    assert_eq!(warnings(&none, UNGUARDED), forgets(CrashLoss::Everything));
    assert_eq!(warnings(&none, GUARDED), []);
}
