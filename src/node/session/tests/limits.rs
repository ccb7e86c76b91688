//! What a node that does not answer can make pile up.

use crate::engine::Verb;
use crate::node::fixture::{Talk, request, ticket};
use crate::node::{IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX, Problem, SessionOptions};
use std::sync::Arc;

#[test]
fn a_silent_node_is_not_fed_without_end_and_removals_get_the_last_room() {
    let mut talk = Talk::ready();
    for serial in 0..IN_FLIGHT_MAX as u64 {
        talk.send(serial, Verb::Plant);
    }
    assert_eq!(talk.session.load(), (IN_FLIGHT_MAX / 2, 0));
    let refused = talk.answers();
    assert_eq!(refused.len(), IN_FLIGHT_MAX / 2);
    assert!(refused.iter().all(|answer| answer.problem == Some(Problem::Overloaded)));
    assert!(refused.iter().all(|answer| !answer.was_sent), "so there is nothing to undo");

    for _ in 0..IN_FLIGHT_MAX {
        talk.post(1, Verb::Undo);
    }
    assert_eq!(talk.session.load(), (IN_FLIGHT_MAX, IN_FLIGHT_MAX / 2));
    talk.hear("+OK\r\n".repeat(IN_FLIGHT_MAX / 2));
    assert_eq!(talk.session.load(), (IN_FLIGHT_MAX, 0), "room is used for what is owed");
}

#[test]
fn long_keys_fill_the_room_before_their_number_does() {
    let mut talk = Talk::ready();
    let mut long = request(Verb::Plant, 1, talk.now);
    long.key = Arc::from(vec![b'k'; 64 * 1024]);
    for serial in 0..100 {
        talk.session.send(talk.now, Some(ticket(serial)), &long);
    }
    let (sent, _) = talk.session.load();
    assert!((8..10).contains(&sent), "{sent}");
    assert!(talk.session.output().len() < IN_FLIGHT_BYTES_MAX);
}

#[test]
fn what_waits_for_a_connection_is_bounded_as_well() {
    let mut talk = Talk::new(SessionOptions::new("redis://node", 7));
    let mut long = request(Verb::Plant, 1, talk.now);
    long.key = Arc::from(vec![b'k'; 64 * 1024]);
    for serial in 0..100 {
        talk.session.send(talk.now, Some(ticket(serial)), &long);
    }
    let refused = talk.answers().len();
    assert!(refused >= 90, "{refused} of 100 are refused, with 64 KiB each");
    assert!(!talk.session.cancel(ticket(99)), "refused at once");
    assert!(talk.session.cancel(ticket(0)));
    talk.session.send(talk.now, Some(ticket(200)), &long);
    assert!(talk.answers().is_empty(), "there is room again");
}
