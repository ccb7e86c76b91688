//! Whose turn it is to be connected to, and the pauses between attempts.

use super::super::*;
use std::collections::BTreeSet;

const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(25));

#[test]
fn each_server_has_its_turn_in_an_order_that_differs_between_clients() {
    let mut orders = BTreeSet::new();
    for seed in 0..100 {
        let mut servers = ServerOrder::new(3, PAUSES, seed);
        let mut order = Vec::new();
        for _ in 0..6 {
            order.push(servers.order[servers.at]);
            servers.failed(Time::ZERO, false);
        }
        assert_eq!(order[..3], order[3..]);
        assert_eq!(BTreeSet::from([0, 1, 2]), order.iter().copied().collect());
        orders.insert(order);
    }
    assert_eq!(orders.len(), 6);
}

#[test]
fn there_is_a_pause_when_all_have_failed_and_it_grows() {
    let mut longest = [Duration::ZERO; 9];
    for seed in 0..1_000 {
        let mut servers = ServerOrder::new(3, PAUSES, seed);
        for longest in &mut longest {
            let pause = servers.failed(Time::ZERO, false).since(Time::ZERO);
            *longest = pause.max(*longest);
        }
    }
    for (index, longest) in longest.into_iter().enumerate() {
        let ceiling = Duration::from_millis([0, 0, 10, 0, 0, 20, 0, 0, 25][index]);
        assert!(
            longest <= ceiling && longest * 10 >= ceiling * 9,
            "{index}: {longest:?}"
        );
    }
}

#[test]
fn a_server_that_was_of_use_is_followed_by_another_at_once() {
    let mut servers = ServerOrder::new(2, PAUSES, 7);
    servers.failed(Time::ZERO, false);
    assert!(servers.failed(Time::ZERO, false) > Time::ZERO);
    servers.failed(Time::ZERO, false);
    assert_eq!(servers.failed(Time::ZERO, true), Time::ZERO);
    let mut alone = ServerOrder::new(1, PAUSES, 7);
    assert!(
        alone.failed(Time::ZERO, true) > Time::ZERO,
        "there is no other"
    );
    for _ in 0..100 {
        assert!(alone.failed(Time::ZERO, false).since(Time::ZERO) <= PAUSES.1);
    }
}
