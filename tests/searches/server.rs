//! What a command does to a node: the library encodes it, an embedded node runs the library's
//! script, and the library reads the answer.
//!
//! The node is made anew for each command: the state of the search is written to it as keys, and
//! read back after the command. A transition that was seen before is remembered.

use crate::command::{outcome, sent, subscription};
use crate::embedded::Embedded;
use crate::keys;
use crate::mistake::Mistake;
use crate::node::{Key, Node, Outcome, Request};
use crate::request::Word;
use crate::scheme::Scheme;
use crate::token::Token;
use redlatch_embedded::model::{ConnectionState, OwnedReply};
use redlatch_protocol::engine;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// How many transitions are remembered.
const SEEN_MAX: usize = 200_000;

/// A command to a node in a state, and the clients that hear the node, as bits.
type Call = (Node, Request, u8);

/// What a command does.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) node: Node,
    pub(crate) outcome: Outcome,
    /// What the node tells waiters, in this order.
    pub(crate) told: Vec<(Token, Word)>,
}

/// The servers of a thread, by the mistakes that they make, and whether they are mute.
type Servers = Vec<((Option<Mistake>, bool), Server)>;

thread_local! {
    static SERVERS: RefCell<Servers> = const { RefCell::new(Vec::new()) };
}

/// Has a node carry out a command. `hearing` are the clients whose connection the server believes
/// to be there.
pub(crate) fn run(node: &Node, request: Request, hearing: u8, scheme: &Scheme) -> Done {
    if let Request::Delete(token) = request {
        let mut node = node.clone();
        let key = &mut node.locks[0].key;
        *key = if *key == Key::Held(token) {
            Key::Free
        } else {
            *key
        };
        return Done {
            node,
            outcome: Outcome::Removed,
            told: Vec::new(),
        };
    }
    let kind = (scheme.mistake, scheme.is_mute);
    SERVERS.with_borrow_mut(|servers| {
        let found = servers
            .iter()
            .position(|(it, _)| *it == kind)
            .unwrap_or_else(|| {
                servers.push((kind, Server::new(scheme)));
                servers.len() - 1
            });
        servers[found].1.run(node, request, hearing)
    })
}

/// A node, and the connections of the clients that hear it.
struct Server {
    node: Embedded,
    links: BTreeMap<u8, ConnectionState>,
    is_mute: bool,
    seen: HashMap<Call, Done>,
}

impl Server {
    fn new(scheme: &Scheme) -> Self {
        let changes = scheme.mistake.map_or_else(Vec::new, Mistake::changes);
        let node = Embedded::new(&changes);
        let is_mute = scheme.is_mute;
        Self {
            node,
            links: BTreeMap::new(),
            is_mute,
            seen: HashMap::new(),
        }
    }

    fn run(&mut self, node: &Node, request: Request, hearing: u8) -> Done {
        let concerned = node.waiters().map(|waiter| waiter.id);
        let concerned = concerned.chain(request.waiter()).map(|id| 1 << id.client);
        let hearing = hearing & concerned.fold(0, |bits, bit: u8| bits | bit);
        let call = (node.clone(), request, hearing);
        if let Some(done) = self.seen.get(&call) {
            return done.clone();
        }
        let done = self.carry_out(&call);
        if self.seen.len() >= SEEN_MAX {
            self.seen.clear();
        }
        self.seen.insert(call, done.clone());
        done
    }

    fn carry_out(&mut self, (node, request, hearing): &Call) -> Done {
        self.listen(*hearing);
        self.node.write(&keys::write(node, self.is_mute));
        assert_eq!(self.read(), *node, "what was written");
        let outcome = outcome(*request, self.node.send(&sent(*request, self.is_mute)));
        if let Request::Restore {
            id: Some(id), want, ..
        } = *request
        {
            // The waiter leaves the queue.
            let leave = Request::Release {
                id: Some(id),
                token: id,
                want,
                keeps: false,
            };
            self.node.send(&sent(leave, self.is_mute));
        }
        Done {
            node: self.read(),
            outcome,
            told: self.told(),
        }
    }

    fn read(&self) -> Node {
        keys::read(&self.node.read(), self.is_mute)
    }

    /// These clients hear the node, and no others.
    fn listen(&mut self, hearing: u8) {
        let hears = |client: u8| hearing & 1 << client != 0;
        self.links.retain(|client, link| {
            if !hears(*client) {
                self.node.keyspace.disconnect(link);
            }
            hears(*client)
        });
        for client in (0..8).filter(|client| hears(*client)) {
            self.links
                .entry(client)
                .or_insert_with(|| self.node.connect(&subscription(client)));
        }
    }

    fn told(&mut self) -> Vec<(Token, Word)> {
        let mut told = Vec::new();
        while let Some((link, message)) = self.node.keyspace.poll_push() {
            let OwnedReply::Push(parts) = message else {
                panic!("{message:?}")
            };
            let [_, _, OwnedReply::Bulk(text)] = &parts[..] else {
                panic!("{parts:?}")
            };
            let (name, word) = text.split_at(engine::Token::LEN);
            let word = match word {
                b"r" => Word::Reserved,
                b"w0" => Word::AskNow,
                _ => Word::AskLater,
            };
            let id = Token::read(name);
            assert_eq!(link, self.links[&id.client].id, "on its own connection");
            told.push((id, word));
        }
        told
    }
}
