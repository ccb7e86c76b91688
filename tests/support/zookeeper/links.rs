//! The links between the servers of an ensemble.
//!
//! In each server's configuration the others are at the ports of links, so each pair of servers has
//! links of its own, two for each of them: one for the connection of a follower to its leader, and
//! one for elections. Of two servers the one with the greater number keeps an election connection:
//! it closes that of the other and connects to the address that the other has told. So the link of
//! an election replaces the port in that message.

use super::link::{Direction, Link};
use super::server::Server;
use crate::port::Port;

/// The links between the servers of an ensemble.
pub struct Links {
    /// By the number of the connecting server and then of the other: for followers and elections.
    links: Vec<Vec<Option<[Link; 2]>>>,
}

impl Links {
    pub(super) fn between(servers: &[Server]) -> Self {
        let count = servers.len();
        let ports = |from: usize| {
            let pair = |to: usize| (from != to).then(|| [Port::choose(), Port::choose()]);
            (0..count).map(pair).collect::<Vec<_>>()
        };
        let mut ports: Vec<_> = (0..count).map(ports).collect();
        let numbers: Vec<Vec<Option<u16>>> = ports
            .iter()
            .map(|row| {
                row.iter()
                    .map(|pair| Some(pair.as_ref()?[1].number()))
                    .collect()
            })
            .collect();
        let mut open = |from: usize, to: usize| {
            let [follower, election] = ports[from][to].take()?;
            let [own, targets] = [from, to].map(|server| &servers[server].peer_ports);
            let told = |port: u16| format!("127.0.0.1:{port}").into_bytes();
            let back = numbers[to][from].expect("every pair has links in both directions");
            let replacement = (told(own[1].number()), told(back));
            Some([
                Link::between_servers(follower, targets[0].number(), None),
                Link::between_servers(election, targets[1].number(), Some(replacement)),
            ])
        };
        let links = (0..count).map(|from| (0..count).map(|to| open(from, to)).collect());
        Self {
            links: links.collect(),
        }
    }

    /// The ports at which the other is for this server.
    pub(super) fn ports(&self, from: usize, to: usize) -> Option<[u16; 2]> {
        self.pair(from, to)
            .map(|links| [links[0].port(), links[1].port()])
    }

    /// The links for connections that the one server opens to the other.
    fn pair(&self, from: usize, to: usize) -> Option<&[Link; 2]> {
        self.links[from][to].as_ref()
    }

    /// Calls for each link that carries what goes from the one server to the other.
    fn each(&self, from: usize, to: usize, change: impl Fn(&Link, Direction)) {
        for link in self.pair(from, to).into_iter().flatten() {
            change(link, Direction::Forth);
        }
        for link in self.pair(to, from).into_iter().flatten() {
            change(link, Direction::Back);
        }
    }

    fn others(&self, server: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.links.len()).filter(move |other| *other != server)
    }

    /// Keeps back what goes from the one server to the other, without an end of the connection.
    pub fn stall(&self, from: usize, to: usize) {
        self.each(from, to, Link::hold);
    }

    /// The same for all that this server sends to others.
    pub fn stall_from(&self, server: usize) {
        self.others(server)
            .for_each(|other| self.stall(server, other));
    }

    /// The same for all that others send to this server.
    pub fn stall_to(&self, server: usize) {
        self.others(server)
            .for_each(|other| self.stall(other, server));
    }

    /// Closes this server's connections to the others, and refuses new ones until
    /// [`heal`](Self::heal).
    pub fn cut_off(&self, server: usize) {
        for other in self.others(server) {
            self.each(server, other, |link, _| link.refuse(true));
        }
    }

    /// Delivers what was kept back, and lets the servers connect.
    pub fn heal(&self) {
        for link in self.links.iter().flatten().flatten().flatten() {
            link.refuse(false);
            link.release(Direction::Forth);
            link.release(Direction::Back);
        }
    }
}
