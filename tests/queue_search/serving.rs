//! How a node that runs the scripts carries out the commands of this search, and its data in the
//! words of the model.

use crate::node::{Key, Node, Outcome, Request, Waiter};
use crate::server::{CLAIM, KEY, LONG, Server, name, reservation, token};
use crate::token::Token;
use redlatch::internal::embedded::OwnedReply;
use redlatch::internal::node::script::{self, Script};

impl Server {
    /// Carries out a command that arrives on this client's connection, or after that has ended.
    pub(crate) fn run(&mut self, client: Option<usize>, request: Request) -> Outcome {
        match request {
            Request::Try(token) => {
                let words = [b"SET", KEY, &name(token), b"NX", b"PX", LONG.as_bytes()];
                match self.ask(client, &words) {
                    OwnedReply::Null => Outcome::Refused,
                    _ => Outcome::Granted,
                }
            }
            Request::Queue { id, number, withdraw } => {
                self.queue(client, (id, ""), number, withdraw)
            }
            Request::Turn { id, token } => {
                let (reserved, long) = (reservation(id), LONG.as_bytes());
                let words: [&[u8]; 7] =
                    [b"1", &reserved, &name(token), long, b"0", b"0", &name(id)];
                match self.call(client, script::CLAIM, &words) {
                    OwnedReply::Array(_) => Outcome::Granted,
                    _ => Outcome::Refused,
                }
            }
            Request::Release(token) => self.remove(client, script::RELEASE, &[&name(token)]),
            Request::Leave { id, token } => {
                self.remove(client, script::GIVE, &[&name(token), &name(id), b""])
            }
            Request::Linger { id, token } => {
                let waiter = id.map_or_else(Vec::new, |id| name(id).to_vec());
                let time = CLAIM.to_string();
                self.remove(client, script::GIVE, &[&name(token), &waiter, time.as_bytes()])
            }
            Request::Delete(token) => {
                self.end_token(token);
                Outcome::Removed
            }
        }
    }

    fn remove(&mut self, client: Option<usize>, script: Script, words: &[&[u8]]) -> Outcome {
        match self.call(client, script, words) {
            OwnedReply::Integer(_) => Outcome::Removed,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn end_token(&mut self, token: Token) {
        if self.value() == name(token) {
            self.ask(None, &[b"DEL", KEY]);
        }
    }

    /// The data, in the words of the model.
    pub(crate) fn data(&self) -> Node {
        let queue = self.members(b"k:redlatch:queue").into_iter().map(|(member, number)| {
            let id = token(&member);
            let entry = self.entry(id);
            let is_served = entry == Some(b"");
            Waiter { number: number as u8, id, has_lease: entry.is_some(), is_served }
        });
        let (queue, value) = (queue.collect(), self.value());
        let key = if let Some(rest) = value.strip_prefix(b"redlatch:reserved:") {
            Key::Reserved(token(&rest[..20]), self.time(&rest[20..]))
        } else if let Some(rest) = value.strip_prefix(b"redlatch:left:") {
            let (grace, name) = rest.split_at(rest.len() - 21);
            Key::Left(token(&name[1..]), self.time(grace))
        } else if value.is_empty() {
            Key::Free
        } else {
            Key::Held(token(&value))
        };
        Node { key, queue, ..Node::default() }
    }
}
