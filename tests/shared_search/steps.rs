//! What a client does next, by the answers of a majority.

use crate::client::{Answer, Phase};
use crate::node::{Request, Slot};
use crate::scheme::{Mistake, Scheme};
use crate::token::Token;
use crate::violation::Violation;
use crate::world::{Command, World};

impl World {
    pub(crate) fn begin(&mut self, client: usize, scheme: &Scheme) {
        let joined = |index: &usize| self.clients[*index].has_joined;
        let before = (0..self.clients.len()).filter(joined).map(|index| 1 << index).sum();
        let state = &mut self.clients[client];
        state.want = scheme.want(client, scheme.calls - state.calls_left);
        state.phase = Phase::Trying;
        state.calls_left -= 1;
        state.token.attempt += 1;
        state.id = state.token;
        (state.number, state.was_queued, state.before) = (0, false, before);
        let (token, want) = (state.token, state.want);
        self.forget_hints(client);
        let request = match want.is_share() {
            true => Request::TryShare { token, want },
            false => Request::Try(token),
        };
        self.ask(client, request);
    }

    /// Decides as far as the answers go.
    pub(crate) fn decide(&mut self, client: usize, scheme: &Scheme) -> Result<(), Violation> {
        let quorum = scheme.quorum();
        let answers: Vec<Answer> =
            self.sites.iter().map(|site| site.links[client].answer).collect();
        let pending = answers.iter().filter(|answer| **answer == Answer::Pending).count();
        let (yes, slot) = count_votes(&answers, scheme);
        let numbers: Vec<u8> = answers.iter().filter_map(|answer| answer.number()).collect();
        match self.clients[client].phase {
            Phase::Trying | Phase::Claiming if yes >= quorum => {
                self.clients[client].slot = slot;
                self.grant(client, scheme)?;
            }
            Phase::Trying | Phase::Claiming if yes + pending < quorum => self.fail(client, scheme),
            Phase::Joining if numbers.len() >= quorum => {
                let largest = numbers.iter().copied().max().unwrap_or(0);
                self.clients[client].number = largest;
                if numbers.iter().all(|number| *number == largest) {
                    self.wait(client, true);
                } else {
                    self.look(client, scheme);
                }
            }
            Phase::Joining if numbers.len() + pending < quorum => self.join(client, scheme),
            Phase::Looking if numbers.len() >= quorum => self.wait(client, true),
            Phase::Looking if numbers.len() + pending < quorum => self.wait(client, false),
            _ => {}
        }
        self.restore(client);
        self.claim_if_reserved(client, scheme)
    }

    /// A holder restores its token or its share on nodes that refused to extend it, and moves its
    /// permit where it was given another slot.
    fn restore(&mut self, client: usize) {
        let state = &self.clients[client];
        if state.phase != Phase::Holding {
            return;
        }
        let (token, slot, round, want) = (state.token, state.slot, state.round, state.want);
        let id = Some(state.id).filter(|_| state.was_queued);
        for link in self.sites.iter_mut().map(|site| &mut site.links[client]) {
            let is_missing = match link.answer {
                Answer::Yes(given) => given != slot,
                Answer::No => true,
                _ => false,
            };
            if is_missing && !link.restores {
                link.restores = true;
                let request = match want.is_share() {
                    true => Request::RestoreShare { id, token, slot },
                    false => Request::Restore(token),
                };
                link.commands.push(Command { round, request });
            }
        }
    }

    /// A try or a claim has failed, or took too long.
    pub(crate) fn fail(&mut self, client: usize, scheme: &Scheme) {
        if self.clients[client].phase == Phase::Claiming {
            self.forget_hints(client);
            self.look(client, scheme);
        } else if scheme.is_plain(client) {
            self.end_call(client, scheme);
        } else {
            self.join(client, scheme);
        }
    }

    /// Asks for a number, and withdraws the try.
    pub(crate) fn join(&mut self, client: usize, scheme: &Scheme) {
        let state = &mut self.clients[client];
        (state.phase, state.was_queued, state.number) = (Phase::Joining, true, 0);
        self.queue(client, scheme);
    }

    /// Keeps or takes back its place, and withdraws the latest attempt.
    pub(crate) fn look(&mut self, client: usize, scheme: &Scheme) {
        self.clients[client].phase = Phase::Looking;
        self.queue(client, scheme);
    }

    fn queue(&mut self, client: usize, scheme: &Scheme) {
        let state = &self.clients[client];
        let withdraw = Some(state.token).filter(|_| !scheme.makes(Mistake::AttemptStays));
        let (id, number, want) = (state.id, state.number, state.want);
        self.ask(client, Request::Queue { id, number, withdraw, want });
    }

    /// A waiter looks, or a holder renews.
    pub(crate) fn look_again(&mut self, client: usize, scheme: &Scheme) {
        let state = &self.clients[client];
        if state.phase == Phase::Holding {
            let (token, want, slot) = (state.token, state.want, state.slot);
            return self.ask(client, Request::Extend { token, want, slot });
        }
        self.look(client, scheme);
    }

    pub(crate) fn wait(&mut self, client: usize, has_joined: bool) {
        self.clients[client].phase = Phase::Waiting;
        self.clients[client].has_joined |= has_joined;
    }

    /// Claims the lock or a share if a majority has called the waiter.
    pub(crate) fn claim_if_reserved(
        &mut self,
        client: usize,
        scheme: &Scheme,
    ) -> Result<(), Violation> {
        let hints = self.sites.iter().filter(|site| site.links[client].is_hinted).count();
        if self.clients[client].phase != Phase::Waiting || hints < scheme.quorum() {
            return Ok(());
        }
        let state = &mut self.clients[client];
        state.token.attempt += 1;
        state.phase = Phase::Claiming;
        let (id, token, want) = (state.id, state.token, state.want);
        if scheme.makes(Mistake::CallIsGrant) {
            return self.grant(client, scheme);
        }
        let request = match want.is_share() {
            true => Request::TurnShare { id, token, want, first: first_slot(id, token, scheme) },
            false => Request::Turn { id, token },
        };
        self.ask(client, request);
        Ok(())
    }

    /// A client releases, leaves, or gives up.
    pub(crate) fn end_call(&mut self, client: usize, scheme: &Scheme) {
        self.leave_order(client);
        self.forget_hints(client);
        let state = &mut self.clients[client];
        (state.phase, state.before, state.slot) = (Phase::Idle, 0, None);
        let (id, token, want) = (state.id, state.token, state.want);
        let request = if scheme.is_plain(client) {
            Request::Delete(token)
        } else if want.is_share() {
            Request::ReleaseShare { id: Some(id).filter(|_| state.was_queued), token, want }
        } else if state.was_queued {
            Request::Leave { id, token }
        } else {
            Request::Release(token)
        };
        self.ask(client, request);
    }

    fn forget_hints(&mut self, client: usize) {
        self.sites.iter_mut().for_each(|site| site.links[client].is_hinted = false);
    }
}

/// The slot at which nodes begin to look for a free one. The first turn names none, so that nodes
/// on which the same slots are free agree; each later one names another.
fn first_slot(id: Token, token: Token, scheme: &Scheme) -> Slot {
    let turns = token.attempt - id.attempt;
    let names = turns > 1 && !scheme.makes(Mistake::NodesChooseSlot);
    names.then_some(token.client.wrapping_add(turns as u8))
}

/// The votes for the slot with the most of them. All readers have the same slot, which is none.
fn count_votes(answers: &[Answer], scheme: &Scheme) -> (usize, Slot) {
    let given = answers.iter().filter_map(|answer| match answer {
        Answer::Yes(slot) => Some(*slot),
        _ => None,
    });
    let slots: Vec<Slot> = given.collect();
    let count = |slot: Slot| match scheme.makes(Mistake::VotesOfAllSlots) {
        true => slots.len(),
        false => slots.iter().filter(|other| **other == slot).count(),
    };
    let best = slots.iter().map(|slot| (count(*slot), *slot)).max();
    best.unwrap_or((0, None))
}

impl Answer {
    fn number(self) -> Option<u8> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }
}
