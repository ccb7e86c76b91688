//! The nodes' replies to one request.

use super::Client;
use redlatch::internal::engine::{Ballot, Node, NodeSet, Request, Tally, Token, Ttl, Vote};

/// The fuzzer's votes on `request`. Without more bytes, no node replies.
pub(super) fn ballot(client: &mut Client<'_>, request: &Request) -> Ballot {
    let nodes = client.rules.nodes;
    let mut ballot = Ballot::new(Tally::new(nodes));
    for node in (0..nodes).map(Node::new) {
        if !request.nodes.contains(node) {
            // Nothing was ever written to it, so it gets no request.
            ballot.tally.cast(node, Vote::Refused);
            continue;
        }
        let (vote, is_sent, is_hopeless) = match client.input.byte().map(|byte| byte % 8) {
            Some(0..=2) => (Some(Vote::Granted), true, false),
            Some(3) => (Some(Vote::Refused), true, false),
            Some(4) => (Some(Vote::Failed), true, false),
            Some(5) => (Some(Vote::Failed), false, false),
            Some(6) => (None, true, false),
            Some(_) => (Some(Vote::Failed), true, true),
            None => (Some(Vote::Failed), false, true),
        };
        if let Some(vote) = vote {
            assert!(ballot.tally.cast(node, vote), "a first vote counts");
        }
        if is_sent {
            ballot.sent.insert(node);
        }
        if is_hopeless {
            ballot.hopeless.insert(node);
        }
    }
    ballot.same_server = client.byte() == 255;
    ballot
}

/// Whose lock a request is about.
pub(super) fn token_of(request: &Request) -> Token {
    request.lock().expect("it is about a lock").token
}

/// For how long.
pub(super) fn ttl_of(request: &Request) -> Ttl {
    request.ttl().expect("it says for how long")
}

/// Are these more than half of the configured nodes?
pub(super) fn is_majority(set: NodeSet, nodes: usize) -> bool {
    2 * set.iter().count() > nodes
}
