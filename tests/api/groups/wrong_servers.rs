//! URLs that lead to servers of another kind than they name. Nobody gets a lock by them, and nobody
//! waits for what cannot come.

use std::thread;
use std::time::Instant;

use redlatch::error::{NodeAnswer, WrongServer};
use redlatch::{Error, LockClient, NodeError};
use support::cluster_node::ClusterNode;
use support::locks::LIMIT;
use support::proxy::Proxy;
use support::redis::Server;
use support::sentinel::{NAME, Sentinel, SentinelGroup};

use super::{MAX_TTL, adopt, builder};

/// Why a majority of the nodes has no vote, for a caller that would wait for long.
#[track_caller]
fn problems(url: &str) -> Vec<NodeError> {
    let client = builder(url).build().unwrap();
    let start = Instant::now();
    let error = client
        .request("orders")
        .ttl(MAX_TTL)
        .try_lock_for(LIMIT)
        .expect_err("no votes");
    assert!(start.elapsed() < LIMIT / 2, "it waits: {error}");
    let Error::NoQuorum(error) = error else {
        panic!("{error:?}")
    };
    let problem = |answer: &NodeAnswer| match answer {
        NodeAnswer::Failed(problem) => Some(problem.clone()),
        _ => None,
    };
    let problems: Vec<_> = error
        .reports()
        .iter()
        .filter_map(|report| problem(&report.answer))
        .collect();
    assert!(problems.len() >= error.needed(), "{error}");
    assert!(problems.iter().all(NodeError::is_permanent), "{problems:?}");
    problems
}

fn is_refused(problem: &NodeError, words: &str) -> bool {
    matches!(problem, NodeError::LookupRefused(text) if text.contains(words))
}

fn cluster_url(servers: &[Server]) -> String {
    let hosts: Vec<_> = servers
        .iter()
        .map(|it| format!("127.0.0.1:{}", it.port()))
        .collect();
    format!("redis+cluster://{}", hosts.join(","))
}

#[test]
fn servers_without_a_cluster_grant_nothing_as_slots_of_one() {
    let servers: Vec<_> = (0..3).map(|_| Server::start(&[])).collect();
    for tag in ["{54h}", "{fjl}", "{1x3}"] {
        // Without a quarantine, each would grant the lock at once.
        servers.iter().for_each(|server| adopt(server, tag));
    }
    for url in [
        cluster_url(&servers),
        format!("{}?nodes=1", cluster_url(&servers[1..])),
    ] {
        let clients: Vec<_> = (0..4).map(|_| builder(&url).build().unwrap()).collect();
        let holders = thread::scope(|scope| {
            let take = |client: &LockClient| client.try_lock("orders", MAX_TTL).ok().flatten();
            let tries: Vec<_> = clients
                .iter()
                .map(|client| scope.spawn(move || take(client)))
                .collect();
            let guards: Vec<_> = tries.into_iter().map(|it| it.join().unwrap()).collect();
            guards.iter().flatten().count()
        });
        assert_eq!(holders, 0);
        let words = "the server is in no cluster, so another one could grant the same lock";
        assert!(
            problems(&url)
                .iter()
                .all(|problem| is_refused(problem, words))
        );
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
        assert_eq!(
            problems(&format!("redis://127.0.0.1:{sentinel}{options}")),
            wrong
        );
    }
}

#[test]
fn servers_that_are_no_sentinels_and_sentinels_that_are_no_cluster_are_told_apart() {
    let group = SentinelGroup::start(1);
    let at = |ports: &[u16]| {
        let hosts: Vec<_> = ports
            .iter()
            .map(|port| format!("127.0.0.1:{port}"))
            .collect();
        hosts.join(",")
    };
    let servers: Vec<_> = group.servers.iter().map(Server::port).collect();
    let sentinels: Vec<_> = group.sentinels.iter().map(Sentinel::port).collect();
    for (url, words) in [
        (
            format!("redis+sentinel://{}/{NAME}", at(&servers)),
            "the server is not a Sentinel",
        ),
        (
            format!("redis+cluster://{}?nodes=1", at(&sentinels)),
            "the server is a Sentinel",
        ),
    ] {
        let problems = problems(&url);
        assert!(is_refused(&problems[0], words), "{problems:?}");
    }
    // A majority that knows better is believed.
    let mixed = at(&[sentinels[0], sentinels[1], servers[0]]);
    let client = builder(&format!("redis+sentinel://{mixed}/{NAME}"))
        .build()
        .unwrap();
    adopt(&group.servers[0], "");
    drop(client.try_lock("orders", MAX_TTL).unwrap().unwrap());
}

#[test]
fn several_clusters_are_not_one() {
    let members = [ClusterNode::start(), ClusterNode::start()];
    for member in &members {
        member.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
        let is_up = || {
            member
                .command(&["CLUSTER", "INFO"])
                .text()
                .contains("cluster_state:ok")
        };
        assert!(support::eventually(LIMIT, is_up));
        adopt(member, "{fjl}");
    }
    let hosts: Vec<_> = members
        .iter()
        .map(|it| format!("127.0.0.1:{}", it.port()))
        .collect();
    let url = |seeds: &[String]| format!("redis+cluster://{}?nodes=1", seeds.join(","));
    let alone = builder(&url(&hosts[..1])).build().unwrap();
    drop(alone.try_lock("orders", MAX_TTL).unwrap().unwrap());
    let both = builder(&url(&hosts)).build().unwrap();
    let error = both.try_lock("orders", MAX_TTL).unwrap_err().to_string();
    assert!(error.contains("are of different clusters"), "{error}");
}

#[test]
fn sentinels_of_several_groups_are_not_one() {
    let groups = [SentinelGroup::start(1), SentinelGroup::start(1)];
    let hosts = |group: &SentinelGroup| {
        group.sentinels[..2]
            .iter()
            .map(|it| format!("127.0.0.1:{}", it.port()))
            .collect::<Vec<_>>()
    };
    for group in &groups {
        adopt(&group.servers[0], "");
        drop(
            builder(&group.url())
                .build()
                .unwrap()
                .try_lock("orders", MAX_TTL)
                .unwrap()
                .unwrap(),
        );
    }
    let hosts = groups.each_ref().map(hosts).concat().join(",");
    let problems = problems(&format!("redis+sentinel://{hosts}/{NAME}"));
    assert!(
        is_refused(&problems[0], "are of different groups"),
        "{problems:?}"
    );
}

/// Sentinels name a place that leads nowhere from here, as behind NAT.
#[test]
fn an_announced_address_that_leads_nowhere_is_in_the_error() {
    let server = Server::start(&[]);
    let relay = Proxy::start(server.port());
    let sentinel = Sentinel::start(relay.port());
    let master = relay.port();
    drop(relay);
    let client = builder(&format!(
        "redis+sentinel://127.0.0.1:{}/{NAME}",
        sentinel.port()
    ));
    let client = client.build().unwrap();
    let place = format!(
        "master 127.0.0.1:{master}, named by 127.0.0.1:{}",
        sentinel.port()
    );
    for _ in 0..3 {
        let error = client.try_lock("orders", MAX_TTL).unwrap_err().to_string();
        assert!(
            error.contains(&format!("{place}: Connection refused")),
            "{error}"
        );
        assert!(error.contains("its failover is awaited"), "{error}");
    }
}
