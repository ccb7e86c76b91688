//! What `LockClient::nodes` says about how servers are set up, and its warnings, against servers
//! that are set up so.

use std::time::{Duration, Instant};

use redlatch::embedded::Nodes;
use redlatch::status::{CrashLoss, Fsync, Role};
use redlatch::{LockClient, NodeError, NodeStatus, NodeWarning};
use support::cluster_node::ClusterNode;
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, take, with_long_timeout};
use support::peer::Peer;
use support::redis::Server;
use support::server_program::{ServerProgram, say};
use support::servers::Servers;
use support::shim::{Shim, set_clock};

/// A client with the restart guard, as users have it.
fn guarded<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> LockClient {
    with_long_timeout(urls)
        .restart_guard(true)
        .build()
        .expect("the settings are good")
}

/// The status of the only node.
#[track_caller]
fn status(client: &LockClient) -> NodeStatus {
    let mut nodes = client.nodes();
    assert!(nodes.len() == 1 && nodes[0].is_connected, "{nodes:?}");
    nodes.remove(0)
}

#[track_caller]
fn status_of(args: &[&str]) -> NodeStatus {
    status(&guarded([Server::start(args).url()]))
}

#[test]
fn nodes_says_what_a_crash_costs_and_warns_if_the_restart_guard_is_off() {
    let file = |fsync| vec!["--appendonly", "yes", "--appendfsync", fsync];
    let table = [
        (file("always"), Some(Fsync::Always), CrashLoss::Nothing),
        (
            file("everysec"),
            Some(Fsync::EverySecond),
            CrashLoss::LastSeconds,
        ),
        (file("no"), Some(Fsync::Never), CrashLoss::Unwritten),
        (
            vec!["save"],
            Some(Fsync::EverySecond),
            CrashLoss::SinceSnapshot,
        ),
        (vec![], Some(Fsync::EverySecond), CrashLoss::Everything),
    ];
    for (args, fsync, loss) in table {
        let is_saving = args == ["save"];
        let server = Server::start(if is_saving { &[] } else { &args });
        if is_saving {
            server.command(&["CONFIG", "SET", "save", "3600 1"]);
        }
        let status_with = |guard| {
            let builder = with_long_timeout([server.url()]).restart_guard(guard);
            status(&builder.build().expect("the settings are good"))
        };
        let on = status_with(true);
        let off = status_with(false);
        assert_eq!(
            on.persistence.append_only,
            Some(args.contains(&"--appendonly")),
            "{args:?}"
        );
        assert_eq!(on.persistence.fsync, fsync, "{args:?}");
        assert_eq!(on.persistence.snapshots, Some(is_saving), "{args:?}");
        assert_eq!(on.persistence.crash_loss(), Some(loss), "{args:?}");
        assert_eq!(on.warnings(), [], "{args:?}");
        let warning = NodeWarning::Forgets { loss };
        let expected = if loss == CrashLoss::Nothing {
            vec![]
        } else {
            vec![warning]
        };
        assert_eq!(off.warnings(), expected, "{args:?}");
    }
}

#[test]
fn a_server_that_evicts_is_warned_about_if_it_has_a_limit() {
    let limited = status_of(&["--maxmemory", "500mb", "--maxmemory-policy", "allkeys-lru"]);
    assert_eq!(limited.memory.max, Some(500 * 1024 * 1024));
    assert!(
        limited.memory.used.is_some_and(|used| used > 10_000),
        "{:?}",
        limited.memory
    );
    let evicts = NodeWarning::Evicts {
        policy: "allkeys-lru".to_owned(),
    };
    assert_eq!(limited.warnings(), [evicts]);
    let unlimited = status_of(&["--maxmemory-policy", "volatile-lru"]);
    assert_eq!(
        (unlimited.memory.max, unlimited.warnings()),
        (Some(0), &[][..])
    );
    let refusing = status_of(&["--maxmemory", "500mb", "--maxmemory-policy", "noeviction"]);
    assert_eq!(
        (refusing.memory.policy.as_deref(), refusing.warnings()),
        (Some("noeviction"), &[][..])
    );
}

#[test]
fn a_server_without_memory_is_warned_about() {
    let server = Server::start(&["--maxmemory-policy", "noeviction"]);
    let client = guarded([server.url()]);
    let used = status(&client).memory.used.expect("the server says so");
    server.command(&["CONFIG", "SET", "maxmemory", &(used / 2).to_string()]);
    let seen = status(&client);
    let [NodeWarning::MemoryShort { used, max }] = seen.warnings() else {
        panic!("{seen:?}")
    };
    assert!(used > max && seen.memory.max == Some(*max), "{seen:?}");
}

#[test]
fn replicas_and_their_masters_are_warned_about() {
    let master = Server::start(&[]);
    let client = guarded([master.url()]);
    assert_eq!(status(&client).role, Some(Role::Master { replicas: 0 }));
    let replica = Server::start(&[]);
    replica.command(&["SLAVEOF", "127.0.0.1", &master.port().to_string()]);
    let has_replica = || status(&client).role == Some(Role::Master { replicas: 1 });
    assert!(eventually(LIMIT, has_replica));
    assert_eq!(
        status(&client).warnings(),
        [NodeWarning::HasReplicas { count: 1 }]
    );
    let seen = status(&guarded([replica.url()]));
    assert_eq!(
        (seen.role, seen.warnings()),
        (Some(Role::Replica), &[NodeWarning::Replica][..])
    );
    replica.command(&["SLAVEOF", "NO", "ONE"]);
    assert!(eventually(LIMIT, || status(&client).warnings().is_empty()));
}

#[test]
fn a_node_of_a_cluster_is_warned_about() {
    support::needs!(Cluster);
    let server = ClusterNode::start();
    let seen = status(&guarded([server.url()]));
    assert_eq!(
        (seen.is_cluster, seen.warnings()),
        (Some(true), &[NodeWarning::Cluster][..])
    );
    assert_eq!(status_of(&[]).is_cluster, Some(false));
}

#[test]
fn a_clock_that_is_off_is_warned_about() {
    let shim = Shim::clock();
    let server = Server::start_in(&shim.environment("REDLATCH_CLOCK"), &[]);
    let client = guarded([server.url()]);
    for (seconds, is_ahead) in [(30, true), (-30, false)] {
        set_clock(&shim.orders(), seconds * 1_000_000_000);
        // A server reads its clock now and then, and answers TIME from what it read.
        let is_off = || {
            let clock = status(&client).clock.expect("the server tells its time");
            let by = Duration::from_secs(30);
            let range = by.saturating_sub(clock.error)..=by + clock.error + MARGIN;
            clock.is_ahead == is_ahead && (range.contains(&(clock.by + MARGIN / 2)))
        };
        let was_moved = eventually(LIMIT, is_off);
        if !was_moved && !ServerProgram::tested().is_default() {
            return say("skipped: this server's clock cannot be moved (is it linked statically?)");
        }
        assert!(was_moved, "{:?}", status(&client).clock);
        let seen = status(&client);
        let [NodeWarning::ClockOff { clock, allowed }] = seen.warnings() else {
            panic!("{seen:?}")
        };
        // One hundredth of `max_ttl`, a minute, and 2 ms.
        assert_eq!(
            (Some(*clock), *allowed),
            (seen.clock, Duration::from_millis(602))
        );
    }
    set_clock(&shim.orders(), 0);
    assert!(eventually(LIMIT, || status(&client).warnings().is_empty()));
}

/// The tolerance for two clocks that are read one after the other, twice.
const MARGIN: Duration = Duration::from_millis(2);

#[test]
fn what_a_user_may_not_ask_is_unknown_and_no_error_and_locks_work() {
    support::needs!(Users);
    let server = Server::start(&["--maxmemory", "500mb", "--maxmemory-policy", "allkeys-lru"]);
    let rights = ["on", ">pw", "~*", "+@all", "-info", "-config", "-time"];
    server.command(&[&["ACL", "SETUSER", "poor"][..], &rights].concat());
    let client = all_nodes_client([format!("redis://poor:pw@127.0.0.1:{}", server.port())]);
    for _ in 0..2 {
        let seen = status(&client);
        assert_eq!(
            (&seen.last_error, seen.role, seen.is_cluster),
            (&None, None, None)
        );
        assert_eq!((seen.clock, seen.persistence.crash_loss()), (None, None));
        assert_eq!((seen.memory.max, seen.warnings()), (None, &[][..]));
        assert_eq!(take(&client, "poor", LONG).release(), Ok(()));
    }
    server.command(&["ACL", "SETUSER", "poor", "+info"]);
    let again = all_nodes_client([format!("redis://poor:pw@127.0.0.1:{}", server.port())]);
    let seen = status(&again);
    assert_eq!(
        seen.warnings().len(),
        2,
        "eviction, and no persistence: {seen:?}"
    );
    assert_eq!(
        (seen.persistence.fsync, seen.persistence.snapshots),
        (None, None)
    );
}

#[test]
fn two_nodes_on_one_machine_are_warned_about() {
    let servers = Servers::start(3);
    let by_path = format!("unix://{}", servers[1].unix_socket().display());
    let client = guarded([servers[0].url(), by_path, servers[2].url()]);
    let nodes = client.nodes();
    let url = nodes[0].url.clone();
    assert_eq!(nodes[0].warnings(), []);
    for node in &nodes[1..] {
        assert_eq!(
            node.warnings(),
            [NodeWarning::SameHost {
                url: url.clone(),
                is_here: true
            }]
        );
        assert!(
            node.warnings()[0]
                .to_string()
                .contains("both run on this machine")
        );
    }
    let loopback = Some("127.0.0.1".parse().unwrap());
    let addresses: Vec<_> = nodes.iter().map(|node| node.address).collect();
    assert_eq!(addresses, [loopback, None, loopback]);
}

#[test]
fn a_node_that_answers_nothing_more_delays_nodes_by_one_timeout_and_hides_no_other_node() {
    let server = Server::start(&["--maxmemory", "500mb", "--maxmemory-policy", "allkeys-lru"]);
    let stuck = Peer::start(|conversation| {
        for _ in 0..4 {
            let Some(command) = conversation.read_command() else {
                return;
            };
            match &command[0][..] {
                b"INFO" if command[1] == b"server" => conversation.send(b"$8\r\nrun_id:a\r\n"),
                _ => conversation.send(b"-ERR unknown command\r\n"),
            };
        }
        conversation.stay_silent();
    });
    let timeout = Duration::from_secs(2);
    let builder = LockClient::builder()
        .nodes([stuck.url(), server.url()])
        .node_timeout(timeout);
    let client = builder.build().expect("the settings are good");
    let begun = Instant::now();
    let nodes = client.nodes();
    assert!(begun.elapsed() < timeout * 2, "{:?}", begun.elapsed());
    assert_eq!((nodes[0].role, nodes[0].clock), (None, None));
    assert!(
        nodes[1].memory.max.is_some() && nodes[1].warnings().len() == 2,
        "{nodes:?}"
    );
}

#[test]
fn embedded_nodes_say_that_they_keep_nothing_and_have_the_time_of_this_machine() {
    let nodes = Nodes::start(1).unwrap();
    let client = with_long_timeout(nodes.urls()).build().unwrap();
    let seen = status(&client);
    assert_eq!(seen.persistence.crash_loss(), Some(CrashLoss::Everything));
    assert_eq!(
        (seen.memory.max, seen.memory.policy.as_deref()),
        (Some(0), Some("noeviction"))
    );
    assert_eq!(seen.role, Some(Role::Master { replicas: 0 }));
    assert_eq!(seen.is_cluster, Some(false));
    let clock = seen.clock.expect("it tells its time");
    assert!(clock.by <= clock.error + MARGIN, "{clock}");
    assert_eq!(
        seen.warnings(),
        [NodeWarning::Forgets {
            loss: CrashLoss::Everything
        }]
    );
}

#[test]
fn a_node_that_does_not_answer_has_that_as_its_error() {
    let servers = Servers::start(3);
    servers[2].pause();
    let client = with_long_timeout(servers.urls()).node_timeout(Duration::from_millis(500));
    let status = client.build().unwrap().nodes().swap_remove(2);
    assert!(!status.is_connected);
    assert!(
        matches!(status.last_error, Some(NodeError::TimedOut(_))),
        "{status:?}"
    );
}
