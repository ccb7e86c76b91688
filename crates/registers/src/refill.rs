//! A node that has forgotten what it promised gets the state of the others, and its vote.
//!
//! ```text
//!  the nodes that vote            the node that has forgotten
//!                                  joins: draws a number, has no vote
//!  decide the next epoch
//!  enter it, one after another
//!        │                         is emptied, and joins again
//!        │ list, copy ──────────▶  gets each register and the floor
//!                                  enters: has a vote
//! ```
//!
//! It joins again, with another number, so that what empties it does nothing if it arrives once
//! more when registers were copied.
//!
//! The votes that the node gave before it forgot are still on their way. In the new epoch they
//! count no more: a majority of the old one has, besides that node, members that had entered the
//! new one when they were copied, or never vote in the old one again. So whatever a majority had
//! accepted is among what is copied, and whatever was not can be accepted in the new epoch only.
//!
//! What this says is what happens after the others have entered the new epoch.

use super::{Group, InvalidValue, Member, NodeMark, RegisterCommand, RegisterReply, Replies};
use crate::{MarkStep, Stored};
use redlatch_protocol::engine::{Node, NodeSet, quorum};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// The name of the register in which the group decides its next epoch: no other one is empty.
pub const GROUP_REGISTER: &[u8] = b"";

/// The next step of a refill.
#[derive(Clone, Debug)]
pub enum RefillStep {
    /// List the names of the registers that this node has keys of, and give them
    /// [back](Refill::listed).
    List(Node),
    /// Send this to these nodes, and [handle](Refill::handle) the answers.
    Ask {
        nodes: NodeSet,
        /// How their marks begin.
        mark: Arc<[u8]>,
        /// The name of the register.
        name: Arc<[u8]>,
        /// What is asked.
        command: RegisterCommand,
    },
    /// It is over.
    Done(RefillEnd),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefillEnd {
    /// The node is a member, and votes.
    Entered,
    /// Too few members could be read to their end.
    NoQuorum,
    /// The node has not answered, was started again or emptied, or another refill of it has begun.
    Lost,
    /// A member has a value of another format.
    Invalid(InvalidValue),
}

/// A refill of one node.
#[derive(Clone, Debug)]
pub struct Refill {
    /// The group, in the epoch that the others have entered.
    group: Group,
    nodes: usize,
    /// The node, with the mark of one that is being made a member.
    target: NodeMark,
    joining: Arc<[u8]>,
    member: Member,
    /// The members, with the marks of the new epoch.
    sources: Vec<NodeMark>,
    /// How many of them were listed to the end.
    listed: usize,
    names: BTreeSet<Arc<[u8]>>,
    /// The highest floor of those that were read.
    floor: u64,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    /// The node is listed, and what it has is removed.
    ListTarget,
    Wipe(VecDeque<Arc<[u8]>>),
    JoinAgain,
    /// The source with this number is listed, and its mark is compared.
    List(usize),
    Compare(usize, BTreeSet<Arc<[u8]>>),
    /// The first of these registers is copied, and installed. The register of the group is the
    /// last: with it, the node gets the floor.
    Copy(VecDeque<Arc<[u8]>>),
    Install(VecDeque<Arc<[u8]>>, RegisterCommand),
    Enter,
    Done(RefillEnd),
}

impl Refill {
    /// Begins a refill of `target`, which is being made `member`. `sources` are the members, with
    /// the marks that they have in that member's epoch. `None` if the node is not being made a
    /// member.
    pub fn new(target: NodeMark, member: Member, sources: Vec<NodeMark>) -> Option<Self> {
        let joining = target.joining()?.beginning();
        let group = member.epoch.group.clone();
        let nodes = member.epoch.members.len();
        Some(Self {
            group,
            nodes,
            target,
            joining,
            member,
            sources,
            listed: 0,
            names: BTreeSet::from([Arc::from(GROUP_REGISTER)]),
            floor: 0,
            state: State::ListTarget,
        })
    }

    pub fn poll(&mut self) -> RefillStep {
        match &self.state {
            State::ListTarget => RefillStep::List(self.target.node),
            State::Wipe(names) => {
                let nothing = RegisterCommand::Install {
                    state: None,
                    floor: 0,
                };
                self.ask_target(&names[0], nothing)
            }
            State::JoinAgain => {
                let seen = self.target.mark.clone().unwrap_or_default();
                let step = MarkStep::Join { seen };
                self.ask_target(GROUP_REGISTER, RegisterCommand::Mark(step))
            }
            State::List(source) => match self.sources.get(*source) {
                Some(source) if self.listed < quorum(self.nodes) => RefillStep::List(source.node),
                _ if self.listed < quorum(self.nodes) => self.end(RefillEnd::NoQuorum),
                _ => {
                    // From the last to the first in the order of the names: the empty one is last.
                    self.state = State::Copy(self.names.iter().rev().cloned().collect());
                    self.poll()
                }
            },
            State::Compare(source, _) => {
                let nodes = NodeSet::from_iter([self.sources[*source].node]);
                self.ask(nodes, GROUP_REGISTER, RegisterCommand::Mark(MarkStep::Look))
            }
            State::Copy(names) => match names.front() {
                Some(name) => {
                    let nodes = self.sources.iter().map(|source| source.node).collect();
                    self.ask(nodes, name, RegisterCommand::Copy)
                }
                None => {
                    self.state = State::Enter;
                    self.poll()
                }
            },
            State::Install(names, command) => self.ask_target(&names[0], command.clone()),
            State::Enter => {
                let seen = self.target.mark.clone().unwrap_or_default();
                let step = MarkStep::Enter {
                    seen,
                    new: self.member.to_bytes(),
                };
                self.ask_target(GROUP_REGISTER, RegisterCommand::Mark(step))
            }
            State::Done(end) => RefillStep::Done(*end),
        }
    }

    fn ask(&self, nodes: NodeSet, name: &[u8], command: RegisterCommand) -> RefillStep {
        RefillStep::Ask {
            nodes,
            mark: self.group.to_bytes(),
            name: Arc::from(name),
            command,
        }
    }

    fn ask_target(&self, name: &[u8], command: RegisterCommand) -> RefillStep {
        let nodes = NodeSet::from_iter([self.target.node]);
        let mark = Arc::clone(&self.joining);
        RefillStep::Ask {
            nodes,
            mark,
            name: Arc::from(name),
            command,
        }
    }

    fn end(&mut self, end: RefillEnd) -> RefillStep {
        self.state = State::Done(end);
        RefillStep::Done(end)
    }

    /// Takes the names of the registers of the node that was to be listed; `None` if it was not
    /// read to the end.
    pub fn listed(&mut self, names: Option<Vec<Arc<[u8]>>>) {
        self.state = match (&self.state, names) {
            (State::ListTarget, Some(names)) => {
                let mut names = VecDeque::from(names);
                names.push_back(Arc::from(GROUP_REGISTER));
                State::Wipe(names)
            }
            (State::ListTarget, None) => State::Done(RefillEnd::Lost),
            (State::List(source), Some(names)) => {
                State::Compare(*source, names.into_iter().collect())
            }
            (State::List(source), None) => State::List(source + 1),
            (state, _) => unreachable!("nothing is listed: {state:?}"),
        };
    }

    /// Takes the answers to what was sent.
    pub fn handle(&mut self, replies: &Replies) {
        let is_done = self.of_target(replies) == Some(&RegisterReply::Done);
        self.state = match std::mem::replace(&mut self.state, State::Enter) {
            State::Wipe(mut names) if is_done => {
                names.pop_front();
                if names.is_empty() {
                    State::JoinAgain
                } else {
                    State::Wipe(names)
                }
            }
            State::JoinAgain => self.joined(replies),
            State::Compare(source, names) => {
                // The same run of its server has answered all the time, in this epoch.
                if is_as_before(&self.sources[source], replies) {
                    self.names.extend(names);
                    self.listed += 1;
                }
                State::List(source + 1)
            }
            State::Copy(names) => self.copied(names, replies),
            State::Install(mut names, _) if is_done => {
                names.pop_front();
                State::Copy(names)
            }
            State::Enter => match self.of_target(replies) {
                Some(RegisterReply::Mark {
                    mark: Some(mark), ..
                }) if **mark == *self.member.to_bytes() => State::Done(RefillEnd::Entered),
                _ => State::Done(RefillEnd::Lost),
            },
            _ => State::Done(RefillEnd::Lost),
        };
    }

    fn of_target<'a>(&self, replies: &'a Replies) -> Option<&'a RegisterReply> {
        replies.0.get(self.target.node.index())?.as_ref()
    }

    /// The node has drawn another number, unless it was started again or emptied.
    fn joined(&mut self, replies: &Replies) -> State {
        let Some(RegisterReply::Mark { mark, run_id }) = self.of_target(replies).cloned() else {
            return State::Done(RefillEnd::Lost);
        };
        let now = NodeMark {
            node: self.target.node,
            mark,
            run_id,
        };
        match now.joining().filter(|_| now.run_id == self.target.run_id) {
            Some(joining) if now.mark != self.target.mark => {
                self.joining = joining.beginning();
                self.target = now;
                State::List(0)
            }
            _ => State::Done(RefillEnd::Lost),
        }
    }

    /// The highest that any node of a majority has accepted, each of which is in the new epoch.
    fn copied(&mut self, mut names: VecDeque<Arc<[u8]>>, replies: &Replies) -> State {
        if let Some((_, invalid)) = replies.invalid() {
            return State::Done(RefillEnd::Invalid(invalid));
        }
        let Some(promised) = replies.promised() else {
            return State::Done(RefillEnd::NoQuorum);
        };
        self.floor = self.floor.max(promised.floor);
        let state = promised.accepted.map(|accepted| {
            let value = accepted.value.as_ref().map_or(Vec::new(), Stored::to_bytes);
            (accepted.ballot, Arc::from(value))
        });
        if state.is_none() && !names[0].is_empty() {
            names.pop_front();
            return State::Copy(names);
        }
        let floor = self.floor;
        State::Install(names, RegisterCommand::Install { state, floor })
    }
}

fn is_as_before(source: &NodeMark, replies: &Replies) -> bool {
    match replies.0.get(source.node.index()) {
        Some(Some(RegisterReply::Mark { mark, run_id })) => {
            *mark == source.mark && *run_id == source.run_id
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
