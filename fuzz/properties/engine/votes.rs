//! The nodes' replies to one request.

use super::Client;
use redlatch_protocol::engine::{HeldLock, Node, NodeSet, Predecessor, Request, Share, Votes};
use redlatch_protocol::engine::{Tally, Token, Ttl, Vote};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The fuzzer's votes on `request`. Without more bytes, no node replies.
///
/// If it is for a permit, each node that grants it names one. The votes for the permit with the
/// most of them are grants, and the others refusals.
pub(super) fn votes_of(client: &mut Client<'_>, request: &Request) -> Votes {
    let nodes = client.rules.nodes;
    let mut votes = Votes::new(Tally::new(nodes));
    let permits = share_of(request).map_or(0, Share::permits);
    let is_for_permit = permits > 0 && request.is_claim();
    let mut named: BTreeMap<u32, Vec<Node>> = BTreeMap::new();
    for node in (0..nodes).map(Node::new) {
        if !request.nodes.contains(node) {
            // Nothing was ever written to it, so it gets no request.
            votes.tally.cast(node, Vote::Refused);
            continue;
        }
        let byte = client.input.byte();
        let (vote, is_sent, is_hopeless) = match byte.map(|byte| byte % 8) {
            Some(0..=2) => (Some(Vote::Granted), true, false),
            Some(3) => (Some(Vote::Refused), true, false),
            Some(4) => (Some(Vote::Failed), true, false),
            Some(5) => (Some(Vote::Failed), false, false),
            Some(6) => (None, true, false),
            Some(_) => (Some(Vote::Failed), true, true),
            None => (Some(Vote::Failed), false, true),
        };
        if vote == Some(Vote::Granted) && is_for_permit {
            let permit = u32::from(byte.unwrap_or(0) / 8) % permits;
            named.entry(permit).or_default().push(node);
        } else if let Some(vote) = vote {
            assert!(votes.tally.cast(node, vote), "a first vote counts");
        }
        if is_sent {
            votes.sent.insert(node);
        }
        if is_hopeless {
            votes.permanent_failures.insert(node);
        }
    }
    let best = named
        .iter()
        .max_by_key(|(permit, nodes)| (nodes.len(), Reverse(**permit)));
    votes.permit = best.map(|(permit, _)| *permit);
    for (permit, nodes) in named {
        let is_best = Some(permit) == votes.permit;
        let vote = if is_best {
            Vote::Granted
        } else {
            Vote::Refused
        };
        assert!(
            nodes.iter().all(|node| votes.tally.cast(*node, vote)),
            "a first vote counts"
        );
    }
    votes.same_server = client.byte() == 255;
    votes
}

/// Whose lock a request is about.
pub(super) fn token_of(request: &Request) -> Token {
    request.lock().expect("it is about a lock").token
}

/// What is taken, extended or given back: a share of the lock, or all of it.
pub(super) fn share_of(request: &Request) -> Option<Share> {
    request.lock().expect("it is about a lock").share()
}

/// Is this the same share, whichever permit it is?
pub(super) fn is_like(one: Option<Share>, other: Option<Share>) -> bool {
    one.map(Share::permits) == other.map(Share::permits)
}

/// What a handoff replaces: a lock that was taken from the nodes' queue leaves it.
pub(super) fn predecessor_of(held: &HeldLock, ttl: Ttl) -> Predecessor {
    let attributes = None;
    let ttl_longest = ttl.max(held.ttl_longest);
    Predecessor {
        token: held.token,
        attributes,
        waiter: held.waiter,
        ttl_longest,
    }
}

/// For how long.
pub(super) fn ttl_of(request: &Request) -> Ttl {
    request.ttl().expect("it says for how long")
}

/// Are these more than half of the configured nodes?
pub(super) fn is_majority(set: NodeSet, nodes: usize) -> bool {
    2 * set.iter().count() > nodes
}
