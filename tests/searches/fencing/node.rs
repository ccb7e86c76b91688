//! What a claim and its confirmation do to a node: the library's Lua does it, on an embedded node
//! that has the key and the counter of the state.

use crate::command::{millis, of_all_nodes};
use crate::embedded::{Embedded, KEY, Keys, LONG, Value};
use crate::token::Token;
use models::Change;
use redlatch_protocol::engine::{self, Before, Claim, Fence, LockAttributes, LockId, Vote};
use redlatch_protocol::node::command::COUNTER_SUFFIX;
use std::cell::RefCell;
use std::collections::HashMap;

/// The number of the attempt that has the lock's key, and the counter; zero if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Data {
    pub(crate) holder: u8,
    pub(crate) counter: u8,
}

/// A command of the attempt with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Command {
    Claim { number: u8, seed: u8 },
    Confirm { number: u8, token: u8 },
}

/// A node of this thread, and what commands did to it.
struct Server {
    /// The text that its mistake takes away.
    mistake: Option<&'static str>,
    node: Embedded,
    seen: HashMap<(Data, Command), (Data, Option<u8>)>,
}

thread_local! {
    static SERVER: RefCell<Option<Server>> = const { RefCell::new(None) };
}

/// Has a node carry out a command. Returns the counter if it grants.
pub(crate) fn run(data: &mut Data, command: Command, change: Option<Change>) -> Option<u8> {
    SERVER.with_borrow_mut(|server| {
        let mistake = change.map(|change| change.from);
        let server = match server {
            Some(server) if server.mistake == mistake => server,
            other => {
                let node = Embedded::new(change.as_slice());
                other.insert(Server {
                    mistake,
                    node,
                    seen: HashMap::new(),
                })
            }
        };
        let Server { node, seen, .. } = server;
        let done = seen
            .entry((*data, command))
            .or_insert_with(|| carry_out(node, *data, command));
        *data = done.0;
        done.1
    })
}

fn carry_out(node: &mut Embedded, data: Data, command: Command) -> (Data, Option<u8>) {
    node.write(&keys(data));
    let (number, least) = match command {
        Command::Claim { number, seed } => (number, seed),
        Command::Confirm { number, token } => (number, token),
    };
    let attributes = LockAttributes {
        fence: Some(millis(LONG)),
        ..LockAttributes::default()
    };
    let token = name(number).wide();
    let lock = LockId {
        key: KEY.into(),
        token,
        attributes: Some(attributes.into()),
    };
    let fence = least.into();
    let ttl = millis(LONG);
    let before = Before::Nothing;
    let sent = match command {
        Command::Claim { .. } => engine::Command::Claim(Claim {
            lock,
            ttl,
            fence,
            before,
        }),
        Command::Confirm { .. } => engine::Command::Fence(Fence { lock, fence }),
    };
    let reply = node.send(&of_all_nodes(sent));
    let granted = match reply.vote {
        Vote::Granted => Some(reply.counter.map_or(least, |counter| counter as u8)),
        Vote::Refused => None,
        Vote::Failed => panic!("{command:?} failed"),
    };
    (read(&node.read()), granted)
}

fn name(number: u8) -> Token {
    Token {
        client: number,
        attempt: 0,
    }
}

fn keys(data: Data) -> Keys {
    let mut keys = Keys::new();
    if data.holder > 0 {
        keys.insert(KEY.into(), (Value::Text(name(data.holder).name()), LONG));
    }
    if data.counter > 0 {
        let digits = data.counter.to_string().into_bytes();
        keys.insert([KEY, COUNTER_SUFFIX].concat(), (Value::Text(digits), LONG));
    }
    keys
}

/// The state that these keys describe. Panics if there is anything else.
fn read(found: &Keys) -> Data {
    let text = |name: &[u8]| match found.get(name) {
        Some((Value::Text(text), _)) => text.clone(),
        _ => Vec::new(),
    };
    let holder = Some(text(KEY)).filter(|name| !name.is_empty());
    let digits = text(&[KEY, COUNTER_SUFFIX].concat());
    let counter = std::str::from_utf8(&digits)
        .expect("digits")
        .parse()
        .unwrap_or(0);
    let data = Data {
        holder: holder.map_or(0, |name| Token::read(&name).client),
        counter,
    };
    assert_eq!(keys(data), *found, "{data:?}");
    data
}
