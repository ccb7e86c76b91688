//! Releasing a lock. Properties: each node that may have the key gets the removal once, also after
//! the validity has passed; the release is in time if it began in time and a majority of the
//! configured nodes still had the key; it is too late if it began too late, or if so many nodes no
//! longer had the key that no majority can.

use super::Client;
use super::votes::{is_majority, token_of, ttl_of, votes_of};
use redlatch_protocol::engine::{HeldLock, NodeSet, Release, Verdict};

pub(super) fn check(client: &mut Client<'_>, held: &HeldLock) {
    let started = client.now;
    let release = Release {
        held,
        keep_for: None,
        began: started,
    };
    let request = release.request(&client.rules);
    assert!(request.is_removal() && request.is_answered());
    assert_eq!(token_of(&request), held.token);
    assert_eq!(
        (request.lock(), request.nodes),
        (Some(&held.id()), held.nodes)
    );
    assert_eq!(
        (ttl_of(&request), request.started),
        (held.ttl_longest, started)
    );
    assert_eq!(request.deadline, started.after(client.rules.node_timeout));
    client.pass_time();
    let votes = votes_of(client, &request);
    let outcome = release.conclude(&votes);

    let nodes = client.rules.nodes;
    let may_be_ours = NodeSet::all(nodes).without(votes.tally.refused);
    let expected = if started >= held.valid_until || !is_majority(may_be_ours, nodes) {
        Verdict::Lost
    } else if is_majority(votes.tally.granted, nodes) {
        Verdict::Won
    } else {
        Verdict::Pending
    };
    assert_eq!(outcome, expected);
}
