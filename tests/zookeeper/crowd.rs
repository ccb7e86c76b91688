//! Several clients and one lock, on a model of the lock's directory: replies, connections, sessions
//! and znodes get lost, and at most one client holds the lock at a time, tokens grow, nobody waits
//! for ever, and nothing is left behind.
//!
//! What is modelled of a lost connection: a server has carried out some of its requests, and a
//! create may still be on its way. It comes before the answer to the next sync, or never.

mod client;
mod directory;

use super::random::Random;
use client::Client;
use directory::Server;

/// Clients at a time.
const CLIENTS: usize = 4;

/// How often something happens while there are faults.
const EVENTS: usize = 600;

/// How often something may happen until everybody has had the lock, when there are none.
const PATIENCE: usize = 20_000;

/// What is wrong with the model's server, to see that the test would notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    None,
    /// A create may come after the answer to a sync, as if there had been none.
    SyncDoesNothing,
    /// A watch that is set is forgotten at once.
    NoWatches,
    /// Deletes are not repeated.
    DeletesAreForgotten,
}

/// One history.
pub(crate) struct Crowd {
    random: Random,
    server: Server,
    clients: Vec<Client>,
    /// Who holds the lock, and the last token.
    holder: Option<usize>,
    token: i64,
    grants: usize,
}

impl Crowd {
    /// Runs the history of this seed. Returns the number of grants.
    ///
    /// # Errors
    ///
    /// What went wrong.
    pub(crate) fn run(seed: u64, mistake: Mistake) -> Result<usize, String> {
        let mut random = Random::new(seed);
        let server = Server::new(&mut random, mistake);
        let clients = (0..CLIENTS).map(|number| Client::new(number, &mut random)).collect();
        let mut crowd = Self { random, server, clients, holder: None, token: 0, grants: 0 };
        for _ in 0..EVENTS {
            crowd.happen(true)?;
        }
        crowd.everybody_has_a_turn()?;
        crowd.everybody_leaves()?;
        Ok(crowd.grants)
    }

    fn happen(&mut self, has_faults: bool) -> Result<(), String> {
        let number = self.random.below(self.clients.len() as u64) as usize;
        match self.random.below(100) {
            0..=3 if has_faults => self.clients[number].cut(&mut self.server, &mut self.random),
            4 if has_faults => {
                self.end_of_hold(number);
                self.clients[number].expire(&mut self.server);
            }
            5 if has_faults => {
                if let Some(path) = self.server.remove_any(&mut self.random) {
                    for number in 0..self.clients.len() {
                        if self.clients[number].path() == Some(&*path) {
                            self.end_of_hold(number);
                        }
                        self.clients[number].contender.removed(&path);
                    }
                }
            }
            6 | 7 if has_faults => {
                self.end_of_hold(number);
                self.clients[number].contender.give_up();
            }
            8 | 9 => self.server.sweep(),
            10..=20 if self.holder == Some(number) => {
                self.end_of_hold(number);
                self.clients[number].contender.give_up();
            }
            26 | 27 if has_faults => self.clients[number].throttle(),
            21..=25 => self.clients[number].arrive(&mut self.server, &mut self.random),
            _ => self.clients[number].exchange(&mut self.server, &mut self.random),
        }
        self.tell_changes();
        self.take_steps()
    }

    /// The client does not believe any more that it holds the lock, if it did.
    fn end_of_hold(&mut self, number: usize) {
        if self.holder == Some(number) {
            self.holder = None;
        }
    }

    fn tell_changes(&mut self) {
        for (number, path) in self.server.take_changes() {
            self.clients[number].contender.changed(&path);
        }
    }

    fn take_steps(&mut self) -> Result<(), String> {
        for number in 0..self.clients.len() {
            let Some(held) = self.clients[number].take_steps(&mut self.random) else { continue };
            if let Some(other) = self.holder {
                return Err(format!("{number} holds the lock that {other} holds"));
            }
            if held.created_by <= self.token {
                return Err(format!("token {} after {}", held.created_by, self.token));
            }
            self.holder = Some(number);
            self.token = held.created_by;
            self.grants += 1;
        }
        Ok(())
    }

    fn everybody_has_a_turn(&mut self) -> Result<(), String> {
        let before: Vec<usize> = self.clients.iter().map(|client| client.grants).collect();
        for _ in 0..PATIENCE {
            self.happen(false)?;
            if self.clients.iter().zip(&before).all(|(client, before)| client.grants > *before) {
                return Ok(());
            }
        }
        Err(format!("somebody waits for ever: {:#?}", self.clients))
    }

    fn everybody_leaves(&mut self) -> Result<(), String> {
        self.holder = None;
        for client in &mut self.clients {
            client.is_leaving = true;
            client.contender.give_up();
        }
        for _ in 0..PATIENCE {
            if self.clients.iter().all(Client::is_done) {
                // What is still on its way arrives.
                for client in &mut self.clients {
                    client.arrive(&mut self.server, &mut self.random);
                }
                return match self.server.names() {
                    names if names.is_empty() => Ok(()),
                    names => Err(format!("left behind: {names:?}")),
                };
            }
            self.happen(false)?;
        }
        Err(format!("somebody never leaves: {:#?}", self.clients))
    }
}
