//! URLs that lead to servers of another kind than they name. Nobody gets a lock by them, and nobody
//! waits for what cannot come.

use std::thread;
use std::time::Instant;

use redlatch::error::{NodeAnswer, WrongServer};
use redlatch::{Error, LockClient, NodeError};
use support::cluster_node::ClusterNode;
use support::locks::LIMIT;
use support::redis::Server;
use support::sentinel::{NAME, Sentinel, SentinelGroup};

use super::{MAX_TTL, adopt, builder};

/// Why a majority of the nodes has no vote, for a caller that would wait for long.
#[track_caller]
fn problems(url: &str) -> Vec<NodeError> {
    let client = builder(url).build().unwrap();
    let start = Instant::now();
    let error = client.request("orders").ttl(MAX_TTL).try_lock_for(LIMIT).expect_err("no votes");
    assert!(start.elapsed() < LIMIT / 2, "it waits: {error}");
    let Error::NoQuorum(error) = error else { panic!("{error:?}") };
    let problem = |answer: &NodeAnswer| match answer {
        NodeAnswer::Failed(problem) => Some(problem.clone()),
        _ => None,
    };
    let problems: Vec<_> =
        error.reports().iter().filter_map(|report| problem(&report.answer)).collect();
    assert!(problems.len() >= error.needed(), "{error}");
    assert!(problems.iter().all(NodeError::is_permanent), "{problems:?}");
    problems
}

fn cluster_url(servers: &[Server]) -> String {
    let hosts: Vec<_> = servers.iter().map(|it| format!("127.0.0.1:{}", it.port())).collect();
    format!("redis+cluster://{}", hosts.join(","))
}

#[test]
fn servers_without_a_cluster_grant_nothing_as_slots_of_one() {
    let servers: Vec<_> = (0..3).map(|_| Server::start(&[])).collect();
    for tag in ["{54h}", "{fjl}", "{1x3}"] {
        // Without a quarantine, each would grant the lock at once.
        servers.iter().for_each(|server| adopt(server, tag));
    }
    for url in [cluster_url(&servers), format!("{}?nodes=1", cluster_url(&servers[1..]))] {
        let clients: Vec<_> = (0..4).map(|_| builder(&url).build().unwrap()).collect();
        let holders = thread::scope(|scope| {
            let take = |client: &LockClient| client.try_lock("orders", MAX_TTL).ok().flatten();
            let tries: Vec<_> =
                clients.iter().map(|client| scope.spawn(move || take(client))).collect();
            let guards: Vec<_> = tries.into_iter().map(|it| it.join().unwrap()).collect();
            guards.iter().flatten().count()
        });
        assert_eq!(holders, 0);
        let wrong = NodeError::WrongServer(WrongServer::NoCluster);
        assert!(problems(&url).iter().all(|problem| *problem == wrong));
    }
}

#[test]
fn a_cluster_is_not_a_group_with_one_master() {
    let member = ClusterNode::start();
    member.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    let sentinel = Sentinel::start(member.port());
    let wrong = [NodeError::WrongServer(WrongServer::Cluster)];
    let by_name = format!("redis://127.0.0.1:{}?failover=true", member.port());
    let watched = format!("redis+sentinel://127.0.0.1:{}/{NAME}", sentinel.port());
    assert_eq!(problems(&by_name), wrong);
    assert_eq!(problems(&watched), wrong);
}

#[test]
fn a_sentinel_keeps_no_locks() {
    let group = SentinelGroup::start(1);
    let sentinel = group.sentinels[0].port();
    let wrong = [NodeError::WrongServer(WrongServer::Sentinel)];
    for options in ["", "?failover=true"] {
        assert_eq!(problems(&format!("redis://127.0.0.1:{sentinel}{options}")), wrong);
    }
}
