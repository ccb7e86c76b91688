//! What a client remembers of the registers that it uses: the group of nodes, and for each register
//! the ballot that a majority has promised it, and the threads that are about to change it.
//!
//! One thread at a time changes a register, for all that wait: it has each of them make its change
//! of the draft, one after another, and sends the result as one.

mod membership;
mod repair;

use super::Core;
use crate::engine::{NoVote, Node, NodeSet, quorum};
use crate::error::RegisterError;
use crate::event::Listener;
use crate::node::{Durability, NodeAnswer, NodeChange, NodeError, NodeState, NodeStatus};
use crate::redlock::Redlock;
use crate::registers::{
    Ballot, COMBINED_MAX, Census, Draft, MarkStep, NoGroup, Proposer, RegisterReply,
};
use crossbeam_channel::{Receiver, Sender, bounded};
pub(crate) use membership::Asked;
use membership::Membership;
pub(crate) use repair::Repair;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many registers are remembered. Those that are in use are, however many.
const REMEMBERED_MAX: usize = 1024;

#[derive(Default)]
pub(crate) struct Registers {
    /// The nodes that keep them.
    nodes: Option<Arc<Redlock>>,
    pub(super) membership: Membership,
    slots: Mutex<HashMap<Arc<[u8]>, Arc<Slot>>>,
}

/// One register.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` before the first change, and while there is one.
    proposer: Option<Proposer>,
    is_led: bool,
    waiting: VecDeque<Follower>,
}

/// A thread that waits for another one to make its change.
#[derive(Debug)]
pub(crate) struct Follower {
    to: Sender<Message>,
    from: Receiver<Draft>,
}

/// The other side of a [`Follower`].
#[derive(Debug)]
pub(crate) struct Seat {
    to: Sender<Draft>,
    from: Receiver<Message>,
}

#[derive(Debug)]
pub(crate) enum Message {
    /// Make the change, and give the draft back.
    Draft(Draft),
    /// The change is over.
    End(Result<Made, RegisterError>),
    /// Lead yourself.
    Lead,
}

/// A change that is over, and that a majority agrees on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    /// The ballot of the draft that counts.
    pub(crate) ballot: Ballot,
    /// How often the nodes were asked.
    pub(crate) rounds: u32,
}

/// What a thread does that is to change a register.
pub(crate) enum Role {
    Leader(Leader),
    Follower(Seat),
}

impl Registers {
    pub(super) fn keep_on(&mut self, nodes: &Arc<Redlock>) {
        self.nodes = Some(Arc::clone(nodes));
    }

    /// The register with this key.
    pub(crate) fn slot(&self, key: &Arc<[u8]>) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= REMEMBERED_MAX && !slots.contains_key(key) {
            // What is forgotten costs a round at the next change.
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(slots.entry(Arc::clone(key)).or_default())
    }
}

impl Slot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes part in the next change.
    pub(crate) fn join(self: &Arc<Self>) -> Role {
        let mut state = self.state();
        if !state.is_led {
            state.is_led = true;
            return Role::Leader(Leader { slot: Arc::clone(self) });
        }
        // Each side has at most one message under way.
        let ((to, from_leader), (to_leader, from)) = (bounded(1), bounded(1));
        state.waiting.push_back(Follower { to, from });
        Role::Follower(Seat { to: to_leader, from: from_leader })
    }

    /// The leader of this register, which a follower has become.
    pub(crate) fn lead(self: &Arc<Self>) -> Leader {
        Leader { slot: Arc::clone(self) }
    }
}

/// The right to change a register. When it is dropped, the first thread that waits has it.
#[derive(Debug)]
pub(crate) struct Leader {
    slot: Arc<Slot>,
}

impl Leader {
    /// What is remembered of the last change, if it is.
    pub(crate) fn take_proposer(&self) -> Option<Proposer> {
        self.slot.state().proposer.take()
    }

    pub(crate) fn keep(&self, proposer: Proposer) {
        self.slot.state().proposer = Some(proposer);
    }

    /// Ends the changes of all threads that wait. None of them was begun.
    pub(crate) fn dismiss(&self, error: &RegisterError) {
        let waiting = std::mem::take(&mut self.slot.state().waiting);
        waiting.into_iter().for_each(|follower| follower.end(Err(error.clone())));
    }

    /// The threads whose changes are made together with the leader's.
    pub(crate) fn followers(&self) -> Vec<Follower> {
        let mut state = self.slot.state();
        let count = state.waiting.len().min(COMBINED_MAX - 1);
        state.waiting.drain(..count).collect()
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        let mut state = self.slot.state();
        // One that is gone does not take it.
        while let Some(next) = state.waiting.pop_front() {
            if next.to.send(Message::Lead).is_ok() {
                return;
            }
        }
        state.is_led = false;
    }
}

impl Follower {
    /// Has the thread make its change of the draft. One that panics makes none.
    pub(crate) fn change(&self, draft: &mut Draft) {
        let is_there = self.to.send(Message::Draft(draft.clone())).is_ok();
        if let (true, Ok(changed)) = (is_there, self.from.recv()) {
            *draft = changed;
        }
    }

    pub(crate) fn end(self, result: Result<Made, RegisterError>) {
        // It may be gone.
        let _ = self.to.send(Message::End(result));
    }
}

impl Seat {
    /// The next message. Without one, the leader has panicked: its change may have been sent.
    pub(crate) fn receive(&self) -> Message {
        self.from.recv().unwrap_or(Message::End(Err(RegisterError::Unknown)))
    }

    pub(crate) fn give_back(&self, draft: Draft) {
        // A leader that is gone has no use for it.
        let _ = self.to.send(draft);
    }
}

// A look at all nodes: which of them are members, and how they keep their data.

/// What a look at the marks of all nodes has shown, and how they keep their data.
pub(crate) struct Survey {
    pub(crate) census: Census,
    pub(crate) asked: Asked,
    statuses: Vec<NodeStatus>,
}

impl Survey {
    fn durability(&self, node: Node) -> Durability {
        Durability::of(&self.statuses[node.index()])
    }

    /// The error if too few nodes have a vote.
    fn without_majority(self) -> RegisterError {
        let Self { census, mut asked, .. } = self;
        let voters = census.voters(census.epoch());
        for seen in census.seen().iter().filter(|seen| !voters.contains(seen.node)) {
            let why = NodeError::NoVote(seen.no_vote(Some(census.epoch())));
            asked.reports[seen.node.index()].answer = NodeAnswer::Failed(why);
        }
        asked.no_quorum(false)
    }
}

impl Core {
    /// Looks at the marks of the nodes, and at how they keep their data.
    pub(crate) fn survey(&self, redlock: &Redlock) -> Result<Survey, RegisterError> {
        let (seen, asked) = self.mark_all(redlock, &MarkStep::Look);
        let answered: NodeSet = seen.iter().map(|it| it.node).collect();
        let is_known = answered.len() >= quorum(self.rules.nodes);
        let census = Census::new(seen, self.rules.nodes).map_err(|error| match error {
            NoGroup::Differs(node) => RegisterError::NodesDiffer { url: asked.url(node) },
            NoGroup::NoMember if is_known => RegisterError::NotFormed,
            NoGroup::NoMember => asked.clone().no_quorum(false),
        })?;
        // One that was waited for in vain is not waited for again.
        Ok(Survey { census, asked, statuses: redlock.examine(answered) })
    }
}

// Which nodes have a vote on registers, as events report it.

/// What was reported last of each node.
#[derive(Debug, Default)]
struct ReportedVotes(Mutex<Reported>);

#[derive(Debug)]
struct Reported {
    with: NodeSet,
    without: NodeSet,
}

impl Default for Reported {
    fn default() -> Self {
        Self { with: NodeSet::EMPTY, without: NodeSet::EMPTY }
    }
}

impl Core {
    /// A look at the marks has shown that these nodes vote, or do so now.
    fn note_voters(&self, survey: &Survey, voters: NodeSet) {
        let Some(listener) = self.events.listener() else { return };
        for seen in survey.census.seen() {
            let vote = match voters.contains(seen.node) {
                true => Ok(()),
                false => Err(seen.no_vote(Some(survey.census.epoch()))),
            };
            self.note_vote(listener, &survey.asked, seen.node, vote);
        }
    }

    /// Nodes that had no vote may have answered as members: another client has repaired them.
    fn note_answers(&self, asked: &Asked) {
        let Some(listener) = self.events.listener() else { return };
        let without = self.registers.membership.reported.lock().without;
        for node in without.iter() {
            let reply = asked.replies.0[node.index()].as_ref();
            if reply.is_some_and(|it| !matches!(it, RegisterReply::NoMember(_))) {
                self.note_vote(listener, asked, node, Ok(()));
            }
        }
    }

    /// Has the next event report this change of a node, if it is one. A callback may panic or use
    /// this client, so it is not called in the middle of what a call does.
    fn note_vote(&self, listener: &Listener, asked: &Asked, node: Node, vote: Result<(), NoVote>) {
        let mut reported = self.registers.membership.reported.lock();
        let Reported { with, without } = &mut *reported;
        let (now, before) = if vote.is_ok() { (with, without) } else { (without, with) };
        if !now.contains(node) {
            now.insert(node);
            before.remove(node);
            let state = NodeState::Votes(vote);
            listener.node_changes().push(NodeChange { url: asked.url(node), state });
        }
    }
}

impl ReportedVotes {
    fn lock(&self) -> MutexGuard<'_, Reported> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_leads_when_the_leader_is_gone() {
        let slot = Arc::new(Slot::default());
        let Role::Leader(leader) = slot.join() else { panic!("nobody leads") };
        let seats = [(); 3].map(|()| match slot.join() {
            Role::Follower(seat) => seat,
            Role::Leader(_) => panic!("there is a leader"),
        });
        let [gone, next, last] = seats;
        drop(gone);
        drop(leader);
        assert!(matches!(next.receive(), Message::Lead));
        let leader = slot.lead();
        let followers = leader.followers();
        assert_eq!(followers.len(), 1);
        let end = Err(RegisterError::Unknown);
        followers.into_iter().for_each(|follower| follower.end(end.clone()));
        assert!(matches!(last.receive(), Message::End(Err(RegisterError::Unknown))));
        drop(leader);
        assert!(matches!(slot.join(), Role::Leader(_)));
    }

    #[test]
    fn a_register_in_use_is_never_forgotten() {
        let registers = Registers::default();
        let key = |number: usize| Arc::from(number.to_string().as_bytes());
        let used = registers.slot(&key(0));
        for number in 1..REMEMBERED_MAX * 3 {
            registers.slot(&key(number));
        }
        assert!(Arc::ptr_eq(&used, &registers.slot(&key(0))));
        assert!(registers.slots.lock().unwrap().len() <= REMEMBERED_MAX);
    }
}
