//! What is on its way in a [`World`], and when two of them are alike.

use crate::membership::Ask;
use crate::round::Round;
use crate::server::{Asked, Command, LIST, Server};
use crate::world::World;
use models::explore;
use redlatch_registers::{MarkStep, RegisterCommand};

impl World {
    /// An actor asks, and waits for the answers.
    pub(crate) fn open_round(&mut self, actor: usize, ask: Ask, server: &mut Server) {
        if self.rounds_left[actor] == 0 {
            return;
        }
        self.rounds_left[actor] -= 1;
        let mut round = Round::new(self.nodes.len());
        for (node, asked) in ask {
            let is_mark = |it: &Asked| matches!(it.command, RegisterCommand::Mark(_));
            round.is_whole |= asked.as_ref().is_some_and(is_mark);
            round.asked[node] = Some(match asked {
                None => LIST,
                Some(asked) => self.send(node, asked, server),
            });
        }
        self.rounds[actor] = Some(round);
    }

    /// Sends a command to a node, where it may arrive late if it changes anything.
    pub(crate) fn send(&mut self, node: usize, asked: Asked, server: &mut Server) -> Command {
        let number = server.command(asked.clone());
        match asked.command {
            RegisterCommand::Read { .. }
            | RegisterCommand::Copy
            | RegisterCommand::Mark(MarkStep::Look) => return number,
            RegisterCommand::Accept { value, .. } if value.is_empty() && node == 0 => {
                self.deletions.begin(number, self.nodes.len());
            }
            _ => {}
        }
        self.sent.send(number, 1 << node);
        number
    }

    /// A hash that does not tell which node is which.
    pub(crate) fn hash(&self) -> u64 {
        let column = |node: usize| {
            let rounds = self.rounds.iter().map(|round| {
                let round = round.as_ref()?;
                Some((round.asked[node], round.answers[node]))
            });
            let state = (self.nodes[node], &self.older[node], self.lost >> node & 1);
            (
                state,
                rounds.collect::<Vec<_>>(),
                self.deletions.of_node(node),
            )
        };
        let mut columns: Vec<_> = (0..self.nodes.len()).map(column).collect();
        columns.sort();
        explore::hash(&(
            columns,
            &self.sent,
            &self.digests,
            &self.rounds_left,
            self.losses_left,
            self.deletions.commands().collect::<Vec<_>>(),
            &self.histories,
        ))
    }
}
