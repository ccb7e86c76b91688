//! The data of a node that runs the scripts, in the words of the model, and what ends there without
//! a command.

use crate::node::{Key, Node, Share, Waiter};
use crate::scheme::Want;
use crate::server::{KEY, Server, name, token};
use crate::serving::digits;
use crate::token::Token;

impl Server {
    /// The token ends, or the share. The server removes a share that has ended later.
    pub(crate) fn end_token(&mut self, token: Token) {
        if self.value() == name(token) {
            self.ask(None, &[b"DEL", KEY]);
        }
        let held = self.data().holders.into_iter().find(|share| share.token == token);
        if let Some(share) = held {
            let member = [digits(share.slot).as_bytes(), b":", &name(token)].concat();
            self.ask(None, &[b"ZREM", b"k:redlatch:holders", &member]);
            self.ask(None, &[b"ZREM", b"k:redlatch:permits", &name(token)]);
            if self.data().holders.is_empty() {
                self.ask(None, &[b"DEL", KEY]);
            }
        }
    }

    /// The data, in the words of the model.
    pub(crate) fn data(&self) -> Node {
        let queue = self.members(b"k:redlatch:queue").into_iter().map(|(member, number)| {
            let id = token(&member);
            let entry = self.entry(id);
            Waiter { number: number as u8, id, has_lease: entry.is_some(), want: want(entry) }
        });
        let queue = queue.collect();
        let holders = self.members(b"k:redlatch:holders").into_iter().map(|(member, _)| {
            let (slot, name) = member.split_at(member.len() - 21);
            let slot = std::str::from_utf8(slot).expect("digits").parse().ok();
            Share { slot, token: token(&name[1..]) }
        });
        let mut holders: Vec<Share> = holders.collect();
        holders.sort_unstable();
        let called = self.members(b"k:redlatch:called").into_iter();
        let mut called: Vec<(Token, bool)> =
            called.map(|(member, end)| (token(&member), end < self.now)).collect();
        called.sort_unstable();
        let value = self.value();
        let key = if let Some(rest) = value.strip_prefix(b"redlatch:reserved:") {
            Key::Reserved(token(&rest[..20]), self.time(&rest[20..]))
        } else if value == b"redlatch:shared" {
            Key::Shared
        } else if value.is_empty() {
            Key::Free
        } else {
            Key::Held(token(&value))
        };
        let holders = if key == Key::Shared { holders } else { Vec::new() };
        Node { key, holders, queue, called, ..Node::default() }
    }
}

/// What a waiter waits for, in the words of its entry.
fn want(entry: Option<&[u8]>) -> Option<Want> {
    let text = std::str::from_utf8(entry?).ok()?;
    let first = text.split(' ').next().filter(|first| !first.is_empty())?;
    Some(match first.split_once('s') {
        None => Want::Exclusive,
        Some((_, "0")) => Want::Reader,
        Some((_, permits)) => Want::Permit(permits.parse().ok()?),
    })
}
