//! Extending a lock. Properties:
//!
//! - nothing is sent after its validity has passed, or beyond the maximum hold;
//! - it is confirmed if a majority of the configured nodes confirmed it before it expired, and then
//!   its validity follows the formula and is not less than before;
//! - without a majority it keeps its old validity; it is lost when that has passed, or when so many
//!   nodes do not have it that no majority can;
//! - in any case, nothing is undone, and a later release goes to each node that may have the key,
//!   for as long as it may live there.

use super::Client;
use super::votes::{is_majority, token_of, ttl_of, votes_of};
use redlatch_protocol::engine::{Extended, Extension, HeldLock, NodeSet, Request, Ttl, Votes};
use redlatch_protocol::time::Time;

pub(super) fn check(client: &mut Client<'_>, held: HeldLock) {
    let ttl = client.ttl();
    let started = client.now;
    let extension = Extension {
        held: held.clone(),
        ttl,
        began: started,
        is_resumed: false,
    };
    let held_for = started.after(ttl.as_duration()).since(held.since);
    let is_too_long = client.rules.hold_max.is_some_and(|most| held_for > most);
    match extension.request(&client.rules) {
        Ok(request) => {
            assert!(started < held.valid_until && !is_too_long);
            check_request(client, &request, &held, ttl);
            client.pass_time();
            let votes = votes_of(client, &request);
            let extended = extension.conclude(client.now, &votes, &client.rules);
            client.held = Some(after(client, extended, &held, &request, &votes));
        }
        Err(Extended::Lost(same)) => {
            assert!(started >= held.valid_until);
            assert_eq!(
                (same.token, same.valid_until),
                (held.token, held.valid_until)
            );
            client.held = Some(held);
        }
        Err(Extended::HeldTooLong(time)) => {
            assert!(is_too_long && started < held.valid_until);
            assert_eq!(time, held_for);
            client.held = Some(held);
        }
        Err(other) => panic!("{other:?}, and no node was asked"),
    }
}

fn check_request(client: &Client<'_>, request: &Request, held: &HeldLock, ttl: Ttl) {
    assert!(request.is_extension());
    assert_eq!(token_of(request), held.token);
    assert_eq!((request.key(), request.predecessor()), (&*held.key, None));
    assert_eq!(
        request.lock(),
        Some(&held.id()),
        "a permit is extended by its number"
    );
    assert_eq!(ttl_of(request), ttl);
    assert_eq!(request.nodes, NodeSet::all(client.rules.nodes));
    assert_eq!(request.started, client.now);
    assert_eq!(
        request.deadline,
        client.now.after(client.rules.node_timeout)
    );
}

/// The lock after that, as its holder keeps it.
fn after(
    client: &Client<'_>,
    extended: Extended,
    old: &HeldLock,
    request: &Request,
    votes: &Votes,
) -> HeldLock {
    let now = client.now;
    let nodes = client.rules.nodes;
    let is_granted = is_majority(votes.tally.granted, nodes);
    let new_end = old
        .valid_until
        .max(client.valid_until(request.started, ttl_of(request)));
    let may_be_ours = NodeSet::all(nodes).without(votes.tally.refused);
    let is_lost = now >= old.valid_until || !is_majority(may_be_ours, nodes);
    let held = match extended {
        Extended::Confirmed(held) => {
            assert!(is_granted && !is_lost);
            assert_eq!((held.valid_until, held.ttl), (new_end, ttl_of(request)));
            held
        }
        Extended::Unanswered(held) => {
            assert!(!is_granted && !is_lost);
            assert_eq!((held.valid_until, held.ttl), (old.valid_until, old.ttl));
            held
        }
        Extended::Lost(held) => {
            assert!(is_lost);
            let valid_until = held.valid_until.min(now);
            let mut held = held;
            held.valid_until = valid_until;
            held
        }
        Extended::HeldTooLong(held) => panic!("{held:?}, after the nodes were asked"),
    };
    assert_eq!((held.id(), held.since), (old.id(), old.since));
    assert_eq!(held.nodes, old.nodes.union(votes.sent));
    assert_eq!(held.ttl_longest, old.ttl_longest.max(ttl_of(request)));
    check_undo(client, &held, now);
    held
}

/// A later release reaches each node that may have the key, for as long as it may live.
fn check_undo(client: &Client<'_>, held: &HeldLock, now: Time) {
    let undo = held.undo(now, &client.rules);
    assert!(undo.is_removal() && !undo.is_answered());
    assert_eq!((token_of(&undo), undo.nodes), (held.token, held.nodes));
    assert_eq!((undo.key(), ttl_of(&undo)), (&*held.key, held.ttl_longest));
    assert_eq!(undo.lock(), Some(&held.id()));
}
