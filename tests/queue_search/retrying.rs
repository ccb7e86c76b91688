//! What a client of either search does when an attempt has failed.

use crate::client::{Answer, MISSES_MAX, Phase};
use crate::place::Place;
use crate::scheme::Scheme;
use crate::world::World;

impl World {
    /// A try or a claim has failed, or took too long.
    pub(crate) fn fail(&mut self, client: usize, scheme: &Scheme) {
        if self.clients[client].phase == Phase::Claiming {
            self.forget_hints(client);
            if self.clients[client].misses >= MISSES_MAX {
                return self.begin_again(client, scheme);
            }
            self.look(client, scheme);
        } else if scheme.is_plain(client) {
            self.end_call(client, scheme);
        } else {
            self.join(client, scheme);
        }
    }

    /// Gives the place up. The next try is that of a newcomer.
    pub(crate) fn begin_again(&mut self, client: usize, scheme: &Scheme) {
        self.end_call(client, scheme);
        self.clients[client].calls_left += 1;
    }

    pub(crate) fn wait(&mut self, client: usize, has_joined: bool) {
        self.clients[client].phase = Phase::Waiting;
        self.clients[client].has_joined |= has_joined;
    }

    pub(crate) fn forget_hints(&mut self, client: usize) {
        for link in self.sites.iter_mut().map(|site| &mut site.links[client]) {
            (link.is_hinted, link.asks) = (false, None);
        }
    }
}

impl Answer {
    pub(crate) fn place(self) -> Option<Place> {
        match self {
            Self::Place(place) => Some(place),
            _ => None,
        }
    }
}
