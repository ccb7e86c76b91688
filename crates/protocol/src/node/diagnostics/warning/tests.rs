//! Tests of the warnings, with literal statuses.

#[cfg(feature = "groups")]
mod of_group;

use super::*;
use crate::node::diagnostics::examination::{ClockReading, Fsync, Persistence};
use crate::node::{Host, NodeError, NodeStatus, Role};
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
