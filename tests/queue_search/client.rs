//! A client, and how it decides by the answers of a majority.
//!
//! Idle -> Trying -> Joining -> (Looking) -> Waiting <-> Looking, Waiting -> Claiming -> Holding,
//! or Claiming -> Looking.

use crate::node::{Outcome, Request};
use crate::scheme::{Mistake, Scheme};
use crate::token::Token;
use crate::violation::Violation;
use crate::world::{Link, Order, Reply, World};

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Idle,
    /// The first, plain try.
    Trying,
    /// It asked for a number.
    Joining,
    /// It told the nodes its number.
    Looking,
    /// It waits for pushes.
    Waiting,
    Claiming,
    Holding,
    /// The validity of its lock has ended, and it has not released it yet.
    Expired,
    Dead,
}

impl Phase {
    /// May it look of its own accord?
    pub(crate) fn may_look(self) -> bool {
        self == Self::Waiting
    }

    pub(crate) fn is_queued(self) -> bool {
        matches!(self, Self::Joining | Self::Looking | Self::Waiting | Self::Claiming)
    }
}

/// The answer of a node in the present round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Answer {
    #[default]
    Pending,
    /// It was reached and carries no vote, or it was not reached.
    NoVote,
    No,
    Yes,
    Number(u8),
}

/// A client, which wants the lock some times.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) phase: Phase,
    pub(crate) calls_left: u8,
    /// The token of the first try of this call, by which the waiter is known.
    pub(crate) id: Token,
    /// The token of the latest attempt.
    pub(crate) token: Token,
    /// The waiter's number; zero if it has none.
    pub(crate) number: u8,
    pub(crate) round: u16,
    /// Has it been in the queue, so that it must be removed from it?
    pub(crate) was_queued: bool,
    /// Has a majority its number?
    pub(crate) has_joined: bool,
    /// The clients that had joined when this one began, as bits.
    pub(crate) before: u8,
}

impl Client {
    pub(crate) fn new(index: usize, scheme: &Scheme) -> Self {
        let token = Token { client: index as u8, attempt: 0 };
        Self {
            phase: Phase::Idle,
            calls_left: scheme.calls,
            id: token,
            token,
            number: 0,
            round: 0,
            was_queued: false,
            has_joined: false,
            before: 0,
        }
    }

    /// Remembers what a reply says.
    pub(crate) fn note(&self, link: &mut Link, reply: Reply, scheme: &Scheme) {
        let is_trusting = scheme.makes(Mistake::QuarantineReserves);
        let (command, outcome, counts) = match reply {
            Reply::Outcome { command, outcome, counts } => (command, outcome, counts),
            Reply::Push { id, counts } => {
                let concerns_me = id == self.id && self.phase.is_queued();
                link.is_hinted |= concerns_me && (counts || is_trusting);
                return;
            }
            Reply::Unreachable(command) => {
                if command.round == self.round {
                    link.answer = Answer::NoVote;
                }
                return;
            }
        };
        // Also the answer of an earlier round says for whom the key is reserved.
        if let (Outcome::Place { is_mine, .. }, Request::Queue { id, .. }) =
            (outcome, command.request)
        {
            if id == self.id {
                link.is_hinted = is_mine && (counts || is_trusting);
            }
        }
        if command.round == self.round {
            link.answer = match outcome {
                Outcome::Granted if counts => Answer::Yes,
                Outcome::Granted | Outcome::Removed => Answer::NoVote,
                Outcome::Refused => Answer::No,
                Outcome::Place { number, .. } => Answer::Number(number),
            };
        }
    }
}

impl World {
    pub(crate) fn begin(&mut self, client: usize, _: &Scheme) {
        let joined = |index: &usize| self.clients[*index].has_joined;
        let before = (0..self.clients.len()).filter(joined).map(|index| 1 << index).sum();
        let state = &mut self.clients[client];
        state.phase = Phase::Trying;
        state.calls_left -= 1;
        state.token.attempt += 1;
        state.id = state.token;
        (state.number, state.was_queued, state.before) = (0, false, before);
        let token = state.token;
        self.forget_hints(client);
        self.ask(client, Request::Try(token));
    }

    /// Decides as far as the answers go.
    pub(crate) fn decide(&mut self, client: usize, scheme: &Scheme) -> Result<(), Violation> {
        let (quorum, answers) = (scheme.quorum(), self.answers(client));
        let count = |wanted: Answer| answers.iter().filter(|answer| **answer == wanted).count();
        let (yes, pending) = (count(Answer::Yes), count(Answer::Pending));
        let numbers: Vec<u8> = answers.iter().filter_map(|answer| answer.number()).collect();
        match self.clients[client].phase {
            Phase::Trying | Phase::Claiming if yes >= quorum => self.grant(client)?,
            Phase::Trying | Phase::Claiming if yes + pending < quorum => self.fail(client, scheme),
            Phase::Joining if numbers.len() >= quorum => {
                let largest = numbers.iter().copied().max().unwrap_or(0);
                let takes_first = scheme.makes(Mistake::NumberOfOneNode);
                self.clients[client].number = if takes_first { numbers[0] } else { largest };
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
        self.claim_if_reserved(client, scheme)
    }

    fn answers(&self, client: usize) -> Vec<Answer> {
        self.sites.iter().map(|site| site.links[client].answer).collect()
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
        self.ask(client, request);
    }

    pub(crate) fn wait(&mut self, client: usize, has_joined: bool) {
        self.clients[client].phase = Phase::Waiting;
        self.clients[client].has_joined |= has_joined;
    }

    /// Claims the lock if a majority has reserved it.
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
        let request = Request::Turn { id: state.id, token: state.token };
        if scheme.makes(Mistake::ReservationIsGrant) {
            return self.grant(client);
        }
        self.ask(client, request);
        Ok(())
    }

    fn grant(&mut self, client: usize) -> Result<(), Violation> {
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
        match self.clients[client].before != 0 && is_ordered {
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
        (state.phase, state.before) = (Phase::Idle, 0);
        let (id, token) = (state.id, state.token);
        let request = if scheme.is_plain(client) {
            Request::Delete(token)
        } else if state.was_queued {
            Request::Leave { id, token }
        } else {
            Request::Release(token)
        };
        if request.is_removal() {
            self.ask(client, request);
        }
    }

    fn forget_hints(&mut self, client: usize) {
        self.sites.iter_mut().for_each(|site| site.links[client].is_hinted = false);
    }
}

impl Answer {
    fn number(self) -> Option<u8> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }
}
