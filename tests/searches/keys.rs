//! The state of a node as the keys of its locks, and the other way round.

use crate::embedded::{Keys, LONG, NAMES, NOW, Value};
use crate::node::{CLAIM, End, Entry, GRACE, Key, Lock, Node, PART, Share, Time, Waiter};
use crate::token::Token;
use crate::want::Want;
use redlatch_protocol::node::command::{RESERVED, SHARED, read_left, read_member};
use std::str::from_utf8;

/// Since when every waiter waits.
pub(crate) const SINCE: u64 = 12;

/// The names of the other keys of a lock, behind its own.
const QUEUE: &str = ":redlatch:queue";
const LEASE: &str = ":redlatch:lease:";
const HOLDERS: &str = ":redlatch:holders";
const PERMITS: &str = ":redlatch:permits";
const CALLED: &str = ":redlatch:called";
const FLOOR: &str = ":redlatch:floor";

/// How long a script keeps the number of the last waiter that took its share. Nothing but a command
/// ends it here.
const FLOOR_LASTS: u64 = 2000;

/// The state of the node that has these keys. Panics if there is anything that no state expresses.
pub(crate) fn read(keys: &Keys, is_mute: bool) -> Node {
    let of = |lock: &[u8]| {
        let own = keys
            .iter()
            .filter_map(|(key, value)| Some((key.strip_prefix(lock)?, value)));
        own.map(|(key, value)| (key.to_vec(), value.clone()))
            .collect()
    };
    let locks = [0, 1].map(|index| read_lock(of(NAMES[index]), index, is_mute));
    assert!(
        keys.keys()
            .all(|key| NAMES.iter().any(|name| key.starts_with(name))),
        "{keys:?}"
    );
    Node { locks }
}

/// The keys that describe a state.
pub(crate) fn write(node: &Node, is_mute: bool) -> Keys {
    let locks = NAMES.iter().zip(&node.locks);
    let all = locks.flat_map(|(name, lock)| {
        let keys = write_lock(lock, is_mute).into_iter();
        keys.map(|(key, value)| ([name, &key[..]].concat(), value))
    });
    all.collect()
}

/// The state of the lock with this index. The names of its keys are without its own.
fn read_lock(mut keys: Keys, index: usize, is_mute: bool) -> Lock {
    if let Some((_, left)) = keys.get_mut(FLOOR.as_bytes()) {
        assert!(matches!(*left, FLOOR_LASTS | LONG), "{left}");
        *left = LONG;
    }
    // Queues outlast all entries in them, and the entry of a set that is served keeps its number.
    for (name, (value, left)) in &mut keys {
        let is_served = name.starts_with(LEASE.as_bytes()) && *value == Value::Text(Vec::new());
        if *left == PART && (is_served || name == QUEUE.as_bytes()) {
            *left = LONG;
        }
    }
    let set = |name: &str| match keys.get(name.as_bytes()) {
        Some((Value::Set(members), _)) => members.clone(),
        _ => Vec::new(),
    };
    let mut holders: Vec<Share> = set(HOLDERS)
        .into_iter()
        .map(|(member, ends)| share(&member, ends))
        .collect();
    holders.sort_unstable();
    let permits = set(PERMITS)
        .into_iter()
        .map(|(name, slot)| (slot as u8, Token::read(&name)));
    let is_stale = |(slot, token): &(u8, Token)| {
        !holders
            .iter()
            .any(|share| share.slot == Some(*slot) && share.token == *token)
    };
    let queue = set(QUEUE).into_iter().map(|(name, number)| {
        let entry = match keys.get(&[LEASE.as_bytes(), &name].concat()) {
            None => Entry::Gone,
            Some((Value::Text(text), _)) if text.is_empty() => Entry::Served,
            Some((value, _)) => Entry::For(want(value, index)),
        };
        Waiter {
            number: number as u8,
            id: Token::read(&name),
            entry,
        }
    });
    let called = set(CALLED)
        .into_iter()
        .map(|(name, ends)| (Token::read(&name), ends < NOW));
    let mut called: Vec<(Token, bool)> = called.collect();
    called.sort_unstable();
    let floor = match keys.get(FLOOR.as_bytes()) {
        Some((Value::Text(digits), _)) => number(digits),
        _ => 0,
    };
    let key = key(&keys);
    let stale = permits.filter(is_stale).collect();
    let queue = queue.collect();
    let lock = Lock {
        key,
        holders,
        stale,
        queue,
        called,
        floor,
    };
    assert_eq!(write_lock(&lock, is_mute), keys, "{lock:?}");
    lock
}

/// The share of this member of the set of holders, which ends then.
fn share(member: &[u8], ends: u64) -> Share {
    let (slot, value) = read_member(member).expect("a member");
    let slot = slot.map(|slot| slot as u8);
    let token = Token::read(value);
    let end = match ends {
        ..NOW => End::Over,
        ends if ends <= NOW + CLAIM => End::Soon,
        _ => End::Later,
    };
    Share { slot, token, end }
}

fn key(keys: &Keys) -> Key {
    let Some((Value::Text(value), left)) = keys.get(&[][..]) else {
        return Key::Free;
    };
    let time = |grace: u64| Time {
        has_grace: grace > 0,
        left: *left,
    };
    if let Some(rest) = value.strip_prefix(RESERVED) {
        let (name, grace) = rest.split_at(20);
        Key::Reserved(Token::read(name), time(number(grace)))
    } else if let Some((grace, name)) = read_left(value) {
        Key::Left(Token::read(name), time(grace))
    } else if value == SHARED {
        Key::Shared
    } else {
        Key::Held(Token::read(value))
    }
}

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(digits: &[u8]) -> T {
    from_utf8(digits)
        .expect("digits")
        .parse()
        .expect("a number")
}

/// What a waiter waits for, in the words of its entry.
fn want(entry: &Value, index: usize) -> Want {
    let Value::Text(text) = entry else {
        panic!("{entry:?}")
    };
    let mut words = from_utf8(text).expect("our entry").split(' ');
    let first = words.next().expect("a word");
    match first.split_once('s') {
        None if words.nth(1) == Some(&PART.to_string()) => Want::Both,
        None => [Want::Exclusive, Want::Second][index],
        Some((_, "0")) => Want::Reader,
        Some((_, permits)) => Want::Permit(number(permits.as_bytes())),
    }
}

/// The keys that describe the state of a lock, without its own name.
fn write_lock(lock: &Lock, is_mute: bool) -> Keys {
    let mut keys = Keys::new();
    let has_holders = lock.holders.iter().any(|share| share.end == End::Later);
    let shares_left = if has_holders { LONG } else { CLAIM };
    let value = value_of(lock.key, shares_left);
    keys.extend(value.map(|(value, left)| (Vec::new(), (Value::Text(value), left))));
    let mut set = |name: &str, members: Vec<(Vec<u8>, u64)>, left: u64| {
        put_set(&mut keys, name, members, left);
    };
    let member = |share: &Share| {
        let digits = share.slot.map_or_else(String::new, |slot| slot.to_string());
        let ends = match share.end {
            End::Over => NOW - 1,
            End::Soon => NOW + CLAIM,
            End::Later => NOW + LONG,
        };
        (
            [digits.as_bytes(), b":", &share.token.name()].concat(),
            ends,
        )
    };
    set(
        HOLDERS,
        lock.holders.iter().map(member).collect(),
        shares_left,
    );
    let given = lock
        .holders
        .iter()
        .filter_map(|share| Some((share.slot?, share.token)));
    let index = given.chain(lock.stale.iter().copied());
    set(
        PERMITS,
        index
            .map(|(slot, token)| (token.name(), slot.into()))
            .collect(),
        shares_left,
    );
    let ends = |is_over| if is_over { NOW - 1 } else { NOW + CLAIM };
    set(
        CALLED,
        lock.called
            .iter()
            .map(|(id, is_over)| (id.name(), ends(*is_over)))
            .collect(),
        CLAIM + GRACE,
    );
    set(
        QUEUE,
        lock.queue
            .iter()
            .map(|it| (it.id.name(), it.number.into()))
            .collect(),
        LONG,
    );
    for waiter in lock.queue.iter().filter(|waiter| waiter.has_lease()) {
        let name = [LEASE.as_bytes(), &waiter.id.name()].concat();
        keys.insert(name, (Value::Text(entry(waiter, is_mute)), lasts(waiter)));
    }
    if lock.floor > 0 {
        let digits = lock.floor.to_string().into_bytes();
        keys.insert(FLOOR.into(), (Value::Text(digits), LONG));
    }
    keys
}

/// The value of a lock's own key, and how long it lives.
fn value_of(key: Key, shares_left: u64) -> Option<(Vec<u8>, u64)> {
    match key {
        Key::Free => None,
        Key::Held(token) => Some((token.name(), LONG)),
        Key::Reserved(id, time) => {
            let grace = if time.has_grace { "1000" } else { "0" };
            Some(([RESERVED, &id.name(), grace.as_bytes()].concat(), time.left))
        }
        Key::Left(token, time) => {
            let grace: &[u8] = if time.has_grace { b"1000:" } else { b"0:" };
            Some((
                [b"redlatch:left:", grace, &token.name()].concat(),
                time.left,
            ))
        }
        Key::Shared => Some((SHARED.to_vec(), shares_left)),
    }
}

fn put_set(keys: &mut Keys, name: &str, mut members: Vec<(Vec<u8>, u64)>, left: u64) {
    members.sort_unstable_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
    if !members.is_empty() {
        keys.insert(name.into(), (Value::Set(members), left));
    }
}

/// The value of a waiter's entry.
fn entry(waiter: &Waiter, is_mute: bool) -> Vec<u8> {
    let mode = match waiter.entry {
        Entry::Gone | Entry::Served => return Vec::new(),
        Entry::For(Want::Exclusive | Want::Second | Want::Both) => String::new(),
        Entry::For(Want::Reader) => "s0".to_owned(),
        Entry::For(Want::Permit(permits)) => format!("s{permits}"),
    };
    let client = waiter.id.client;
    let channel = if is_mute {
        String::new()
    } else {
        format!("redlatch:{client:016x}")
    };
    // A waiter that has to ask needs longer for its claim.
    let claim = if is_mute { 2 * CLAIM } else { CLAIM };
    format!("{SINCE}{mode} {claim} {} {channel} ", lasts(waiter)).into_bytes()
}

/// How long the entry is kept of who wants this. Only a step of the search ends it.
pub(crate) fn lease(want: Want) -> u64 {
    if want.is_set() { PART } else { LONG }
}

fn lasts(waiter: &Waiter) -> u64 {
    match waiter.entry {
        Entry::For(want) => lease(want),
        Entry::Gone | Entry::Served => LONG,
    }
}
