//! Clients that request a free lock at the same moment: one of them gets it.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use redlatch::LockClient;
use support::locks::{LONG, all_nodes_client, calls, gone, take, with_long_timeout};
use support::proxy::{Mode, Proxy};
use support::servers::Servers;

/// In how many of the rounds, in which all clients request the same lock at once, none got it.
/// The pause between two rounds is as long as releases take to arrive.
fn rounds_without_a_winner(clients: &[LockClient], rounds: usize, between: Duration) -> usize {
    let count = clients.len();
    let ready = AtomicUsize::new(0);
    let end = Barrier::new(count);
    let winners: Vec<_> = (0..rounds).map(|_| AtomicUsize::new(0)).collect();
    thread::scope(|scope| {
        for client in clients {
            assert!(client.nodes().iter().all(|node| node.is_connected));
            scope.spawn(|| {
                for (round, winners) in winners.iter().enumerate() {
                    // Not with a barrier, which wakes one thread after the other.
                    ready.fetch_add(1, Ordering::SeqCst);
                    while ready.load(Ordering::SeqCst) < (round + 1) * count {
                        thread::yield_now();
                    }
                    let guard = client.try_lock("free", LONG).expect("the nodes answer");
                    winners.fetch_add(usize::from(guard.is_some()), Ordering::SeqCst);
                    end.wait();
                    drop(guard);
                    thread::sleep(between);
                }
            });
        }
    });
    let winners = winners.into_iter().map(AtomicUsize::into_inner);
    winners
        .inspect(|winners| assert!(*winners < 2, "two holders"))
        .filter(|it| *it == 0)
        .count()
}

#[test]
fn of_clients_each_nearest_to_another_node_one_gets_the_lock() {
    let servers = Servers::start(3);
    let proxies: Vec<_> = servers
        .iter()
        .map(|server| Proxy::start(server.port()))
        .collect();
    let delay = Duration::from_millis(20);
    let far = Mode::Delay {
        to_server: delay,
        to_client: Duration::ZERO,
    };
    proxies.iter().for_each(|proxy| proxy.set(far));
    let clients = (0..3).map(|near| {
        let url = |index: usize| {
            if index == near {
                servers[index].url()
            } else {
                proxies[index].url()
            }
        };
        with_long_timeout((0..3).map(url))
            .build()
            .expect("the settings are good")
    });
    // Each gets the node nearest to it first and finds the others taken: each round would end so.
    let rounds = 25;
    let clients = clients.collect::<Vec<_>>();
    let lost = rounds_without_a_winner(&clients, rounds, 2 * delay);
    println!("no client won {lost} of {rounds} rounds");
    assert!(lost < rounds / 5, "no client won {lost} of {rounds} rounds");
    assert!(gone(&servers, "free"));
}

#[test]
fn of_clients_that_request_at_once_one_gets_the_lock() {
    let servers = Servers::start(3);
    let rounds = 500;
    for count in [2, 3, 5] {
        let client = || {
            with_long_timeout(servers.urls())
                .build()
                .expect("the settings are good")
        };
        let clients: Vec<_> = (0..count).map(|_| client()).collect();
        let lost = rounds_without_a_winner(&clients, rounds, Duration::ZERO);
        println!("{count} clients: none won {lost} of {rounds} rounds");
        assert!(
            lost <= rounds / 100,
            "{count} clients: none won {lost} of {rounds} rounds"
        );
    }
    assert!(gone(&servers, "free"));
}

#[test]
fn a_held_lock_is_requested_once() {
    let servers = Servers::start(3);
    let holder = all_nodes_client(servers.urls());
    let client = all_nodes_client(servers.urls());
    let _held = take(&holder, "held", LONG);
    let before = calls(&servers[0], "set");
    for _ in 0..10 {
        assert!(client.try_lock("held", LONG).unwrap().is_none());
    }
    assert_eq!(calls(&servers[0], "set") - before, 10);
    // A node that lost the key grants it while the others refuse: a few attempts, and no more.
    servers[0].command(&["DEL", "held"]);
    let before = calls(&servers[1], "set");
    assert!(client.try_lock("held", LONG).unwrap().is_none());
    assert_eq!(calls(&servers[1], "set") - before, 4);
}
