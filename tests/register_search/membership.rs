//! What an actor knows of the group, and how it finds out more: as
//! `src/registers/register/nodes.rs` does it, in rounds.

use crate::server::{Asked, GROUP};
use redlatch_registers::{Epoch, Group, MarkStep, MembershipView, RegisterCommand, Replies};
use std::sync::Arc;

/// What some nodes are asked. `None`: of which registers they have keys.
pub(crate) type Ask = Vec<(usize, Option<Asked>)>;

/// Asks all nodes, which are members of this group.
pub(crate) fn ask_all(nodes: usize, register: u8, group: &Group, command: &RegisterCommand) -> Ask {
    let mark = group.to_bytes();
    let asked = Asked {
        register,
        mark,
        command: command.clone(),
    };
    (0..nodes).map(|node| (node, Some(asked.clone()))).collect()
}

/// A step with the mark of a node.
pub(crate) fn ask_mark(node: usize, step: MarkStep) -> (usize, Option<Asked>) {
    let command = RegisterCommand::Mark(step);
    (
        node,
        Some(Asked {
            register: GROUP,
            mark: Arc::from([]),
            command,
        }),
    )
}

/// What an actor knows of the group.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    nodes: usize,
    pub(crate) known: Option<Epoch>,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Idle,
    /// It looks at all marks, and the members enter the latest epoch then, or this one.
    Looking(Option<Epoch>),
    Entering,
}

/// How a look goes on.
pub(crate) enum Learnt {
    /// This is to be asked.
    Ask(Ask),
    /// What is known is the latest epoch that was seen.
    Known,
    /// The nodes are not a group.
    Nothing,
}

impl Membership {
    pub(crate) fn new(nodes: usize, known: Option<Epoch>) -> Self {
        Self {
            nodes,
            known,
            state: State::Idle,
        }
    }

    pub(crate) fn look(&self) -> Ask {
        (0..self.nodes)
            .map(|node| ask_mark(node, MarkStep::Look))
            .collect()
    }

    /// Begins a look at all marks, after which the members enter the latest epoch, or this one.
    pub(crate) fn learn(&mut self, epoch: Option<Epoch>) -> Ask {
        self.state = State::Looking(epoch);
        self.look()
    }

    /// Goes on with the group after nodes have refused because of their marks.
    pub(crate) fn follow(&mut self, replies: &Replies, group: &Group) -> Ask {
        let later = replies.later(group);
        if later.is_some() {
            self.known.clone_from(&later);
        }
        let Some(epoch) = &self.known else {
            return self.learn(None);
        };
        let behind = replies.behind(epoch);
        if later.is_none() && behind.is_empty() {
            return self.learn(None);
        }
        self.state = State::Entering;
        behind
            .into_iter()
            .map(|(node, step)| ask_mark(node.index(), step))
            .collect()
    }

    /// Is something asked?
    pub(crate) fn is_asking(&self) -> bool {
        !matches!(self.state, State::Idle)
    }

    /// Takes the answers.
    pub(crate) fn hear(&mut self, replies: &Replies) -> Learnt {
        let state = std::mem::replace(&mut self.state, State::Idle);
        let State::Looking(wanted) = state else {
            return Learnt::Known;
        };
        let Ok(view) = MembershipView::new(replies.marks(), self.nodes) else {
            return Learnt::Nothing;
        };
        if wanted.is_none() {
            self.known = Some(view.epoch().clone());
        }
        let epoch = wanted.as_ref().unwrap_or(view.epoch());
        // These nodes could forget something with each start.
        let renewals = view.renewals(epoch, |_| Some(false)).into_iter();
        let enter = renewals.map(|(seen, member)| {
            let step = MarkStep::Enter {
                seen: seen.mark.unwrap_or_default(),
                new: member.to_bytes(),
            };
            ask_mark(seen.node.index(), step)
        });
        let ask: Ask = enter.collect();
        if ask.is_empty() {
            return Learnt::Known;
        }
        self.state = State::Entering;
        Learnt::Ask(ask)
    }
}
