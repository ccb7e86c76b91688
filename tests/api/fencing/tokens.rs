//! Fencing tokens grow with each grant, and normally need no additional round.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use redlatch::{Error, LockClient};
use support::eventually;
use support::fencing::{AHEAD, counter, fenced, scripts, set_counter, token};
use support::journal::{Journal, names};
use support::locks::{
    LIMIT, LONG, all_nodes_client, calls, pause, resume, take, value, with_long_timeout,
    without_restart_guard,
};
use support::queue::{finish, spawn_waiter};
use support::redis::Server;
use support::servers::Servers;

/// Acquires and releases the lock, and checks that this ran this many scripts on every node: one to
/// acquire it, one to release it.
#[track_caller]
fn scripts_of_a_grant(servers: &[Server], client: &LockClient, expected: u64) -> u64 {
    let before: Vec<_> = servers.iter().map(scripts).collect();
    let guard = fenced(client, "name");
    let token = token(&guard);
    assert_eq!(guard.release(), Ok(()));
    for (server, before) in servers.iter().zip(before) {
        assert_eq!(scripts(server) - before, expected);
    }
    token
}

#[test]
fn tokens_grow_in_the_order_in_which_threads_and_clients_hold_the_lock() {
    let servers = Servers::start(3);
    // From the wall clock, and from the counters only.
    for (name, first) in [("wall", 0), ("counted", AHEAD)] {
        servers
            .iter()
            .for_each(|server| set_counter(server, name, &first));
        let tokens = Arc::new(Mutex::new(Vec::new()));
        let clients = [0; 2].map(|_| with_long_timeout(servers.urls()).build().unwrap());
        let threads = (0..6).map(|thread| {
            let client = clients[thread % 2].clone();
            let tokens = Arc::clone(&tokens);
            thread::spawn(move || {
                for _ in 0..20 {
                    let guard = fenced(&client, name);
                    tokens.lock().unwrap().push(token(&guard));
                    drop(guard);
                }
            })
        });
        threads.collect::<Vec<_>>().into_iter().for_each(finish);
        let tokens = tokens.lock().unwrap();
        assert_eq!(tokens.len(), 120);
        assert!(
            tokens[0] > first && tokens.is_sorted_by(|one, next| one < next),
            "{tokens:?}"
        );
    }
}

#[test]
fn a_token_needs_no_additional_round_where_the_nodes_agree() {
    const GRANTS: u64 = 200;
    let servers = Servers::start(5);
    // Neither client waits for all nodes, and each learns of the other's grants from the nodes.
    let clients = [0; 2].map(|_| with_long_timeout(servers.urls()).build().unwrap());
    for grant in 0..GRANTS {
        let guard = fenced(&clients[grant as usize % 2], "name");
        assert_eq!(guard.release(), Ok(()));
    }
    // Acquiring sets the key and the counter, releasing deletes the key, and confirming a token
    // sets the counter.
    let second_rounds = |server| calls(server, "set").saturating_sub(2 * calls(server, "del"));
    for server in &servers[..] {
        let settled = || value(server, "name").is_none() && second_rounds(server) * 100 <= GRANTS;
        assert!(
            eventually(LIMIT, settled),
            "{} of {GRANTS}",
            second_rounds(server)
        );
    }
    let taken: u64 = servers.iter().map(|server| calls(server, "del")).sum();
    assert!(taken >= 3 * GRANTS, "by a majority each time: {taken}");
    // A client that waits for all nodes sees all of them agree.
    let client = all_nodes_client(servers.urls());
    let mut last = 0;
    for _ in 0..50 {
        let token = scripts_of_a_grant(&servers, &client, 2);
        assert!(token > last);
        last = token;
    }
}

#[test]
fn a_counter_that_is_ahead_on_one_node_is_on_all_nodes_after_one_grant() {
    let mut servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let first = scripts_of_a_grant(&servers, &client, 2);
    set_counter(&servers[2], "name", &AHEAD);
    let ahead = scripts_of_a_grant(&servers, &client, 3);
    assert!(ahead == AHEAD + 1 && ahead > first);
    assert!(
        servers
            .iter()
            .all(|server| counter(server, "name") == Some(ahead))
    );
    assert_eq!(scripts_of_a_grant(&servers, &client, 2), AHEAD + 2);
    // A grant without that node's reply learns of it from the others.
    servers[2].kill();
    let other = all_nodes_client(servers.urls());
    assert_eq!(scripts_of_a_grant(&servers[..2], &other, 2), AHEAD + 3);
}

#[test]
fn tokens_grow_where_nodes_have_lost_their_data() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let mut last = 0;
    for lost in [0, 1, 2, 3, 1, 3] {
        let token = scripts_of_a_grant(&servers, &client, 2);
        assert!(token > last, "before {lost} nodes lost their data");
        last = token;
        servers[..lost]
            .iter()
            .for_each(|server| drop(server.command(&["FLUSHALL"])));
    }
    // Where the counters are ahead of the wall clock, a majority that has lost them gets them from
    // the remaining nodes.
    servers
        .iter()
        .for_each(|server| set_counter(server, "name", &AHEAD));
    for (lost, rounds) in [(1, 2), (2, 3), (1, 2)] {
        servers[..lost]
            .iter()
            .for_each(|server| drop(server.command(&["FLUSHALL"])));
        let expected = counter(&servers[2], "name").unwrap() + 1;
        assert_eq!(
            scripts_of_a_grant(&servers, &client, rounds),
            expected,
            "{lost} lost it"
        );
        if rounds == 3 {
            assert!(
                servers
                    .iter()
                    .all(|server| counter(server, "name") == Some(expected))
            );
        }
    }
}

#[test]
fn a_minority_paused_in_turn_delays_no_token() {
    let mut servers = Servers::start(3);
    servers
        .iter()
        .for_each(|server| set_counter(server, "name", &AHEAD));
    let clients = [0; 2].map(|_| with_long_timeout(servers.urls()).build().unwrap());
    let mut last = AHEAD;
    for turn in 0..6 {
        servers.rotate_left(1);
        pause(&servers, 1);
        for client in &clients {
            let guard = fenced(client, "name");
            assert!(token(&guard) > last, "turn {turn}");
            last = token(&guard);
            assert_eq!(guard.release(), Ok(()));
        }
        resume(&servers, 1);
    }
}

#[test]
fn an_extension_keeps_the_token_and_a_handoff_gives_a_new_one() {
    let servers = Servers::start(3);
    let client = with_long_timeout(servers.urls())
        .wait_for_all(true)
        .handoff_limit(u32::MAX, LONG);
    let client = client.build().unwrap();
    let mut guard = fenced(&client, "name");
    let first = token(&guard);
    guard.extend(LONG).unwrap();
    guard.extend(LONG / 2).unwrap();
    assert_eq!(token(&guard), first);
    assert!(
        servers
            .iter()
            .all(|server| counter(server, "name") == Some(first))
    );

    let waiting = {
        let client = client.clone();
        spawn_waiter(move || fenced(&client, "name"))
    };
    let before = scripts(&servers[0]);
    assert_eq!(guard.release(), Ok(()));
    let next = finish(waiting);
    assert!(token(&next) > first);
    assert_eq!(
        scripts(&servers[0]) - before,
        1,
        "one round for both of them"
    );
    assert!(
        servers
            .iter()
            .all(|server| counter(server, "name") == Some(token(&next)))
    );
    // To a thread without a token, and from there to a thread with one.
    let waiting = {
        let client = client.clone();
        spawn_waiter(move || client.lock("name", LONG).unwrap())
    };
    let second = token(&next);
    drop(next);
    let plain = finish(waiting);
    assert_eq!(plain.fencing_token(), None);
    assert!(
        servers
            .iter()
            .all(|server| counter(server, "name") == Some(second))
    );
    let waiting = spawn_waiter(move || fenced(&client, "name"));
    let key = value(&servers[0], "name");
    assert_eq!(plain.release(), Ok(()));
    let third = finish(waiting);
    assert!(token(&third) > second && value(&servers[0], "name") != key);
    assert_eq!(third.release(), Ok(()));
}

#[test]
fn a_lock_without_a_token_does_not_touch_counters() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let guard = take(&client, "name", LONG);
    assert_eq!(guard.fencing_token(), None);
    assert_eq!(
        servers[0].command(&["DBSIZE"]).integer(),
        1,
        "the lock's key and nothing else"
    );
    assert_eq!(guard.release(), Ok(()));
    // Once on a connection, a removal goes by its source and by its digest.
    assert_eq!(take(&client, "name", LONG).release(), Ok(()));
    let first = scripts_of_a_grant(&servers, &client, 2);
    let token = client.with_lock("name", LONG, |held| Ok::<_, Error>(held.fencing_token()));
    assert_eq!(token, Ok(None));
    drop(take(&client, "name", LONG));
    assert!(
        servers
            .iter()
            .all(|server| counter(server, "name") == Some(first))
    );
}

#[test]
fn a_second_round_is_not_reported_as_an_attempt() {
    let servers = Servers::start(3);
    let journal = Journal::default();
    let client = with_long_timeout(servers.urls())
        .wait_for_all(true)
        .on_event(journal.recorder());
    let client = client.build().unwrap();
    set_counter(&servers[0], "name", &AHEAD);
    assert_eq!(scripts_of_a_grant(&servers, &client, 3), AHEAD + 1);
    let events = journal.take_lock_events();
    assert_eq!(names(&events), ["attempt", "acquired", "released"]);
    assert_eq!((events[0].attempts, events[1].attempts), (1, 1));
    assert!(events[1].span >= events[0].span);
}

#[test]
fn automatic_extensions_keep_the_token() {
    let servers = Servers::start(3);
    let ttl = Duration::from_secs(2);
    let client = without_restart_guard(servers.urls())
        .node_timeout(Duration::from_millis(400))
        .build()
        .unwrap();
    let guard = client
        .request("name")
        .ttl(ttl)
        .fenced()
        .keep_alive()
        .lock()
        .unwrap();
    let first = token(&guard);
    let renewed = || {
        servers
            .iter()
            .filter(|server| calls(server, "pexpire") >= 3)
            .count()
            >= 2
    };
    assert!(eventually(LIMIT, renewed));
    assert_eq!((guard.ensure_held(), token(&guard)), (Ok(()), first));
    let agreeing = servers
        .iter()
        .filter(|server| counter(server, "name") == Some(first))
        .count();
    assert!(agreeing >= 2, "extensions do not count");
    assert_eq!(guard.release(), Ok(()));
    assert!(token(&fenced(&client, "name")) > first);
}
