//! What a client does next, by the answers of a majority.

use crate::client::{Answer, MISSES_MAX, Phase};
use crate::node::{Place, Request};
use crate::pace::Pace;
use crate::scheme::{Mistake, Scheme};
use crate::violation::Violation;
use crate::world::{Order, World};

impl World {
    pub(crate) fn begin(&mut self, client: usize, scheme: &Scheme) {
        let joined =
            |index: &usize| self.clients[*index].has_joined && self.is_firm(*index, scheme);
        let before = (0..self.clients.len()).filter(joined).map(|index| 1 << index).sum();
        let state = &mut self.clients[client];
        state.phase = Phase::Trying;
        state.calls_left -= 1;
        state.token.attempt += 1;
        state.id = state.token;
        (state.number, state.was_queued, state.before) = (0, false, before);
        (state.misses, state.is_out, state.place) = (0, false, 0);
        let token = state.token;
        self.forget_hints(client);
        self.sites.iter_mut().for_each(|site| site.links[client].is_firm = false);
        self.ask(client, Request::Try(token));
    }

    /// Decides as far as the answers go.
    pub(crate) fn decide(&mut self, client: usize, scheme: &Scheme) -> Result<(), Violation> {
        let quorum = scheme.quorum();
        let answers: Vec<Answer> =
            self.sites.iter().map(|site| site.links[client].answer).collect();
        let count = |wanted: Answer| answers.iter().filter(|answer| **answer == wanted).count();
        let (yes, pending) = (count(Answer::Yes), count(Answer::Pending));
        let places: Vec<Place> = answers.iter().filter_map(|answer| answer.place()).collect();
        let state = &self.clients[client];
        match state.phase {
            // Its answers come too late.
            Phase::Trying | Phase::Claiming if state.pace == Pace::Late => {}
            Phase::Trying | Phase::Claiming if yes >= quorum => self.grant(client, scheme)?,
            Phase::Trying | Phase::Claiming if yes + pending < quorum => self.fail(client, scheme),
            Phase::Joining if places.len() >= quorum => {
                let numbers = || places.iter().map(|place| place.number);
                let largest = numbers().max().unwrap_or(0);
                let takes_first = scheme.makes(Mistake::NumberOfOneNode);
                self.clients[client].number = if takes_first { places[0].number } else { largest };
                if numbers().all(|number| number == largest) {
                    self.placed(client, &places, scheme);
                } else {
                    self.look(client, scheme);
                }
            }
            // It asks again after a pause.
            Phase::Joining if places.len() + pending < quorum && state.pace == Pace::Minority => {
                self.wait(client, false);
            }
            Phase::Joining if places.len() + pending < quorum => self.join(client, scheme),
            Phase::Looking if places.len() >= quorum => self.placed(client, &places, scheme),
            Phase::Looking if places.len() + pending < quorum => self.wait(client, false),
            _ => {}
        }
        self.claim_if_reserved(client, scheme)
    }

    /// A majority has told the waiter its place.
    fn placed(&mut self, client: usize, places: &[Place], scheme: &Scheme) {
        let is_out = places.iter().filter(|place| place.was_out).count() >= scheme.quorum();
        let state = &mut self.clients[client];
        // Who is late itself is out twice for one miss: when it is told, and when it comes back.
        let is_miss = is_out && !state.is_out;
        state.misses += u8::from(is_miss);
        state.is_out = if scheme.makes(Mistake::MissesInRowCountOnce) { is_out } else { is_miss };
        state.place = places.iter().map(|place| place.before).max().unwrap_or(0);
        if state.misses >= MISSES_MAX {
            return self.begin_again(client, scheme);
        }
        self.wait(client, true);
    }

    /// Asks for a number, and withdraws the try.
    pub(crate) fn join(&mut self, client: usize, scheme: &Scheme) {
        let state = &mut self.clients[client];
        (state.phase, state.was_queued) = (Phase::Joining, true);
        let withdraw = Some(state.token).filter(|_| !scheme.makes(Mistake::TryStays));
        let request = Request::Queue { id: state.id, number: 0, withdraw };
        self.ask(client, request);
    }

    /// A waiter looks of its own accord.
    pub(crate) fn look_again(&mut self, client: usize, scheme: &Scheme) {
        self.look(client, scheme);
    }

    /// Keeps or takes back its place, and withdraws the latest attempt.
    pub(crate) fn look(&mut self, client: usize, scheme: &Scheme) {
        let state = &mut self.clients[client];
        state.phase = Phase::Looking;
        let stays = match state.token == state.id {
            true => scheme.makes(Mistake::TryStays),
            false => scheme.makes(Mistake::ClaimStays),
        };
        let withdraw = Some(state.token).filter(|_| !stays);
        let request = Request::Queue { id: state.id, number: state.number, withdraw };
        self.sites.iter_mut().for_each(|site| site.links[client].asks = None);
        self.ask(client, request);
    }

    /// Claims the lock if a majority has reserved it.
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
        let request = Request::Turn { id: state.id, token: state.token };
        if scheme.makes(Mistake::ReservationIsGrant) {
            return self.grant(client, scheme);
        }
        self.ask(client, request);
        Ok(())
    }

    fn grant(&mut self, client: usize, scheme: &Scheme) -> Result<(), Violation> {
        let is_claim = self.clients[client].was_queued;
        self.clients[client].phase = Phase::Holding;
        self.leave_order(client);
        if self.clients.iter().filter(|client| client.phase == Phase::Holding).count() > 1 {
            return Err(Violation::TwoHolders);
        }
        let is_ordered = match self.order {
            Order::Strict => true,
            Order::OfClaims => is_claim,
            Order::None => false,
        };
        let before = self.clients[client].before;
        let is_overtaken = |other: usize| before & 1 << other != 0 && self.is_firm(other, scheme);
        match is_ordered && (0..self.clients.len()).any(is_overtaken) {
            true => Err(Violation::Overtaken),
            false => Ok(()),
        }
    }

    /// Nobody can overtake this client from now on.
    pub(crate) fn leave_order(&mut self, client: usize) {
        self.clients[client].has_joined = false;
        for other in &mut self.clients {
            other.before &= !(1 << client);
        }
    }

    /// A client releases, leaves, or gives up.
    pub(crate) fn end_call(&mut self, client: usize, scheme: &Scheme) {
        self.leave_order(client);
        self.forget_hints(client);
        let state = &mut self.clients[client];
        let was_holding = matches!(state.phase, Phase::Holding | Phase::Expired);
        (state.phase, state.before) = (Phase::Idle, 0);
        let (id, token) = (state.id, state.token);
        let request = if scheme.is_plain(client) {
            Request::Delete(token)
        } else if scheme.lingers && was_holding {
            Request::Linger { id: Some(id).filter(|_| state.was_queued), token }
        } else if state.was_queued {
            Request::Leave { id, token }
        } else {
            Request::Release(token)
        };
        self.ask(client, request);
    }
}
