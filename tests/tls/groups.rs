//! Replicated groups over TLS: their servers, and those that say where the master is.

#![expect(clippy::unwrap_used, reason = "what a test cannot do fails it")]

use std::time::Duration;

use redlatch::error::{NodeAnswer, TlsErrorKind};
use redlatch::{Builder, Error, LockClient, NodeError, NodeWarning, TlsSettings};
use support::certificates::{Authority, INTERNAL, Purpose};
use support::cluster::Cluster;
use support::eventually;
use support::locks::{LIMIT, connected};
use support::redis::Server;
use support::sentinel::{NAME, Sentinel, SentinelGroup};
use support::shim::{Shim, set_clock};
use support::transport::{between_servers, trusting};

const TTL: Duration = Duration::from_secs(5);

fn settings(url: &str) -> Builder {
    let builder = LockClient::builder()
        .nodes(url)
        .node_timeout(Duration::from_secs(5));
    trusting(builder.max_ttl(TTL).failover_bound(Duration::from_secs(2)))
}

/// A client of a group that is new, which is vouched for.
#[track_caller]
fn adopted(url: &str) -> LockClient {
    let client = settings(url).build().unwrap();
    assert!(eventually(LIMIT, || client.adopt_groups().is_ok_and(
        |done| { done.iter().all(|it| it.answer == NodeAnswer::Answered) }
    )));
    connected(client)
}

/// A lock is acquired as soon as the quarantine ends, extended, and released.
#[track_caller]
fn lock_and_release(client: &LockClient) {
    let request = client.request("orders").ttl(TTL);
    let mut guard = request
        .try_lock_for(3 * LIMIT)
        .unwrap()
        .expect("it becomes free");
    guard.extend(TTL).unwrap();
    guard.release().unwrap();
}

/// Why the only node has no vote.
#[track_caller]
fn problem(url: &str) -> NodeError {
    match settings(url).build().unwrap().try_lock("orders", TTL) {
        Err(Error::NoQuorum(error)) => match &error.reports()[0].answer {
            NodeAnswer::Failed(problem) => problem.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_group_whose_sentinels_speak_tls_fails_over() {
    let mut group = SentinelGroup::start(2);
    assert!(group.url().starts_with("rediss+sentinel://"));
    let client = adopted(&group.url());
    lock_and_release(&client);
    let before = group.master();
    group.servers[before].kill();
    assert!(eventually(2 * LIMIT, || group.master() != before));
    lock_and_release(&client);
    let named = settings(&format!("{}?server_name={INTERNAL}", group.url()))
        .build()
        .unwrap();
    lock_and_release(&named);
}

#[test]
fn a_cluster_whose_nodes_speak_tls_fails_over() {
    let mut cluster = Cluster::start(3, 1);
    assert!(cluster.url().starts_with("rediss+cluster://"));
    let client = adopted(&cluster.url());
    lock_and_release(&client);
    cluster.servers[1].kill();
    lock_and_release(&client);
    // The third vote comes back when the replica is promoted.
    lock_and_release(&connected(client));
    let named = settings(&format!("{}?server_name={INTERNAL}", cluster.url()))
        .build()
        .unwrap();
    lock_and_release(&connected(named));
}

#[test]
fn a_sentinel_whose_certificate_has_another_name_is_not_believed_and_the_error_says_so() {
    let group = SentinelGroup::start(0);
    let url = format!("{}?server_name=redis-2.internal", group.url());
    let NodeError::LookupRefused(text) = problem(&url) else {
        panic!("the Sentinels are asked first")
    };
    assert!(
        text.contains("TLS: ") && text.contains("another name"),
        "{text}"
    );
}

#[test]
fn sentinels_of_an_unknown_authority_are_not_waited_for() {
    let group = SentinelGroup::start(0);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.crt");
    std::fs::write(&file, Authority::new("of someone else").pem()).unwrap();
    let stranger = TlsSettings::default().ca_file(&file);
    let client = settings(&group.url()).tls(stranger).build().unwrap();
    let waited = client.request("orders").ttl(TTL).try_lock_for(3 * LIMIT);
    let Err(Error::NoQuorum(error)) = waited else {
        panic!("{waited:?}")
    };
    let NodeAnswer::Failed(problem) = &error.reports()[0].answer else {
        panic!("{error}")
    };
    let is_refused = matches!(problem, NodeError::LookupRefused(_)) && problem.is_permanent();
    assert!(
        is_refused && problem.to_string().contains("unknown CA"),
        "{problem}"
    );
}

/// A master with such a certificate, and the URL of its group, whose Sentinel has this name.
fn group_of(purpose: Purpose, sentinel_at: &str) -> (Server, Sentinel, String) {
    let identity = Authority::trusted().issue(purpose);
    let settings = [&["--tls-auth-clients", "no"], between_servers()].concat();
    let server = Server::start_tls(&identity, &settings);
    let sentinel = Sentinel::start(server.secure_port());
    let url = format!(
        "rediss+sentinel://{sentinel_at}:{}/{NAME}",
        sentinel.client_port()
    );
    (server, sentinel, url)
}

#[test]
fn each_certificate_is_valid_for_its_own_host() {
    let (_server, _sentinel, url) = group_of(Purpose::Address, "localhost");
    lock_and_release(&adopted(&url));
    let problem = problem(&format!("{url}?server_name=localhost"));
    let NodeError::Tls(error) = &problem else {
        panic!("{problem}")
    };
    assert_eq!(
        error.kind,
        TlsErrorKind::WrongName,
        "the one name is that of all"
    );
}

#[test]
fn a_master_whose_certificate_has_another_name_is_not_used() {
    let (_server, _sentinel, url) = group_of(Purpose::OtherName, "127.0.0.1");
    let problem = problem(&url);
    let NodeError::Tls(error) = &problem else {
        panic!("{problem}")
    };
    assert_eq!(error.kind, TlsErrorKind::WrongName, "{problem}");
    assert!(problem.to_string().contains("another name"), "{problem}");
}

#[test]
fn a_node_of_a_cluster_whose_certificate_has_another_name_is_not_believed() {
    let cluster = Cluster::start(1, 0);
    let url = format!("{}?nodes=1&server_name=redis-2.internal", cluster.url());
    let NodeError::LookupRefused(text) = problem(&url) else {
        panic!("the seeds are asked first")
    };
    assert!(
        text.contains("TLS: ") && text.contains("another name"),
        "{text}"
    );
}

#[test]
fn the_servers_of_a_group_are_asked_for_the_time() {
    let master = Server::start(between_servers());
    let port = master.client_port().to_string();
    let follows = ["--replicaof", "127.0.0.1", &port];
    let shim = Shim::clock();
    set_clock(&shim.orders(), 200_000_000_000);
    let ahead = shim.environment("REDLATCH_CLOCK");
    let other = Server::start_in(&ahead, &[between_servers(), &follows].concat());
    let url = format!("rediss://127.0.0.1:{port}?failover=true");
    let client = settings(&url)
        .clock_skew(Duration::from_secs(9))
        .build()
        .unwrap();
    let place = format!("127.0.0.1:{}", other.client_port());
    assert!(eventually(LIMIT, || {
        let status = client.nodes().remove(0);
        status
            .warnings()
            .iter()
            .any(|it| matches!(it, NodeWarning::ClocksApart { ahead, .. } if *ahead == place))
    }));
}
