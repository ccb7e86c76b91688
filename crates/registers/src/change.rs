//! One change of a register, or several that are made at one time.

use super::replies::{Fate, Promised, fate};
use super::{
    Accepted, Ballot, Draft, Group, InvalidValue, Proposer, RegisterCommand, Replies, Stored,
};
use std::sync::Arc;

/// How many accepts are sent that get too few answers: nodes may promise, and have no room for the
/// value.
const LOST_MAX: u32 = 3;

/// The step of a ballot, as refusals that it is worth, while it is not known whether a change was
/// made.
const URGENT_STEP: u32 = 4;

/// A change of a register, as the module says.
#[derive(Clone, Debug)]
pub struct Change {
    proposer: Proposer,
    state: State,
    /// The ballots with which it was sent, and of which one may be made, now or later.
    ///
    /// All of them count until they are known to be dead, and not only the last: an earlier one may
    /// be on a node that was not asked, where another client finds it and goes on with it.
    sent: Vec<Ballot>,
    /// Is the number of the next ballot a guess?
    is_blind: bool,
    /// How often another client came first.
    refusals: u32,
    /// How many accepts had too few answers.
    lost: u32,
}

#[derive(Clone, Debug)]
enum State {
    /// A prepare is to be sent.
    Prepare,
    Preparing(Ballot),
    /// A draft is to be made, and is being made. `is_new`: a majority has accepted nothing so far.
    Draft {
        draft: Draft,
        is_new: bool,
    },
    Drafting {
        is_new: bool,
    },
    /// An accept is to be sent, and was sent.
    Accept(Proposal),
    Accepting(Proposal),
    Preempted,
    Done(ChangeEnd),
}

/// What is to be accepted.
#[derive(Clone, Debug)]
struct Proposal {
    ballot: Ballot,
    next: Ballot,
    value: Option<Stored>,
    /// How the change ends when a majority has accepted this.
    end: ChangeEnd,
}

impl Change {
    /// Begins a change.
    pub fn new(mut proposer: Proposer) -> Self {
        let state = match proposer.next.take() {
            Some((ballot, value)) => State::Draft {
                draft: Draft::new(ballot, Ok(value)),
                is_new: false,
            },
            None => State::Prepare,
        };
        Self {
            proposer,
            state,
            sent: Vec::new(),
            is_blind: true,
            refusals: 0,
            lost: 0,
        }
    }

    /// Begins the change that creates a register, without a prepare: in one round.
    ///
    /// Nobody else may give the register a value before this change is made, as nobody knows its
    /// name. Others may read it, and change or delete what they find: then their ballot is above
    /// this one. But what another client has made of nothing would be overwritten unseen.
    pub fn create(mut proposer: Proposer) -> Self {
        let draft = proposer.draw(0).map(|ballot| Draft::new(ballot, Err(0)));
        let state = draft.map(|draft| State::Draft {
            draft,
            is_new: true,
        });
        let change = Self::new(proposer);
        Self {
            state: state.unwrap_or(State::Prepare),
            ..change
        }
    }

    /// What is remembered for the next change.
    pub fn into_proposer(self) -> Proposer {
        self.proposer
    }

    pub fn poll(&mut self) -> ChangeStep {
        match std::mem::replace(&mut self.state, State::Prepare) {
            State::Prepare => match self.proposer.draw(self.ballot_step()) {
                Some(ballot) => {
                    self.state = State::Preparing(ballot);
                    ChangeStep::Send(RegisterCommand::Prepare(ballot))
                }
                None => {
                    let end = self.unless_sent(ChangeEnd::Exhausted);
                    self.end(end)
                }
            },
            State::Draft { draft, is_new } => {
                self.state = State::Drafting { is_new };
                ChangeStep::Draft(draft)
            }
            State::Accept(proposal) => {
                let Proposal { ballot, next, .. } = proposal;
                let value = proposal.value.as_ref().map_or(Vec::new(), Stored::to_bytes);
                if proposal.end == ChangeEnd::Committed(ballot) {
                    self.sent.push(ballot);
                }
                // It is promised with this, so to prepare it would say nothing: what is raised in
                // the value afterwards would be lost.
                self.proposer.see(Some(next.number()));
                self.state = State::Accepting(proposal);
                ChangeStep::Send(RegisterCommand::Accept {
                    ballot,
                    next,
                    value: Arc::from(value),
                })
            }
            State::Preempted => {
                self.state = State::Preempted;
                ChangeStep::Preempted(self.refusals)
            }
            State::Done(end) => self.end(end),
            state => unreachable!("an answer is missing: {state:?}"),
        }
    }

    /// How far above all others the next ballot is to be.
    fn ballot_step(&self) -> u32 {
        // A value remembers few changes: what became of one that was sent must be seen soon.
        if self.sent.is_empty() {
            self.refusals
        } else {
            self.refusals.max(URGENT_STEP)
        }
    }

    fn end(&mut self, end: ChangeEnd) -> ChangeStep {
        self.state = State::Done(end.clone());
        ChangeStep::Done(end)
    }

    /// This end, which says that nothing was changed. That is unknown if a change was sent.
    fn unless_sent(&self, end: ChangeEnd) -> ChangeEnd {
        if self.sent.is_empty() {
            end
        } else {
            ChangeEnd::Unknown
        }
    }

    /// Takes the draft back.
    pub fn propose(&mut self, draft: Draft) {
        let State::Drafting { is_new } = self.state else {
            unreachable!("no draft was asked for: {:?}", self.state)
        };
        let ballot = draft.ballot();
        self.state = match (draft.is_unchanged(), ballot.next()) {
            // A majority had accepted nothing when it promised: that is the value.
            (true, _) if is_new && self.sent.is_empty() && !draft.is_shared => {
                State::Done(ChangeEnd::Unchanged(ballot))
            }
            (_, None) => State::Done(self.unless_sent(ChangeEnd::Exhausted)),
            (is_unchanged, Some(next)) => {
                let end = match is_unchanged {
                    true => ChangeEnd::Unchanged(ballot),
                    false => ChangeEnd::Committed(ballot),
                };
                State::Accept(Proposal {
                    ballot,
                    next,
                    value: draft.into_current(),
                    end,
                })
            }
        };
    }

    /// May a ballot of this change still be made? Then the next prepare is urgent: a value
    /// remembers only the last changes.
    pub fn may_be_made(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Begins again after a pause.
    pub fn try_again(&mut self) {
        self.state = State::Prepare;
    }

    /// The nodes have entered another epoch: what was sent counts no more, unless a majority had
    /// answered. Begins again in that epoch.
    pub fn enter(&mut self, group: &Group) {
        self.proposer.enter(group);
        if !matches!(self.state, State::Done(_)) {
            self.state = State::Prepare;
        }
    }

    /// Takes the answers to what was sent.
    pub fn handle(&mut self, replies: &Replies) {
        self.proposer.see(replies.preempted_by());
        if let Some(made) = self.drop_dead_ballots(replies) {
            self.state = State::Done(ChangeEnd::Committed(made));
            return;
        }
        match std::mem::replace(&mut self.state, State::Prepare) {
            State::Preparing(ballot) => self.prepared(ballot, replies),
            State::Accepting(proposal) => self.accepted(proposal, replies),
            state => unreachable!("nothing was asked: {state:?}"),
        }
    }

    fn prepared(&mut self, ballot: Ballot, replies: &Replies) {
        self.state = match (replies.invalid(), replies.promised()) {
            (Some((_, invalid)), _) => State::Done(self.unless_sent(ChangeEnd::Invalid(invalid))),
            (None, Some(promised)) => self.looked(ballot, promised),
            (None, None) => self.missed(replies),
        };
    }

    /// A majority has promised: what it has accepted is current, as far as this ballot knows.
    fn looked(&mut self, ballot: Ballot, promised: Promised) -> State {
        self.is_blind = false;
        let accepted = promised.accepted.as_ref();
        let floor = promised.floor;
        let made = self.included(accepted, floor);
        if let (Some(made), Some(next)) = (made, ballot.next()) {
            // It is made when a majority has accepted a value that has it.
            return State::Accept(Proposal {
                ballot,
                next,
                value: promised.accepted.and_then(|accepted| accepted.value),
                end: ChangeEnd::Committed(made),
            });
        }
        for sent in &self.sent {
            if fate(*sent, accepted, floor) != Fate::NotIncluded {
                return State::Done(ChangeEnd::Unknown);
            }
        }
        let is_new = promised.accepted.is_none();
        let base = match promised.accepted {
            Some(Accepted {
                value: Some(value), ..
            }) => Ok(value),
            Some(deleted) => Err(deleted.ballot.number().max(floor)),
            None => Err(floor),
        };
        State::Draft {
            draft: Draft::new(ballot, base),
            is_new,
        }
    }

    fn accepted(&mut self, proposal: Proposal, replies: &Replies) {
        if replies.are_done() {
            // Where a register was deleted, the floor may have reached what was promised.
            self.proposer.next = proposal.value.map(|value| (proposal.next, value));
            self.state = State::Done(proposal.end);
            return;
        }
        if replies.are_refusals() {
            // It is on no node, and none will accept it any more.
            self.sent.retain(|sent| *sent != proposal.ballot);
        }
        // The next prepare says what became of it: at once, since a value remembers few changes.
        let is_refused = replies.preempted_by().is_some();
        let is_contended = is_refused && !self.could_not_know(replies);
        self.refusals += u32::from(is_contended);
        self.lost += u32::from(!replies.are_enough());
        self.state = if self.lost == LOST_MAX {
            State::Done(ChangeEnd::NoQuorum {
                may_have_happened: !self.sent.is_empty(),
            })
        } else if is_contended && self.sent.is_empty() {
            State::Preempted
        } else {
            State::Prepare
        };
    }

    /// Forgets the ballots that are dead, as far as these answers tell: what a majority has
    /// accepted is current, and everything later descends from it. Returns the one that was made.
    fn drop_dead_ballots(&mut self, replies: &Replies) -> Option<Ballot> {
        let chosen = replies.chosen().filter(|it| it.value.is_some())?;
        let made = self.included(Some(chosen), 0);
        self.sent.retain(|sent| {
            let is_older = sent.number() < chosen.ballot.number();
            let is_dead = is_older && fate(*sent, Some(chosen), 0) == Fate::NotIncluded;
            !is_dead
        });
        made
    }

    /// The first of the ballots that were sent whose change is in what was accepted.
    fn included(&self, accepted: Option<&Accepted>, floor: u64) -> Option<Ballot> {
        let mut sent = self.sent.iter().copied();
        sent.find(|sent| fate(*sent, accepted, floor) == Fate::Included)
    }

    /// The round was not won.
    fn missed(&mut self, replies: &Replies) -> State {
        if !replies.are_enough() {
            let may_have_happened = !self.sent.is_empty();
            return State::Done(ChangeEnd::NoQuorum { may_have_happened });
        }
        if self.could_not_know(replies) {
            return State::Prepare;
        }
        self.refusals += 1;
        State::Preempted
    }

    /// Was the number of the ballot a guess, and is nobody else about to make a change? Then its
    /// refusal is not contention. Whoever prepares meanwhile is not to be preempted at once: a
    /// distant client would never come to its accept.
    fn could_not_know(&mut self, replies: &Replies) -> bool {
        std::mem::take(&mut self.is_blind) && replies.are_quiet()
    }
}

// What a change asks for, and how it ends.

/// The next step of a change.
#[derive(Debug)]
pub enum ChangeStep {
    /// Send this to all nodes, and [handle](Change::handle) the answers.
    Send(RegisterCommand),
    /// Make the changes, and give the draft [back](Change::propose). This may come several
    /// times; what was made of an earlier draft then has no effect.
    Draft(Draft),
    /// Another client came first; this says how often that has happened. After a random pause,
    /// [try again](Change::try_again).
    Preempted(u32),
    /// It is over.
    Done(ChangeEnd),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeEnd {
    /// A majority has accepted the draft with this ballot.
    Committed(Ballot),
    /// There was nothing to change in the draft with this ballot, and it is current.
    Unchanged(Ballot),
    /// Too few nodes answered.
    NoQuorum {
        /// Was a change sent? Then it may be made, now or later.
        may_have_happened: bool,
    },
    /// The change was made or was not: too much has happened since.
    Unknown,
    /// A node has a value of another format, and no majority has told of others.
    Invalid(InvalidValue),
    /// There is no higher number for a ballot.
    Exhausted,
}

#[cfg(test)]
mod tests;
