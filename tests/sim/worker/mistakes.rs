//! Where mistakes are made: the tokens, the removals and the ballots of a thread pass through here.
//! Without a mistake to be made, they pass unchanged.

use super::Worker;
use crate::client::Client;
use crate::sabotage::Sabotage;
use crate::stage::Stage;
use redlatch::internal::engine::{Ballot, Draw, Node, NodeSet, Request, Verb, Vote, quorum};

impl Worker {
    pub(super) fn draw(&mut self, client: &Client, stage: &mut Stage) -> Draw {
        let mut bytes = [0; Draw::LEN];
        for chunk in bytes.chunks_mut(8) {
            let number = stage.random.number().to_le_bytes();
            chunk.copy_from_slice(&number[..chunk.len()]);
        }
        if stage.options.sabotage == Some(Sabotage::TokenReused) {
            let first = *self.first_token.get_or_insert(bytes);
            bytes[..20].copy_from_slice(&first[..20]);
        }
        let draw = Draw::from_bytes(bytes);
        stage.checker.drawn(client.name, draw.token.as_bytes());
        draw
    }

    /// Sends the removal after a failed attempt.
    pub(super) fn undo(&mut self, client: &mut Client, stage: &mut Stage, mut request: Request) {
        debug_assert_eq!(request.verb, Verb::Undo);
        stage.checker.over(request.token.as_bytes());
        match stage.options.sabotage {
            Some(Sabotage::UndoForgotten) => return,
            Some(Sabotage::UndoOnlyWhereGranted) => request.nodes = self.stale,
            _ => {}
        }
        client.post(stage, &request);
    }

    /// What some mistakes make of a ballot.
    pub(super) fn tamper(&mut self, stage: &Stage, mut ballot: Ballot) -> Ballot {
        if !self.is_acquiring() {
            return ballot;
        }
        let granted = ballot.tally.granted;
        let add = |ballot: &mut Ballot, node: Node| {
            ballot.tally.refused.remove(node);
            ballot.tally.failed.remove(node);
            ballot.tally.cast(node, Vote::Granted);
        };
        match stage.options.sabotage {
            Some(Sabotage::QuorumOneLess) if granted.len() + 1 == quorum(stage.options.nodes) => {
                let missing = NodeSet::all(stage.options.nodes).without(granted);
                missing.iter().take(1).for_each(|node| add(&mut ballot, node));
            }
            Some(Sabotage::StaleVotes) => self.stale.iter().for_each(|node| add(&mut ballot, node)),
            _ => {}
        }
        self.stale = granted;
        ballot
    }
}
