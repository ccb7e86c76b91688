//! An actor of the search through votes: a side, or who aborts or reads the record. It asks the
//! nodes as `src/registers/transaction.rs` does, or with a mistake.

use crate::server::epoch;
use crate::votes::{NAMES, NODES, Search};
use redlatch_protocol::engine::Token;
use redlatch_registers::transaction::{FINISHED, Record, RecordState, VOTED};
use redlatch_registers::{
    Ballot, Change, ChangeEnd, ChangeStep, Draft, Group, Proposer, RegisterCommand, RegisterReply,
    Replies, Stored,
};

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    None,
    /// A node raises a byte although another ballot was promised since.
    RaisedBelowPromise,
    /// A vote counts that any node has.
    CountedOnce,
    /// Who aborts does not look at the votes that it finds.
    VotesIgnored,
    /// Who aborts looks at the votes of one node of a majority.
    VotesOfOneNode,
    /// Who has begun the transaction aborts it by what it remembers.
    AbortedFromMemory,
    /// The first that has finished has the keys removed.
    ForgottenByFirst,
    /// The keys are removed when a majority has answered that all have finished.
    ForgottenAtMajority,
    /// The keys are removed when nodes have answered so of different ballots.
    ForgottenInTwoBallots,
    /// Keys that are removed leave no floor.
    NoFloor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Goal {
    Vote,
    Finish,
    Abort,
    Read,
}

/// What an actor has asked.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    Idle,
    Reading,
    Raising,
    Changing(Box<Change>),
}

#[derive(Clone, Debug)]
pub(crate) struct Actor {
    name: &'static str,
    pub(crate) goal: Goal,
    pub(crate) phase: Phase,
    proposer: Proposer,
    /// The group that it asks.
    pub(crate) group: Group,
    /// What was made of the drafts, by their ballots.
    drafts: Vec<(Ballot, RecordState)>,
    pub(crate) rounds_left: u8,
    pub(crate) has_begun: bool,
}

impl Actor {
    pub(crate) fn new(search: &Search<'_>, index: usize, goal: Goal) -> Self {
        let owner = Token::new([b'A' + index as u8; Token::LEN]);
        let mut proposer = Proposer::new(owner);
        let group = epoch(NODES).group;
        proposer.enter(&group);
        // Some draw the number that was promised with the record.
        proposer.count_from(if index % 2 == 0 { 4 } else { 1 });
        if search.mistake == Mistake::AbortedFromMemory {
            proposer = search.creator.clone();
        }
        let name = NAMES[index % search.sides];
        let drafts = Vec::new();
        let phase = Phase::Idle;
        let rounds_left = search.rounds;
        Self {
            name,
            goal,
            phase,
            proposer,
            group,
            drafts,
            rounds_left,
            has_begun: false,
        }
    }

    /// Goes on with the group in another epoch: what it sends there.
    pub(crate) fn enter(
        &mut self,
        search: &Search<'_>,
        group: &Group,
    ) -> Result<Option<RecordState>, RegisterCommand> {
        self.group = group.clone();
        self.proposer.enter(group);
        let Phase::Changing(change) = &mut self.phase else {
            return self.begin(search).map_or(Ok(None), Err);
        };
        change.enter(group);
        self.go_on(search)
    }

    /// The command in one round that it begins with.
    pub(crate) fn begin(&mut self, search: &Search<'_>) -> Option<RegisterCommand> {
        self.has_begun = true;
        let raise = |to| {
            search
                .record()
                .raised(&[self.name], to)
                .expect("it takes part")
        };
        let (phase, command) = match self.goal {
            Goal::Vote => (Phase::Raising, RegisterCommand::Raise(raise(VOTED))),
            Goal::Finish => (Phase::Raising, RegisterCommand::Raise(raise(FINISHED))),
            Goal::Read => (Phase::Reading, RegisterCommand::Read { watcher: None }),
            Goal::Abort => return self.change(search).err(),
        };
        self.phase = phase;
        Some(command)
    }

    pub(crate) fn change(
        &mut self,
        search: &Search<'_>,
    ) -> Result<Option<RecordState>, RegisterCommand> {
        self.phase = Phase::Changing(Box::new(Change::new(self.proposer.clone())));
        self.go_on(search)
    }

    /// What it was told, or the command that it sends next.
    pub(crate) fn go_on(
        &mut self,
        search: &Search<'_>,
    ) -> Result<Option<RecordState>, RegisterCommand> {
        let Phase::Changing(change) = &mut self.phase else {
            unreachable!("a change")
        };
        loop {
            match change.poll() {
                ChangeStep::Send(command) => return Err(command),
                ChangeStep::Draft(mut draft) => {
                    let told = draw_up(&mut draft, self.goal, self.name, search.mistake);
                    self.drafts.push((draft.ballot(), told));
                    change.propose(draft);
                }
                ChangeStep::Preempted(_) => change.try_again(),
                ChangeStep::Done(ChangeEnd::Committed(it) | ChangeEnd::Unchanged(it)) => {
                    let counts = self.drafts.iter().find(|(ballot, _)| *ballot == it);
                    return Ok(counts.map(|(_, told)| *told));
                }
                ChangeStep::Done(_) => return Ok(None),
            }
        }
    }

    /// Ends a round, as `src/registers/transaction/side.rs` and `register/read.rs` do.
    pub(crate) fn hear(
        &mut self,
        search: &Search<'_>,
        mut replies: Replies,
    ) -> Result<Option<RecordState>, RegisterCommand> {
        if let Phase::Changing(change) = &mut self.phase {
            if search.mistake == Mistake::VotesOfOneNode {
                alike(&mut replies);
            }
            change.handle(&replies);
            return self.go_on(search);
        }
        let agreed = replies
            .agreed()
            .map(|state| state.map(|accepted| accepted.ballot));
        let Some(ballot) = agreed else {
            return if replies.are_enough() {
                self.change(search)
            } else {
                Ok(None)
            };
        };
        let value = ballot.and_then(|ballot| match search.mistake {
            Mistake::CountedOnce => newest(&replies, ballot),
            _ => replies.value(ballot),
        });
        let record = value.and_then(|value| Record::read(value.bytes()).expect("a record"));
        let is_raised = |level| {
            record
                .as_ref()
                .is_none_or(|record| record.have(&[self.name], level).expect("a name"))
        };
        match self.goal {
            Goal::Vote if !is_raised(VOTED) => self.change(search),
            Goal::Finish if !is_raised(FINISHED) => self.change(search),
            _ => Ok(Some(
                Record::look(record.as_ref(), self.name).expect("a name"),
            )),
        }
    }
}

/// What a draft becomes, as in `src/registers/transaction.rs`.
pub(crate) fn draw_up(draft: &mut Draft, goal: Goal, name: &str, mistake: Mistake) -> RecordState {
    let before = draft.current().map(|value| value.bytes().to_vec());
    let read = |bytes: &[u8]| Record::read(bytes).expect("a record");
    let mut record = before.as_deref().and_then(read);
    let told = match goal {
        Goal::Abort if mistake == Mistake::VotesIgnored && record.is_some() => {
            record = None;
            Ok(RecordState::Abort)
        }
        Goal::Abort => Record::abort(&mut record, None),
        Goal::Vote => Record::vote(&mut record, name),
        Goal::Finish => Record::finish(&mut record, name),
        Goal::Read => Record::look(record.as_ref(), name),
    };
    match record.map(|record| record.to_bytes()) {
        None => draft.delete(),
        after if after == before => {}
        Some(after) => _ = draft.put(after.into(), None),
    }
    told.expect("it takes part")
}

/// All promises name what the first one does.
pub(crate) fn alike(replies: &mut Replies) {
    let mut first = None;
    for reply in replies.0.iter_mut().flatten() {
        let RegisterReply::Promise {
            accepted: Some(accepted),
            ..
        } = reply
        else {
            continue;
        };
        let first = first.get_or_insert_with(|| accepted.clone());
        if first.ballot == accepted.ballot {
            *accepted = first.clone();
        }
    }
}

/// All answers name the ballot of the first.
pub(crate) fn of_one_ballot(replies: &mut Replies) {
    let mut first = None;
    for reply in replies.0.iter_mut().flatten() {
        let RegisterReply::State(Some(accepted)) = reply else {
            continue;
        };
        accepted.ballot = *first.get_or_insert(accepted.ballot);
    }
}

/// The value with the votes that any node has.
pub(crate) fn newest(replies: &Replies, ballot: Ballot) -> Option<Stored> {
    let one = |reply: &RegisterReply| Replies(vec![Some(reply.clone())]).value(ballot);
    replies
        .0
        .iter()
        .flatten()
        .filter_map(one)
        .max_by_key(|value| value.bytes().to_vec())
}
