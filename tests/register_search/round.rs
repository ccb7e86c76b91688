//! What an actor has asked and waits for, and what was ever sent.

use crate::server::{Answer, Command};

/// The commands whose answers an actor waits for, by the nodes, and those that were given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Round {
    pub(crate) asked: Vec<Option<Command>>,
    pub(crate) answers: Vec<Option<Answer>>,
    /// Does the answer of each node count, as its mark does?
    pub(crate) is_whole: bool,
}

impl Round {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            asked: vec![None; nodes],
            answers: vec![None; nodes],
            is_whole: false,
        }
    }

    /// Is this what the node is to carry out next for it?
    pub(crate) fn awaits(&self, command: Command, node: usize) -> bool {
        self.asked[node] == Some(command) && self.answers[node].is_none()
    }

    /// The nodes that have not carried out what they were asked.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = usize> + '_ {
        let awaits = |node: &usize| self.asked[*node].is_some() && self.answers[*node].is_none();
        (0..self.answers.len()).filter(awaits)
    }

    /// The nodes that have, as bits.
    pub(crate) fn answered(&self) -> u8 {
        let bit = |(node, answer): (usize, &Option<Answer>)| u8::from(answer.is_some()) << node;
        self.answers.iter().enumerate().map(bit).sum()
    }

    /// Have as many answered as a majority is, or all that were asked if those count?
    pub(crate) fn is_decided(&self) -> bool {
        let asked = self.asked.iter().flatten().count();
        let answered = self.answers.iter().flatten().count();
        answered
            >= if self.is_whole {
                asked
            } else {
                asked.min(self.answers.len() / 2 + 1)
            }
    }
}

/// What was ever sent and can change a node, and to which nodes, as bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Sent(Vec<(Command, u8)>);

impl Sent {
    pub(crate) fn send(&mut self, command: Command, nodes: u8) {
        match self
            .0
            .binary_search_by_key(&command, |(command, _)| *command)
        {
            Ok(place) => self.0[place].1 |= nodes,
            Err(place) => self.0.insert(place, (command, nodes)),
        }
    }

    /// What was sent to a node, in the order of the numbers.
    pub(crate) fn to(&self, node: usize) -> impl Iterator<Item = Command> + '_ {
        self.0
            .iter()
            .filter(move |(_, nodes)| nodes >> node & 1 == 1)
            .map(|(command, _)| *command)
    }
}
