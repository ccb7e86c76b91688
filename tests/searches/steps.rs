//! What a client does next, by the answers of a majority.

use crate::client::{Answer, MISSES_MAX, Phase};
use crate::mistake::Mistake;
use crate::node::{Place, Request, Slot};
use crate::pace::Pace;
use crate::scheme::Scheme;
use crate::slots::{chosen_slot, free_slots};
use crate::violation::Violation;
use crate::want::Want;
use crate::world::{Command, World};

impl World {
    pub(crate) fn begin(&mut self, client: usize, scheme: &Scheme) {
        let joined =
            |index: &usize| self.clients[*index].has_joined && self.is_firm(*index, scheme);
        let before = (0..self.clients.len())
            .filter(joined)
            .map(|index| 1 << index)
            .sum();
        let state = &mut self.clients[client];
        state.want = scheme.want(client, scheme.calls - state.calls_left);
        (state.awaited, state.is_patient) = (state.want, true);
        state.phase = Phase::Trying;
        state.calls_left -= 1;
        state.token.attempt += 1;
        state.id = state.token;
        (state.number, state.was_queued, state.before) = (0, false, before);
        (state.misses, state.is_out, state.place) = (0, false, 0);
        let token = state.token;
        let want = state.want;
        self.forget_hints(client);
        self.sites
            .iter_mut()
            .for_each(|site| site.links[client].is_firm = false);
        self.ask(client, Request::Try { token, want });
    }

    /// Decides as far as the answers go.
    pub(crate) fn decide(&mut self, client: usize, scheme: &Scheme) -> Result<(), Violation> {
        let quorum = scheme.quorum();
        let answers: Vec<Answer> = self
            .sites
            .iter()
            .map(|site| site.links[client].answer)
            .collect();
        let pending = answers
            .iter()
            .filter(|answer| **answer == Answer::Pending)
            .count();
        let (yes, slot) = count_votes(&answers, scheme);
        let places: Vec<Place> = answers.iter().filter_map(|answer| answer.place()).collect();
        match self.clients[client].phase {
            // Its answers come too late.
            Phase::Trying | Phase::Claiming if self.clients[client].pace == Pace::Late => {}
            Phase::Trying | Phase::Claiming
                if yes >= quorum && (pending == 0 || !self.hears_all(client)) =>
            {
                self.clients[client].slot = slot;
                self.grant(client, scheme)?;
            }
            Phase::Trying | Phase::Claiming if yes + pending < quorum => self.fail(client, scheme),
            Phase::Joining if places.len() >= quorum => {
                let numbers = || places.iter().map(|place| place.number);
                let largest = numbers().max().unwrap_or(0);
                let takes_first = scheme.makes(Mistake::NumberOfOneNode);
                self.clients[client].number = if takes_first {
                    places[0].number
                } else {
                    largest
                };
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
        self.restore(client, scheme);
        self.claim_if_reserved(client, scheme)
    }

    /// A majority has told the waiter its place.
    fn placed(&mut self, client: usize, places: &[Place], scheme: &Scheme) {
        let is_out = places.iter().filter(|place| place.was_out).count() >= scheme.quorum();
        let state = &mut self.clients[client];
        // Who is late itself is out twice for one miss: when it is told, and when it comes back.
        let is_miss = is_out && !state.is_out;
        state.misses += u8::from(is_miss);
        state.is_out = if scheme.makes(Mistake::MissesInRowCountOnce) {
            is_out
        } else {
            is_miss
        };
        state.place = places.iter().map(|place| place.before).max().unwrap_or(0);
        state.free = free_slots(places, scheme);
        if state.misses >= MISSES_MAX {
            return self.begin_again(client, scheme);
        }
        let state = &self.clients[client];
        if state.awaited != state.want {
            return self.wait(client, false);
        }
        if state.want.is_set() && !state.is_patient && self.lets_others_pass(client, places, scheme)
        {
            return;
        }
        self.wait(client, true);
    }

    /// A set leaves the queues of what it could have, and waits for the lock that it lacks alone.
    fn lets_others_pass(&mut self, client: usize, places: &[Place], scheme: &Scheme) -> bool {
        let mut lacking: Vec<u8> = places.iter().filter_map(|place| place.lacks).collect();
        lacking.sort_unstable();
        let are_mine = places.iter().filter(|place| place.is_mine).count() >= scheme.quorum();
        let Some(index) = lacking.get(lacking.len() / 2).filter(|_| !are_mine) else {
            return false;
        };
        let [alone, other] = match index {
            0 => [Want::Exclusive, Want::Second],
            _ => [Want::Second, Want::Exclusive],
        };
        self.leave_order(client);
        let state = &mut self.clients[client];
        state.awaited = alone;
        let round = state.round;
        let id = Some(state.id);
        let token = state.token;
        let request = Request::Release {
            id,
            token,
            want: other,
            keeps: false,
        };
        for site in &mut self.sites {
            site.links[client].commands.push(Command { round, request });
        }
        self.forget_hints(client);
        self.look(client, scheme);
        true
    }

    /// The lock that the set lacked is reserved for it.
    fn wait_for_all(&mut self, client: usize, scheme: &Scheme) {
        let state = &mut self.clients[client];
        (state.awaited, state.is_patient, state.is_out) = (state.want, true, true);
        self.forget_hints(client);
        self.look(client, scheme);
    }

    /// Does the client wait for the votes of all nodes, to learn which of them gave another slot?
    fn hears_all(&self, client: usize) -> bool {
        matches!(self.clients[client].want, Want::Permit(_))
    }

    /// A holder restores its token or its share on nodes that refused to extend it, and moves its
    /// permit where it was given another slot.
    fn restore(&mut self, client: usize, scheme: &Scheme) {
        let state = &self.clients[client];
        if state.phase != Phase::Holding || !scheme.extends {
            return;
        }
        let token = state.token;
        let slot = state.slot;
        let round = state.round;
        let want = state.want;
        let id = Some(state.id).filter(|_| {
            want.is_share() && state.was_queued && !scheme.makes(Mistake::RestoreLeavesWaiter)
        });
        for link in self.sites.iter_mut().map(|site| &mut site.links[client]) {
            let is_missing = match link.answer {
                Answer::Yes(given) => given != slot,
                Answer::No => true,
                _ => false,
            };
            if is_missing && !link.restores {
                link.restores = true;
                let id = id.filter(|_| link.answer == Answer::No);
                let request = Request::Restore {
                    id,
                    token,
                    want,
                    slot,
                };
                link.commands.push(Command { round, request });
            }
        }
    }

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
        let stays = match state.token == state.id {
            true => scheme.makes(Mistake::TryStays),
            false => scheme.makes(Mistake::ClaimStays),
        };
        let withdraw = Some(state.token).filter(|_| !stays);
        let id = state.id;
        let number = state.number;
        let want = state.awaited;
        self.sites
            .iter_mut()
            .for_each(|site| site.links[client].asks = None);
        self.ask(
            client,
            Request::Queue {
                id,
                number,
                withdraw,
                want,
            },
        );
    }

    /// A waiter looks, or a holder renews.
    pub(crate) fn look_again(&mut self, client: usize, scheme: &Scheme) {
        let state = &self.clients[client];
        if state.phase == Phase::Holding {
            let token = state.token;
            let want = state.want;
            let slot = state.slot;
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
        let hints = self
            .sites
            .iter()
            .filter(|site| site.links[client].is_hinted)
            .count();
        let state = &mut self.clients[client];
        let is_ready = state.phase == Phase::Waiting && state.pace != Pace::Idle;
        if !is_ready || hints < scheme.quorum() {
            return Ok(());
        }
        if state.awaited != state.want && !scheme.makes(Mistake::TurnForOneOfSet) {
            self.wait_for_all(client, scheme);
            return Ok(());
        }
        state.token.attempt += 1;
        state.phase = Phase::Claiming;
        let id = state.id;
        let token = state.token;
        let want = state.awaited;
        if scheme.makes(Mistake::ReservationIsGrant) {
            return self.grant(client, scheme);
        }
        let free = std::mem::take(&mut state.free);
        let slot = chosen_slot(id, token, free);
        self.ask(
            client,
            Request::Turn {
                id,
                token,
                want,
                slot,
            },
        );
        Ok(())
    }

    /// A client releases, leaves, or gives up.
    pub(crate) fn end_call(&mut self, client: usize, scheme: &Scheme) {
        self.leave_order(client);
        self.forget_hints(client);
        let state = &mut self.clients[client];
        let was_holding = matches!(state.phase, Phase::Holding | Phase::Expired);
        (state.phase, state.before, state.slot) = (Phase::Idle, 0, None);
        let id = state.id;
        let token = state.token;
        let want = state.want;
        let request = if scheme.is_plain(client) {
            Request::Delete(token)
        } else {
            let keeps = scheme.keeps && was_holding;
            Request::Release {
                id: Some(id).filter(|_| state.was_queued),
                token,
                want,
                keeps,
            }
        };
        self.ask(client, request);
    }
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
