//! The state of a node as the keys of one lock, and the other way round.

use crate::embedded::{KEY, Keys, LONG, NOW, Value};
use crate::node::{CLAIM, End, Entry, GRACE, Key, Node, Share, Time, Waiter};
use crate::token::Token;
use crate::want::Want;
use redlatch::internal::node::command::{RESERVED, SHARED, read_left, read_member};
use std::str::from_utf8;

/// Since when every waiter waits.
pub(crate) const SINCE: u64 = 12;

/// The names of the other keys of the lock.
const QUEUE: &str = "k:redlatch:queue";
const LEASE: &str = "k:redlatch:lease:";
const HOLDERS: &str = "k:redlatch:holders";
const PERMITS: &str = "k:redlatch:permits";
const CALLED: &str = "k:redlatch:called";
const FLOOR: &str = "k:redlatch:floor";

/// How long a script keeps the number of the last waiter that took its share. Nothing but a command
/// ends it here.
const FLOOR_LASTS: u64 = 2000;

/// The state of the node that has these keys. Panics if there is anything that no state expresses.
pub(crate) fn read(mut keys: Keys, is_mute: bool) -> Node {
    if let Some((_, left)) = keys.get_mut(FLOOR.as_bytes()) {
        assert!(matches!(*left, FLOOR_LASTS | LONG), "{left}");
        *left = LONG;
    }
    let set = |name: &str| match keys.get(name.as_bytes()) {
        Some((Value::Set(members), _)) => members.clone(),
        _ => Vec::new(),
    };
    let holders = set(HOLDERS).into_iter().map(|(member, ends)| {
        let (slot, value) = read_member(&member).expect("a member");
        let (slot, token) = (slot.map(|slot| slot as u8), Token::read(value));
        let end = match ends {
            ..NOW => End::Over,
            ends if ends <= NOW + CLAIM => End::Soon,
            _ => End::Later,
        };
        Share { slot, token, end }
    });
    let mut holders: Vec<Share> = holders.collect();
    holders.sort_unstable();
    let index = set(PERMITS).into_iter().map(|(name, slot)| (slot as u8, Token::read(&name)));
    let is_stale = |(slot, token): &(u8, Token)| {
        !holders.iter().any(|share| share.slot == Some(*slot) && share.token == *token)
    };
    let queue = set(QUEUE).into_iter().map(|(name, number)| {
        let entry = match keys.get(&[LEASE.as_bytes(), &name].concat()) {
            None => Entry::Gone,
            Some((Value::Text(text), _)) if text.is_empty() => Entry::Served,
            Some((value, _)) => Entry::For(want(value)),
        };
        Waiter { number: number as u8, id: Token::read(&name), entry }
    });
    let called = set(CALLED).into_iter().map(|(name, ends)| (Token::read(&name), ends < NOW));
    let mut called: Vec<(Token, bool)> = called.collect();
    called.sort_unstable();
    let floor = match keys.get(FLOOR.as_bytes()) {
        Some((Value::Text(digits), _)) => number(digits),
        _ => 0,
    };
    let (key, stale) = (key(&keys), index.filter(is_stale).collect());
    let queue = queue.collect();
    let node = Node { key, holders, stale, queue, called, floor };
    assert_eq!(write(&node, is_mute), keys, "{node:?}");
    node
}

fn key(keys: &Keys) -> Key {
    let Some((Value::Text(value), left)) = keys.get(KEY) else { return Key::Free };
    let time = |grace: u64| Time { has_grace: grace > 0, left: *left };
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
    from_utf8(digits).expect("digits").parse().expect("a number")
}

/// What a waiter waits for, in the words of its entry.
fn want(entry: &Value) -> Want {
    let Value::Text(text) = entry else { panic!("{entry:?}") };
    let first = from_utf8(text).expect("our entry").split(' ').next().expect("a word");
    match first.split_once('s') {
        None => Want::Exclusive,
        Some((_, "0")) => Want::Reader,
        Some((_, permits)) => Want::Permit(number(permits.as_bytes())),
    }
}

/// The keys that describe a state.
pub(crate) fn write(node: &Node, is_mute: bool) -> Keys {
    let mut keys = Keys::new();
    let lasts = node.holders.iter().any(|share| share.end == End::Later);
    let shares_left = if lasts { LONG } else { CLAIM };
    let value = match node.key {
        Key::Free => None,
        Key::Held(token) => Some((token.name(), LONG)),
        Key::Reserved(id, time) => {
            let grace = if time.has_grace { "1000" } else { "0" };
            Some(([RESERVED, &id.name(), grace.as_bytes()].concat(), time.left))
        }
        Key::Left(token, time) => {
            let grace: &[u8] = if time.has_grace { b"1000:" } else { b"0:" };
            Some(([b"redlatch:left:", grace, &token.name()].concat(), time.left))
        }
        Key::Shared => Some((SHARED.to_vec(), shares_left)),
    };
    keys.extend(value.map(|(value, left)| (KEY.to_vec(), (Value::Text(value), left))));
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
        ([digits.as_bytes(), b":", &share.token.name()].concat(), ends)
    };
    set(HOLDERS, node.holders.iter().map(member).collect(), shares_left);
    let given = node.holders.iter().filter_map(|share| Some((share.slot?, share.token)));
    let index = given.chain(node.stale.iter().copied());
    set(PERMITS, index.map(|(slot, token)| (token.name(), slot.into())).collect(), shares_left);
    let ends = |is_over| if is_over { NOW - 1 } else { NOW + CLAIM };
    set(
        CALLED,
        node.called.iter().map(|(id, is_over)| (id.name(), ends(*is_over))).collect(),
        CLAIM + GRACE,
    );
    set(QUEUE, node.queue.iter().map(|it| (it.id.name(), it.number.into())).collect(), LONG);
    for waiter in node.queue.iter().filter(|waiter| waiter.has_lease()) {
        let name = [LEASE.as_bytes(), &waiter.id.name()].concat();
        keys.insert(name, (Value::Text(entry(waiter, is_mute)), LONG));
    }
    if node.floor > 0 {
        let digits = node.floor.to_string().into_bytes();
        keys.insert(FLOOR.into(), (Value::Text(digits), LONG));
    }
    keys
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
        Entry::For(Want::Exclusive) => String::new(),
        Entry::For(Want::Reader) => "s0".to_owned(),
        Entry::For(Want::Permit(permits)) => format!("s{permits}"),
    };
    let client = waiter.id.client;
    let channel = if is_mute { String::new() } else { format!("redlatch:{client:016x}") };
    // A waiter that has to ask needs longer for its claim.
    let claim = if is_mute { 2 * CLAIM } else { CLAIM };
    format!("{SINCE}{mode} {claim} {LONG} {channel} ").into_bytes()
}
