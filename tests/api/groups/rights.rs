//! Addresses that lead nowhere, wrong passwords, users without a right: what the client says, and
//! how soon. No text shows a password.

use std::time::{Duration, Instant};

use redlatch::error::{NodeAnswer, ServerErrorKind};
use redlatch::{Builder, Error, LockClient, NodeError, NodeWarning};
use support::cli::Value;
use support::deaf_port::DeafPort;
use support::eventually;
use support::locks::{LIMIT, connected};
use support::secret::SECRET;
use support::sentinel::{NAME, Sentinel, SentinelGroup, replicated};

use super::{MAX_TTL, adopt, builder};

const TTL: Duration = MAX_TTL;

/// Why the only node has no vote.
#[track_caller]
fn problem(client: &LockClient) -> NodeError {
    let error = client
        .try_lock("orders", TTL)
        .expect_err("there is no vote");
    let Error::NoQuorum(error) = error else {
        panic!("{error:?}")
    };
    let text = format!("{error} {error:?} {:?}", client.nodes());
    assert!(!text.contains(SECRET), "{text}");
    match &error.reports()[0].answer {
        NodeAnswer::Failed(problem) => problem.clone(),
        other => panic!("{other:?}"),
    }
}

fn build(builder: Builder) -> LockClient {
    builder.build().unwrap()
}

#[test]
fn sentinels_that_do_not_know_the_group_or_want_a_password() {
    let group = SentinelGroup::start(1);
    adopt(&group.servers[0], "");
    let client = |url: String| build(builder(&url));
    let says = |client: LockClient, words: &str| {
        let problem = problem(&client);
        let is_refused = matches!(&problem, NodeError::LookupRefused(why) if why.contains(words));
        assert!(is_refused && problem.is_permanent(), "{problem}");
    };
    says(
        client(group.url().replace(NAME, "others")),
        "No such master with that name",
    );
    for sentinel in &group.sentinels {
        sentinel.command(&[
            "ACL",
            "SETUSER",
            "app",
            "on",
            &format!(">{SECRET}"),
            "+@all",
        ]);
        sentinel.command(&["ACL", "SETUSER", "default", "off"]);
    }
    says(client(group.url()), "NOAUTH");
    let login = |user: &str, password: &str| {
        format!(
            "{}?sentinel_user={user}&sentinel_password={password}",
            group.url()
        )
    };
    let silent = |client: &LockClient| {
        let is_silent = |it: &NodeWarning| matches!(it, NodeWarning::SentinelsSilent { .. });
        client.nodes()[0].warnings().iter().any(is_silent)
    };
    let refused = client(login("app", &format!("{SECRET}-not")));
    assert!(silent(&refused));
    says(refused, "WRONGPASS");
    let admitted = client(login("app", SECRET));
    drop(admitted.try_lock("orders", TTL).unwrap().unwrap());
    assert!(!silent(&admitted));
}

#[test]
fn servers_that_refuse_the_user_or_a_right() {
    let group = SentinelGroup::start(1);
    adopt(&group.servers[0], "");
    let rights = "~orders* ~other* +@all";
    let user = |name: &str, rights: &str| {
        let words = format!("ACL SETUSER {name} on >{SECRET} {rights}");
        for server in &group.servers {
            assert_eq!(
                server.command(&words.split(' ').collect::<Vec<_>>()),
                Value::ok()
            );
        }
        let at = format!("://{name}:{SECRET}@");
        build(builder(&group.url().replace("://", &at)))
    };
    let kind = |problem: NodeError| match problem {
        NodeError::Server(error) => error.kind,
        other => panic!("{other:?}"),
    };
    let wrong = group.url().replace("://", &format!("://app:{SECRET}@"));
    assert_eq!(
        kind(problem(&build(builder(&wrong)))),
        ServerErrorKind::Authentication
    );
    let no_marker = problem(&user("one", rights));
    assert!(no_marker.is_permanent(), "{no_marker:?}");
    assert_eq!(kind(no_marker), ServerErrorKind::NoPermission);
    let no_info = problem(&user("two", "~* +@all -info"));
    assert!(no_info.is_permanent(), "{no_info:?}");
    let all = "~* +eval +evalsha +get +set +time +wait +info +pexpire +pttl +del +hello +client";
    for (name, lacks) in [("three", "+get"), ("five", "-evalsha")] {
        let client = user(name, &format!("{all} {lacks}"));
        // What the others have set may stay until its ttl has passed.
        for _ in 0..3 {
            let allowed = client.request("orders").ttl(TTL).try_lock_for(LIMIT);
            drop(allowed.unwrap().unwrap());
        }
    }
    // The Sentinels know no user, and answer even so.
    let warned = user("four", "~* +@all").nodes();
    let is_silent = |it: &NodeWarning| matches!(it, NodeWarning::SentinelsSilent { .. });
    assert!(!warned[0].warnings().iter().any(is_silent), "{warned:?}");
}

#[test]
fn a_sentinel_that_does_not_answer_is_not_waited_for() {
    let group = SentinelGroup::start(1);
    adopt(&group.servers[0], "");
    let deaf = DeafPort::open("127.0.0.1:0");
    let with = |others: &[u16]| {
        let hosts = others.iter().map(|port| format!("127.0.0.1:{port}"));
        let hosts = [deaf.address().to_string()]
            .into_iter()
            .chain(hosts)
            .collect::<Vec<_>>();
        build(builder(&format!(
            "redis+sentinel://{}/{NAME}",
            hosts.join(",")
        )))
    };
    let ports: Vec<_> = group.sentinels.iter().map(Sentinel::port).collect();
    let took = |client: LockClient| {
        let start = Instant::now();
        drop(
            client
                .request("orders")
                .ttl(TTL)
                .try_lock_for(LIMIT)
                .unwrap()
                .unwrap(),
        );
        start.elapsed()
    };
    let two = took(with(&ports[..2]));
    let one = took(with(&ports[..1]));
    let dead = took(with(&[ports[0], support::port::Port::choose().number()]));
    assert!(two < Duration::from_millis(500), "{two:?}");
    assert!(one.max(dead) < Duration::from_secs(2), "{one:?} {dead:?}");
}

#[test]
fn sentinels_that_are_silent_at_first_are_found() {
    let mut group = SentinelGroup::start(1);
    adopt(&group.servers[0], "");
    let url = group.url();
    group.sentinels.iter().for_each(Sentinel::pause);
    let client = build(builder(&url).connect_timeout(Duration::from_secs(1)));
    assert!(matches!(problem(&client), NodeError::NoMaster(_)));
    group.sentinels.iter().for_each(Sentinel::resume);
    assert!(eventually(LIMIT, || client
        .try_lock("orders", TTL)
        .is_ok_and(|it| it.is_some())));
    // They are not needed afterwards.
    group.sentinels.clear();
    drop(connected(client).try_lock("orders", TTL).unwrap().unwrap());
}

#[test]
fn a_host_name_may_be_announced() {
    let servers = replicated(0);
    adopt(&servers[0], "");
    let options = "sentinel resolve-hostnames yes\nsentinel announce-hostnames yes\n";
    let sentinel = Sentinel::start_at("localhost", servers[0].port(), options);
    let named = sentinel.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]);
    assert!(
        matches!(&named, Value::Array(place) if place[0].text() == "localhost"),
        "{named:?}"
    );
    let url = format!("redis+sentinel://localhost:{}/{NAME}", sentinel.port());
    drop(
        build(builder(&url))
            .try_lock("orders", TTL)
            .unwrap()
            .unwrap(),
    );
}
