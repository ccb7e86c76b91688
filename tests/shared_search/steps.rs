//! What a client does next, by the answers of a majority.

use crate::client::{Answer, MISSES_MAX, Phase};
use crate::node::{Place, Request, Slot};
use crate::pace::Pace;
use crate::scheme::{Mistake, Scheme, Want};
use crate::token::Token;
use crate::violation::Violation;
use crate::world::{Command, World};

impl World {
    pub(crate) fn begin(&mut self, client: usize, scheme: &Scheme) {
        let joined =
            |index: &usize| self.clients[*index].has_joined && self.is_firm(*index, scheme);
        let before = (0..self.clients.len()).filter(joined).map(|index| 1 << index).sum();
        let state = &mut self.clients[client];
        state.want = scheme.want(client, scheme.calls - state.calls_left);
        state.phase = Phase::Trying;
        state.calls_left -= 1;
        state.token.attempt += 1;
        state.id = state.token;
        (state.number, state.was_queued, state.before) = (0, false, before);
        (state.misses, state.is_out, state.place) = (0, false, 0);
        let (token, want) = (state.token, state.want);
        self.forget_hints(client);
        self.sites.iter_mut().for_each(|site| site.links[client].is_firm = false);
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
        let places: Vec<Place> = answers.iter().filter_map(|answer| answer.place()).collect();
        match self.clients[client].phase {
            // Its answers come too late.
            Phase::Trying | Phase::Claiming if self.clients[client].pace == Pace::Late => {}
            Phase::Trying | Phase::Claiming
                if yes >= quorum && (pending == 0 || !self.hears_all(client, scheme)) =>
            {
                self.clients[client].slot = slot;
                self.grant(client, scheme)?;
            }
            Phase::Trying | Phase::Claiming if yes + pending < quorum => self.fail(client, scheme),
            Phase::Joining if places.len() >= quorum => {
                let numbers = || places.iter().map(|place| place.number);
                let largest = numbers().max().unwrap_or(0);
                self.clients[client].number = largest;
                if numbers().all(|number| number == largest) {
                    self.placed(client, &places, scheme);
                } else {
                    self.look(client, scheme);
                }
            }
            // It asks again after a pause.
            Phase::Joining
                if places.len() + pending < quorum
                    && self.clients[client].pace == Pace::Minority =>
            {
                self.wait(client, false);
            }
            Phase::Joining if places.len() + pending < quorum => self.join(client, scheme),
            Phase::Looking if places.len() >= quorum => self.placed(client, &places, scheme),
            Phase::Looking if places.len() + pending < quorum => self.wait(client, false),
            _ => {}
        }
        self.restore(client);
        self.claim_if_reserved(client, scheme)
    }

    /// A majority has told the waiter its place.
    fn placed(&mut self, client: usize, places: &[Place], scheme: &Scheme) {
        let is_out = places.iter().filter(|place| place.was_out).count() >= scheme.quorum();
        let state = &mut self.clients[client];
        // Who is late itself is out twice for one miss: when it is told, and when it comes back.
        let is_miss = is_out && !state.is_out;
        state.misses += u8::from(is_miss);
        state.is_out = is_miss;
        state.place = places.iter().map(|place| place.before).max().unwrap_or(0);
        if state.misses >= MISSES_MAX {
            return self.begin_again(client, scheme);
        }
        self.wait(client, true);
    }

    /// Does the client wait for the votes of all nodes, to learn which of them gave another slot?
    fn hears_all(&self, client: usize, scheme: &Scheme) -> bool {
        let is_permit = matches!(self.clients[client].want, Want::Permit(_));
        is_permit && !scheme.makes(Mistake::PermitRoundEndsWithMajority)
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
                let id = id.filter(|_| link.answer == Answer::No);
                let request = match want.is_share() {
                    true => Request::RestoreShare { id, token, slot },
                    false => Request::Restore(token),
                };
                link.commands.push(Command { round, request });
            }
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
        self.sites.iter_mut().for_each(|site| site.links[client].asks = None);
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

    /// Claims the lock or a share if a majority has called the waiter.
    pub(crate) fn claim_if_reserved(
        &mut self,
        client: usize,
        scheme: &Scheme,
    ) -> Result<(), Violation> {
        let hints = self.sites.iter().filter(|site| site.links[client].is_hinted).count();
        let state = &mut self.clients[client];
        let is_ready = state.phase == Phase::Waiting && state.pace != Pace::Idle;
        if !is_ready || hints < scheme.quorum() {
            return Ok(());
        }
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
            Request::ReleaseShare { id: Some(id).filter(|_| state.was_queued), token }
        } else if state.was_queued {
            Request::Leave { id, token }
        } else {
            Request::Release(token)
        };
        self.ask(client, request);
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
