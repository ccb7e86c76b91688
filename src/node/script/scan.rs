//! Keys that may be locks are listed.

use super::{Call, Room, Script, elements_of_parts, list};
use crate::engine::{Action, Request};
use crate::node::command::{Meaning, decimal};
use crate::node::report::KeyPage;
use crate::resp::{Elements, Reply};

/// Lists the next keys that match a pattern and may be locks: strings with a ttl that are no longer
/// than a lock's value, and no keys of queues. `ARGV[1]` is the server's cursor, `ARGV[2]` the
/// pattern, `ARGV[3]` about how many keys the server looks at, `ARGV[4]` is `locks`, and `ARGV[5]`
/// the number. With `registers`, it lists the keys of their promises instead.
///
/// Answers a list: the number, the next cursor or 0 at the end, and the keys in lists of up to 64;
/// or null for them, and the same cursor, if they are more than fit in a reply.
pub const SCAN: Script = lua_script!("scan.lua");

pub(super) const ROOM: Room = Room {
    script: SCAN,
    encode,
    read,
};

fn encode(request: &Request, call: Call<'_>, out: &mut Vec<u8>) {
    let Action::Scan { pattern, cursor, count, registers } = &request.action else {
        unreachable!("{request:?}")
    };
    let [mut cursor_digits, mut count_digits] = [[0; 20]; 2];
    let cursor = decimal(*cursor, &mut cursor_digits);
    let count = decimal((*count).into(), &mut count_digits);
    let kind: &[u8] = if *registers { b"registers" } else { b"locks" };
    call.run_on(&[], &[cursor, pattern, count, kind], out);
}

/// The meaning of the answer to a scan.
fn read(_: &Request, number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    let [Some(Reply::Bulk(next)), keys, None] = list(number, reply)? else { return None };
    let is_number = next.iter().all(u8::is_ascii_digit);
    let next = std::str::from_utf8(next).ok().filter(|_| is_number)?.parse().ok()?;
    let keys = match keys? {
        Reply::Null => None,
        Reply::Array(parts) => Some(keys_of(&parts)?),
        _ => return None,
    };
    Some(Meaning::Listed(KeyPage { next, keys }))
}

fn keys_of(parts: &Elements<'_>) -> Option<Vec<Vec<u8>>> {
    let key = |element| match element {
        Reply::Bulk(key) => Some(key.to_vec()),
        _ => None,
    };
    elements_of_parts(parts)?.into_iter().map(key).collect()
}
