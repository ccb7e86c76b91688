//! Warnings about replicated groups.

use super::{GUARDED, unknown, warnings};
use crate::node::diagnostics::examination::FailoverSettings;
use crate::node::{GroupOptions, NodeWarning, Role};
use std::sync::Arc;
use std::time::Duration;

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
        named_within: bound,
        max_ttl,
        replicas: named,
        skew: Duration::ZERO,
    };
    let mut status = unknown("a");
    status.role = Some(Role::Master { replicas });
    (status.is_cluster, status.failover) = (Some(is_cluster), failover);
    status.group_options = Some(Arc::new(options));
    warnings(&status, GUARDED)
}

#[test]
fn a_group_without_a_bound_is_a_warning_unless_replicas_acknowledge() {
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
        named_within: bound,
        max_ttl,
        replicas: None,
        skew: Duration::ZERO,
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
    assert_eq!(
        of_group(Some(2), 2, false, moving),
        [],
        "it is not a cluster"
    );
    assert_eq!(of_group(Some(2), 2, false, ending(0)), []);
}
