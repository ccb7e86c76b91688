//! Makes the mistakes: the tokens, the removals and the votes of a thread pass through here,
//! unchanged if the history has no mistake.

use super::{Outcome, Worker};
use crate::checker::name;
use crate::client::Client;
use crate::context::Context;
use crate::mistake::Mistake;
use redlatch_protocol::engine::{
    Acquired, Entropy, HeldLock, Node, NodeSet, Request, Vote, Votes, quorum,
};
use redlatch_protocol::time::Time;

impl Worker {
    pub(super) fn draw(&mut self, client: &Client, context: &mut Context) -> Entropy {
        let mut bytes = [0; Entropy::LEN];
        for chunk in bytes.chunks_mut(8) {
            let number = context.random.number().to_le_bytes();
            chunk.copy_from_slice(&number[..chunk.len()]);
        }
        if context.options.mistake == Some(Mistake::TokenReused) {
            let first = *self.first_token.get_or_insert(bytes);
            bytes[..20].copy_from_slice(&first[..20]);
        }
        let draw = Entropy::from_bytes(bytes);
        context
            .checker
            .drawn(client.name, name(draw.token.as_bytes()));
        draw
    }

    /// Sends the removal after a failed attempt.
    pub(super) fn undo(
        &mut self,
        client: &mut Client,
        context: &mut Context,
        mut request: Request,
    ) {
        debug_assert!(request.is_removal() && !request.is_answered());
        if request
            .waiter()
            .is_some_and(|waiter| self.waiter == Some(name(waiter.as_bytes())))
        {
            // It gives its place up, and perhaps joins the queue anew after a pause.
            self.stop_waiting(context);
        }
        context.checker.over(name(
            request.lock().expect("a lock is removed").token.as_bytes(),
        ));
        match context.options.mistake {
            Some(Mistake::UndoForgotten) => return,
            Some(Mistake::UndoOnlyWhereGranted) => request.nodes = self.stale,
            _ => {}
        }
        client.post(context, request);
    }

    /// Is this the thread that never retries?
    pub(super) fn gives_up(&self, context: &Context, until: Time) -> bool {
        // The first attempt does not wait.
        context.options.has(Mistake::NeverTriesAgain) && until > Time::ZERO
    }

    /// Panics if a lock held by another client is the mistake of this history.
    pub(super) fn panic_if_held_by_others(&self, context: &Context, outcome: &Outcome) {
        let is_refused = matches!(outcome, Outcome::Acquired(Acquired::Contended));
        let can_bear = !context.options.has(Mistake::PanicsOnRefusal);
        assert!(
            can_bear || !is_refused,
            "thread {} gets all that it wants",
            self.index
        );
    }

    /// Does it count a lock as new after a handoff, without a round?
    pub(super) fn believes_handoff(
        &mut self,
        client: &Client,
        context: &mut Context,
        held: &HeldLock,
    ) -> bool {
        if !context.options.has(Mistake::HandoffAssumed) {
            return false;
        }
        let mut held = held.clone();
        held.valid_until = client
            .now(context)
            .after(client.rules.drift.validity(held.ttl));
        self.take(client, context, held);
        true
    }

    /// Changes the votes, for some mistakes.
    pub(super) fn tamper(&mut self, context: &Context, mut votes: Votes) -> Votes {
        if !self.is_acquiring() || self.is_queued || self.is_entering.is_some() {
            return votes;
        }
        let granted = votes.tally.granted;
        let add = |votes: &mut Votes, node: Node| {
            votes.tally.refused.remove(node);
            votes.tally.failed.remove(node);
            votes.tally.cast(node, Vote::Granted);
        };
        match context.options.mistake {
            Some(Mistake::QuorumOneLess) if granted.len() + 1 == quorum(context.options.nodes) => {
                let missing = NodeSet::all(context.options.nodes).without(granted);
                missing
                    .iter()
                    .take(1)
                    .for_each(|node| add(&mut votes, node));
            }
            Some(Mistake::TurnAssumed) if self.is_turn => {
                NodeSet::all(context.options.nodes)
                    .iter()
                    .for_each(|node| add(&mut votes, node));
            }
            Some(Mistake::StaleVotes) => self.stale.iter().for_each(|node| add(&mut votes, node)),
            _ => {}
        }
        self.stale = granted;
        votes
    }
}
