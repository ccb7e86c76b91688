//! Requests about locks that have counters or several keys, and replies that are lists.

use super::{Meaning, before, decimal, value};
use crate::engine::{FENCE_MAX, Request, Ttl, Verb, Vote};
use crate::node::report::KeySnapshot;
use crate::node::script::{self, Script};
use crate::resp::{Elements, Reply, encode_command};

/// What follows a lock's key in its counter's. No lock's key may end so.
pub const COUNTER_SUFFIX: &[u8] = b":redlatch:fence";

/// Does this script take more than one key?
pub(super) fn takes(script: Script) -> bool {
    [script::CLAIM, script::FENCE, script::RELEASE_ALL, script::EXTEND_ALL].contains(&script)
}

/// Is what this script answers a list, unless it refuses?
pub(super) fn has_list(script: Script) -> bool {
    [script::CLAIM, script::HANDOFF, script::INSPECT].contains(&script)
}

/// Appends a request to run this script. `proof` is what its answer is to begin with.
pub(super) fn encode(
    request: &Request,
    (verb, name): (&'static [u8], &'static [u8]),
    proof: &[u8],
    out: &mut Vec<u8>,
) {
    let keys: Vec<&[u8]> = request.keys().collect();
    let counters = counters(request, &keys);
    let [mut all, mut locks, mut ttl, mut first, mut life] = [[0; 20]; 5];
    let all = decimal((keys.len() + counters.len()) as u64, &mut all);
    let locks = decimal(keys.len() as u64, &mut locks);
    let ttl = decimal(request.ttl.as_millis(), &mut ttl);
    let first = decimal(request.fence, &mut first);
    let life = decimal(request.counters_ttl().map_or(0, Ttl::as_millis), &mut life);
    let value = value(&request.token, request.extras.as_deref());
    let before = match request.verb {
        // Where it is ours already it stays so.
        Verb::Restore => value.clone(),
        _ => before(request),
    };

    let mut words: Vec<&[u8]> = vec![verb, name, all];
    words.extend(keys);
    words.extend(counters.iter().map(Vec::as_slice));
    match request.verb {
        Verb::Acquire | Verb::Handoff | Verb::Restore => {
            words.extend([locks, &before, &value, ttl, first, life]);
        }
        Verb::Fence => words.extend([locks, &value, first, life]),
        Verb::Extend => words.extend([&value, ttl]),
        _ => words.push(&value),
    }
    words.push(proof);
    encode_command(out, &words);
}

/// The counters' keys, for the requests that count.
fn counters(request: &Request, keys: &[&[u8]]) -> Vec<Vec<u8>> {
    let counts = matches!(request.verb, Verb::Acquire | Verb::Handoff | Verb::Fence);
    let keys = keys.iter().filter(|_| counts && request.counters_ttl().is_some());
    keys.map(|key| [key, COUNTER_SUFFIX].concat()).collect()
}

/// What a list means as the answer of this script to command `number`.
pub(super) fn meaning(script: Script, number: i64, list: &Elements<'_>) -> Option<Meaning> {
    let mut elements = list.iter();
    if elements.next() != Some(Reply::Integer(number)) {
        return None;
    }
    let rest = [elements.next(), elements.next()];
    match rest {
        _ if list.len() > 3 => None,
        [Some(Reply::Integer(0)), None] if script == script::HANDOFF => {
            Some(Meaning::Vote(Vote::Granted))
        }
        [Some(Reply::Integer(1)), None] if script == script::HANDOFF => Some(Meaning::GrantedNew),
        [Some(Reply::Integer(is_new @ 0..=1)), Some(Reply::Integer(counter))]
            if script == script::CLAIM =>
        {
            let counter = u64::try_from(counter).ok().filter(|counter| *counter <= FENCE_MAX)?;
            Some(Meaning::Claimed { is_new: is_new == 1, counter })
        }
        [Some(value), Some(Reply::Integer(left))] if script == script::INSPECT => {
            let value = match value {
                Reply::Null => None,
                Reply::Bulk(bytes) => Some(bytes.to_vec()),
                _ => return None,
            };
            Some(Meaning::Seen(KeySnapshot { value, left }))
        }
        _ => None,
    }
}
