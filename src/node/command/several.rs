//! Requests about locks that have counters or several keys, and replies that are lists.

use super::{Meaning, before, decimal, value};
use crate::engine::{FENCE_MAX, Request, Ttl, Verb, Vote};
use crate::node::report::Sighting;
use crate::node::script::{self, Script};
use crate::resp::{Elements, Reply, encode_command};

/// What follows a lock's key in its counter's. No lock's key may end so.
pub const COUNTER_SUFFIX: &[u8] = b":redlatch:fence";

/// Does this script take more than one key?
pub(super) fn takes(script: Script) -> bool {
    [script::CLAIM, script::FENCE, script::RELEASE_ALL, script::EXTEND_ALL].contains(&script)
}

/// Appends a request to run this script.
pub(super) fn encode(
    request: &Request,
    (verb, name): (&'static [u8], &'static [u8]),
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
        Verb::Replant => value.clone(),
        _ => before(request),
    };

    let mut words: Vec<&[u8]> = vec![verb, name, all];
    words.extend(keys);
    words.extend(counters.iter().map(Vec::as_slice));
    match request.verb {
        Verb::Plant | Verb::HandOver | Verb::Replant => {
            words.extend([locks, &before, &value, ttl, first, life]);
        }
        Verb::Fence => words.extend([locks, &value, first, life]),
        Verb::Extend if request.ttl < request.ttl_longest => {
            words.extend([&value, ttl, b"shorter"]);
        }
        Verb::Extend => words.extend([&value, ttl]),
        _ => words.push(&value),
    }
    encode_command(out, &words);
}

/// The counters' keys, for the requests that count.
fn counters(request: &Request, keys: &[&[u8]]) -> Vec<Vec<u8>> {
    let counts = matches!(request.verb, Verb::Plant | Verb::HandOver | Verb::Fence);
    let keys = keys.iter().filter(|_| counts && request.counters_ttl().is_some());
    keys.map(|key| [key, COUNTER_SUFFIX].concat()).collect()
}

/// What a list means as the answer of this script.
pub(super) fn meaning(script: Option<Script>, list: &Elements<'_>) -> Option<Meaning> {
    let script = script?;
    let mut elements = list.iter();
    let pair = [elements.next()?, elements.next()?];
    match &pair {
        _ if list.len() > 2 => None,
        [Reply::Integer(0), Reply::Integer(_)] if script == script::CLAIM => {
            Some(Meaning::Vote(Vote::Refused))
        }
        [Reply::Integer(state @ 1..=2), Reply::Integer(counter)] if script == script::CLAIM => {
            let counter = u64::try_from(*counter).ok().filter(|counter| *counter <= FENCE_MAX)?;
            Some(Meaning::Claimed { is_planted: *state == 2, counter })
        }
        [value, Reply::Integer(left)] if script == script::INSPECT => {
            let value = match value {
                Reply::Null => None,
                Reply::Bulk(bytes) => Some(bytes.to_vec()),
                _ => return None,
            };
            Some(Meaning::Seen(Sighting { value, left: *left }))
        }
        _ => None,
    }
}
