//! The records of transactions on the nodes: where they begin, how many may be in one, and that
//! what is over is swept.

use std::thread;
use std::time::Duration;

use redlatch::RegisterError;
use redlatch::transaction::Decision;
use support::cli;
use support::eventually;
use support::locks::LIMIT;
use support::redis::Server;

use super::calls::{begin, expect_clean, keys};
use super::group::formed;
use super::shelf::Shelf;

#[test]
fn a_record_that_a_node_has_missed_the_end_of_is_swept() {
    let (servers, other) = formed(3);
    let quick = support::locks::with_long_timeout(servers.iter().map(Server::url))
        .node_timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    let ids = [begin(&quick), begin(&quick)];
    servers[2].pause();
    for id in &ids {
        let join = |name| {
            quick
                .transactions()
                .join(id, name, &mut Shelf::default(), LIMIT)
        };
        let decisions = thread::scope(|scope| {
            let other = scope.spawn(|| join("paris"));
            [join("berlin"), other.join().unwrap()]
        });
        assert_eq!(
            decisions,
            [Ok(Decision::Committed), Ok(Decision::Committed)]
        );
    }
    // They are over, and are there until it is known that all nodes know that.
    assert_eq!(
        (quick.transactions().list().unwrap(), keys(&servers[0])),
        (Vec::new(), 4)
    );
    assert_eq!(quick.transactions().abort(&ids[0]).unwrap(), Decision::Over);
    // When that node goes on, nobody is there who would tell all nodes.
    drop(quick);
    servers[2].resume();
    expect_clean(&other, &servers);
}

#[test]
fn a_transaction_is_begun_where_the_floor_is_above_the_clock_and_a_node_is_down() {
    let (mut servers, first) = formed(3);
    assert_eq!(
        first.register("a").unwrap().read().unwrap(),
        None,
        "it knows the group"
    );
    // Other clients, whose clocks are years ahead, have deleted registers.
    let floor = ((1_u64 << 40) + 900_000_000_000).to_string();
    for server in servers.iter() {
        server.command(&["SET", ":redlatch:register-floor", &floor]);
    }
    servers[2].kill();
    for _ in 0..3 {
        let id = begin(&first);
        assert!(
            first
                .transactions()
                .list()
                .unwrap()
                .iter()
                .any(|it| it.id == id)
        );
        assert_eq!(first.transactions().abort(&id).unwrap(), Decision::Aborted);
    }
}

#[test]
fn records_are_no_registers_of_users_and_are_swept() {
    let (servers, first) = formed(3);
    first
        .register("stock")
        .unwrap()
        .change(|_| Some(b"7".to_vec()))
        .unwrap();
    let kept = begin(&first);
    let id = begin(&first);
    let name = format!(":redlatch:transaction:{id}");
    assert!(matches!(
        first.register(&name),
        Err(RegisterError::Resource(_))
    ));
    let quick = support::locks::with_long_timeout(servers.iter().map(Server::url))
        .node_timeout(Duration::from_secs(1))
        .build()
        .unwrap();
    servers[2].pause();
    assert_eq!(quick.transactions().abort(&id).unwrap(), Decision::Aborted);
    for pattern in ["*", ":redlatch:*"] {
        let names: Vec<_> = quick
            .registers()
            .list(pattern)
            .map(|it| it.unwrap())
            .collect();
        assert!(
            names.iter().all(|register| register.name() == "stock"),
            "{names:?}"
        );
    }
    let swept = quick.registers().sweep().unwrap();
    assert_eq!((swept.values, swept.removed, swept.left), (1, 0, 1));
    servers[2].resume();
    assert!(eventually(LIMIT, || first
        .registers()
        .sweep()
        .unwrap()
        .left
        == 0));
    let pattern = format!("*{id}*");
    for server in servers.iter() {
        assert_eq!(
            server.command(&["KEYS", &pattern]),
            cli::Value::Array(Vec::new())
        );
    }
    let ids: Vec<_> = first
        .transactions()
        .list()
        .unwrap()
        .iter()
        .map(|it| it.id)
        .collect();
    assert_eq!(ids, [kept]);
    assert_eq!(
        first.transactions().abort(&kept).unwrap(),
        Decision::Aborted
    );
}

#[test]
fn one_may_take_part_and_sixteen() {
    let (_servers, first) = formed(3);
    let id = first.transactions().begin(&["alone"]).unwrap();
    let decision = first
        .transactions()
        .join(&id, "alone", &mut Shelf::default(), Duration::ZERO)
        .unwrap();
    assert_eq!(decision, Decision::Committed);
    let names: Vec<String> = (0..16).map(|number| number.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let id = first.transactions().begin(&names).unwrap();
    thread::scope(|scope| {
        for name in &names {
            let first = &first;
            scope.spawn(move || {
                let decision = first
                    .transactions()
                    .join(&id, name, &mut Shelf::default(), LIMIT)
                    .unwrap();
                assert_eq!(decision, Decision::Committed);
            });
        }
    });
}
