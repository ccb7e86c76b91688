//! Several clients and two locks, on a model of the locks' directories: replies, connections,
//! sessions and znodes get lost. Clients want a lock, a share of one, or both locks together. No
//! two hold what excludes each other, nobody loses a znode unnoticed, tokens of what excludes each
//! other grow, nobody waits for ever, and nothing is left behind.
//!
//! What is modelled of a lost connection: a server has carried out some of its requests, and a
//! create or a transaction may still be on its way. It comes before the answer to the next sync, or
//! never.

mod client;
mod mutants;
mod server;
mod tree;
mod wish;

use super::random::Random;
use client::Client;
use redlatch_zookeeper::message::{Create, CreateKind};
use server::Server;
use wish::{Taste, Tokens};

/// Clients at a time.
const CLIENTS: usize = 5;

/// How often something happens while there are faults.
const EVENTS: usize = 600;

/// How often something may happen until everybody has had a lock, when there are no faults.
const PATIENCE: usize = 20_000;

/// What is wrong with the model's server or its clients, to see that the test would notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    None,
    /// A create may come after the answer to a sync, as if there had been none.
    SyncDoesNothing,
    /// A watch that is set is forgotten at once.
    NoWatches,
    /// The same for those of the shares.
    NoWatchesOfShares,
    /// Deletes are not repeated.
    DeletesAreForgotten,
    /// A contender is not told of another connection.
    ConnectionsAreNotTold,
    /// A share is made after its contender has left the queue.
    SharesInTwoSteps,
    /// A writer does not look at the shares.
    WritersIgnoreShares,
    /// The shares are read before the queue.
    SharesAreReadFirst,
    /// The znode of a permit has its number as its name, and no id.
    PermitsHaveNoId,
    /// A set joins one queue after the other. There are no faults, so that what is found is that
    /// two sets wait for each other.
    SetsOneByOne,
}

/// One history.
pub(crate) struct Crowd {
    random: Random,
    server: Server,
    clients: Vec<Client>,
    tokens: Tokens,
    counts: Counts,
}

/// What was granted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) grants: usize,
    /// Beside another client that held a share of the same lock.
    pub(crate) together: usize,
}

impl Crowd {
    /// Runs the history of this seed.
    ///
    /// # Errors
    ///
    /// What went wrong.
    pub(crate) fn run(seed: u64, mistake: Mistake) -> Result<Counts, String> {
        let mut random = Random::new(seed);
        let server = Server::new(&mut random, mistake);
        let taste = Taste::new(&mut random);
        let client = |number| Client::new(number, taste, &mut random);
        let clients = (0..CLIENTS).map(client).collect();
        let tokens = Tokens::default();
        let counts = Counts::default();
        let mut crowd = Self {
            random,
            server,
            clients,
            tokens,
            counts,
        };
        for _ in 0..EVENTS {
            crowd.happen(mistake != Mistake::SetsOneByOne)?;
        }
        crowd.everybody_has_a_turn()?;
        crowd.everybody_leaves()?;
        Ok(crowd.counts)
    }

    fn happen(&mut self, has_faults: bool) -> Result<(), String> {
        let number = self.random.below(self.clients.len() as u64) as usize;
        let client = &mut self.clients[number];
        match self.random.below(100) {
            0..=3 if has_faults => client.cut(&mut self.server, &mut self.random),
            4 if has_faults => client.expire(&mut self.server),
            5 if has_faults => {
                if let Some(path) = self.server.remove_any(&mut self.random) {
                    for client in &mut self.clients {
                        client.removed(&path);
                    }
                }
            }
            6 if has_faults => client.give_up(),
            7 if has_faults => {
                // What it gives up is in flight, and so is what it asks for then.
                client.give_up();
                client.take_steps(&mut self.random)?;
                client.cut(&mut self.server, &mut self.random);
            }
            8 | 9 => self.server.tree.sweep(&mut self.random),
            10..=20 if client.hold.is_some() => client.give_up(),
            26..=29 if has_faults => client.throttle(),
            30..=35 => client.beat(&self.server),
            21..=25 => client.arrive(&mut self.server, &mut self.random),
            _ => client.exchange(&mut self.server, &mut self.random),
        }
        self.tell_changes();
        self.take_steps()?;
        self.check_holds()
    }

    fn tell_changes(&mut self) {
        for (number, path) in self.server.take_changes() {
            self.clients[number].contender.changed(&path);
        }
    }

    fn take_steps(&mut self) -> Result<(), String> {
        for number in 0..self.clients.len() {
            if !self.clients[number].take_steps(&mut self.random)? {
                continue;
            }
            let Some(hold) = self.clients[number].hold.clone() else {
                continue;
            };
            if hold.paths.iter().any(|path| self.server.was_removed(path)) {
                // Since it was listed. A beat will tell.
                self.clients[number].hold = None;
                continue;
            }
            for (other, client) in self.clients.iter().enumerate() {
                let Some(held) = client.hold.as_ref().filter(|_| other != number) else {
                    continue;
                };
                if held.excludes(&hold) {
                    return Err(format!("{hold:?} of {number} and {held:?} of {other}"));
                }
                self.counts.together += usize::from(held.is_of_a_lock_of(&hold));
            }
            // Of sets that join one by one, only that they wait for each other is of interest.
            if self.server.mistake != Mistake::SetsOneByOne {
                self.tokens.granted(&hold)?;
            }
            self.counts.grants += 1;
        }
        Ok(())
    }

    /// Whoever is not told otherwise has its znodes.
    fn check_holds(&self) -> Result<(), String> {
        for (number, client) in self.clients.iter().enumerate() {
            let paths = client.hold.iter().flat_map(|hold| &hold.paths);
            if let Some(path) = paths
                .into_iter()
                .find(|path| self.server.tree.znode(path).is_none())
            {
                return Err(format!("{number} has lost {path} and does not know it"));
            }
        }
        Ok(())
    }

    fn everybody_has_a_turn(&mut self) -> Result<(), String> {
        let before: Vec<usize> = self.clients.iter().map(|client| client.grants).collect();
        for _ in 0..PATIENCE {
            self.happen(false)?;
            if self
                .clients
                .iter()
                .zip(&before)
                .all(|(client, before)| client.grants > *before)
            {
                return Ok(());
            }
        }
        Err(format!("somebody waits for ever: {:#?}", self.clients))
    }

    fn everybody_leaves(&mut self) -> Result<(), String> {
        for client in &mut self.clients {
            client.is_leaving = true;
            client.give_up();
        }
        for _ in 0..PATIENCE {
            if self.clients.iter().all(Client::is_done) {
                // What is still on its way arrives.
                for client in &mut self.clients {
                    client.arrive(&mut self.server, &mut self.random);
                }
                return match self.server.tree.paths() {
                    names if names.is_empty() => Ok(()),
                    names => Err(format!("left behind: {names:?}")),
                };
            }
            self.happen(false)?;
        }
        Err(format!("somebody never leaves: {:#?}", self.clients))
    }
}

/// Does it join a queue?
fn is_sequential(create: &Create) -> bool {
    create.kind == CreateKind::EphemeralSequential
}
