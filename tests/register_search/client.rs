//! A client: the library's own changes of registers, run as the loop of `src/client/register` runs
//! them, or with a mistake.

use crate::history::{Effect, Outcome, Value};
use crate::misreading::{are_without_value, newest, promised_by_minority};
use crate::mistake::Mistake;
use crate::plan::{Call, Verb};
use crate::server::group;
use redlatch::internal::engine::Token;
use redlatch::internal::engine::register::{
    Ballot, Change, ChangeEnd, ChangeStep, Draft, Proposer, RegisterCommand, Replies, Stored,
};
use std::sync::Arc;

/// How often the marks of the nodes are looked at in one call.
const LOOKS_MAX: usize = 3;

/// What a client does next, or what it has come to.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// It sends this to all nodes, and waits.
    Send(RegisterCommand),
    /// It sends this, and does not wait.
    Leave(RegisterCommand),
    /// What it sends next may have this effect.
    May(Effect),
    /// The call is over.
    End(Outcome),
}

/// A client between two calls, or in one.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    index: u8,
    /// What it remembers of each register.
    proposers: Vec<Proposer>,
    /// The version of each register that it has met last.
    met: Vec<Option<u64>>,
    /// How many calls it has begun.
    pub(crate) begun: u8,
    current: Option<Current>,
}

/// A call.
#[derive(Clone, Debug)]
struct Current {
    verb: Verb,
    register: u8,
    phase: Phase,
    /// What was made of the drafts, by their ballots.
    drafts: Vec<(Ballot, Outcome)>,
    /// The versions after those that have an effect.
    versions: Vec<Option<u64>>,
    /// How many of the drafts are of the change as it is.
    own_drafts: usize,
    looks: usize,
    is_accepting: bool,
}

#[derive(Clone, Debug)]
enum Phase {
    Reading,
    Changing(Box<Change>),
}

impl Client {
    pub(crate) fn new(index: usize, registers: u8) -> Self {
        let proposer = |register| {
            let mut owner = [b'0'; Token::LEN];
            (owner[0], owner[1]) = (b'A' + index as u8, b'a' + register);
            let mut proposer = Proposer::new(Token::new(owner));
            proposer.enter(&group());
            proposer
        };
        Self {
            index: index as u8,
            proposers: (0..registers).map(proposer).collect(),
            met: vec![None; registers.into()],
            begun: 0,
            current: None,
        }
    }

    /// Begins a call.
    pub(crate) fn begin(&mut self, (verb, register): Call, deeds: &mut Vec<Deed>) {
        self.begun += 1;
        let phase = match verb {
            Verb::Read => Phase::Reading,
            _ => Phase::Changing(change(&self.proposers[usize::from(register)])),
        };
        self.current = Some(Current {
            verb,
            register,
            phase,
            drafts: Vec::new(),
            versions: Vec::new(),
            own_drafts: 0,
            looks: 0,
            is_accepting: false,
        });
        match verb {
            Verb::Read => deeds.push(Deed::Send(RegisterCommand::Read)),
            _ => self.go_on(None, deeds),
        }
    }

    /// Ends the round with these answers.
    pub(crate) fn hear(
        &mut self,
        replies: &Replies,
        mistake: Option<Mistake>,
        deeds: &mut Vec<Deed>,
    ) {
        let current = self.current.as_mut().expect("a call");
        let Phase::Changing(change) = &mut current.phase else {
            return self.read(replies, mistake, deeds);
        };
        if mistake == Some(Mistake::NextWithoutMajority) && current.is_accepting {
            if let Some(proposer) = promised_by_minority(change, replies) {
                let outcome = Outcome::Unknown;
                return self.end(proposer, outcome, deeds);
            }
        }
        if !replies.are_enough() && replies.lack_votes() && current.looks < LOOKS_MAX {
            // The nodes that are members still say that the epoch is the same.
            current.looks += 1;
            change.enter(&group());
        } else {
            change.handle(replies);
        }
        self.go_on(mistake, deeds);
    }

    fn read(&mut self, replies: &Replies, mistake: Option<Mistake>, deeds: &mut Vec<Deed>) {
        let current = self.current.as_mut().expect("a call");
        let register = usize::from(current.register);
        let agreed = match mistake {
            Some(Mistake::ReadsNewest) if replies.are_enough() => Some(newest(replies)),
            Some(Mistake::DeletedIsAbsent) if are_without_value(replies) => Some(None),
            _ => replies.agreed(),
        };
        if let Some(agreed) = agreed {
            let saw = value(agreed.and_then(|accepted| accepted.value.as_ref()));
            let proposer = self.proposers[register].clone();
            return self.end(proposer, Outcome::Saw(saw), deeds);
        }
        if replies.are_enough() {
            current.phase = Phase::Changing(change(&self.proposers[register]));
            return self.go_on(mistake, deeds);
        }
        if current.looks == 0 && replies.lack_votes() {
            current.looks = 1;
            return deeds.push(Deed::Send(RegisterCommand::Read));
        }
        let proposer = self.proposers[register].clone();
        self.end(proposer, Outcome::Nothing, deeds);
    }

    /// Goes on with a change until it waits for answers.
    fn go_on(&mut self, mistake: Option<Mistake>, deeds: &mut Vec<Deed>) {
        let (index, begun) = (self.index, self.begun);
        loop {
            let current = self.current.as_mut().expect("a call");
            let Phase::Changing(change) = &mut current.phase else { unreachable!("a change") };
            let step = change.poll();
            let is_lost = current.is_accepting && !matches!(step, ChangeStep::Done(_));
            current.is_accepting = false;
            let is_redrawn = matches!(step, ChangeStep::Draft(_)) && current.own_drafts > 0;
            if mistake == Some(Mistake::MadeAgain) && is_lost
                || mistake == Some(Mistake::ForgetsEarlierBallots) && is_redrawn
            {
                **change = Change::new(change.clone().into_proposer());
                current.own_drafts = 0;
                continue;
            }
            match step {
                ChangeStep::Send(command) => {
                    current.is_accepting = matches!(command, RegisterCommand::Accept { .. });
                    return deeds.push(Deed::Send(command));
                }
                ChangeStep::Draft(mut draft) => {
                    let met = self.met[usize::from(current.register)];
                    let before = value(draft.current());
                    draw_up(current.verb, &mut draft, met, index * 16 + begun);
                    let outcome = match draft.is_unchanged() {
                        true => Outcome::Saw(before),
                        false => {
                            let after = value(draft.current());
                            current.versions.push(version(&after));
                            deeds.push(Deed::May(Effect { before, after }));
                            Outcome::Made(current.versions.len() - 1)
                        }
                    };
                    current.drafts.push((draft.ballot(), outcome));
                    current.own_drafts += 1;
                    change.propose(draft);
                }
                ChangeStep::Outbid(_) => change.try_again(),
                ChangeStep::Done(end) => {
                    let proposer = change.clone().into_proposer();
                    let outcome = current.outcome(&end);
                    return self.end(proposer, outcome, deeds);
                }
            }
        }
    }

    fn end(&mut self, proposer: Proposer, outcome: Outcome, deeds: &mut Vec<Deed>) {
        let current = self.current.take().expect("a call");
        self.proposers[usize::from(current.register)] = proposer;
        let met = &mut self.met[usize::from(current.register)];
        match &outcome {
            Outcome::Made(effect) => *met = current.versions[*effect],
            Outcome::Saw(value) => *met = version(value),
            Outcome::Nothing | Outcome::Unknown => {}
        }
        if current.verb == Verb::Sweep && matches!(outcome, Outcome::Saw(_)) {
            deeds.push(Deed::Leave(RegisterCommand::Collect(None)));
        }
        deeds.push(Deed::End(outcome));
    }

    /// The register of the call.
    pub(crate) fn register(&self) -> Option<u8> {
        self.current.as_ref().map(|current| current.register)
    }
}

impl Current {
    /// What the end of its change says to the caller.
    fn outcome(&self, end: &ChangeEnd) -> Outcome {
        match end {
            ChangeEnd::Made(ballot) | ChangeEnd::Unchanged(ballot) => {
                let found = self.drafts.iter().find(|(draft, _)| draft == ballot);
                found.map_or(Outcome::Unknown, |(_, outcome)| outcome.clone())
            }
            ChangeEnd::NoQuorum { may_have_happened: false } => Outcome::Nothing,
            ChangeEnd::NoQuorum { may_have_happened: true } | ChangeEnd::Unknown => {
                Outcome::Unknown
            }
            ChangeEnd::Invalid(_) | ChangeEnd::Exhausted => unreachable!("{end:?}"),
        }
    }
}

fn change(proposer: &Proposer) -> Box<Change> {
    Box::new(Change::new(proposer.clone()))
}

/// What the caller makes of a draft.
fn draw_up(verb: Verb, draft: &mut Draft, met: Option<u64>, mark: u8) {
    let append = |draft: &mut Draft| {
        let before = draft.current().map_or(&b""[..], |value| value.bytes());
        let bytes = Arc::from([before, &[mark]].concat());
        draft.put(bytes, None);
    };
    match verb {
        Verb::Read | Verb::Sweep => {}
        Verb::Append => append(draft),
        Verb::AppendTwice => {
            append(draft);
            append(draft);
        }
        Verb::Delete => draft.delete(),
        Verb::Renew => {
            draft.delete();
            append(draft);
        }
        Verb::CompareAndSet => {
            if draft.current().map(|value| value.version().as_u64()) == met {
                append(draft);
            }
        }
    }
}

fn value(stored: Option<&Stored>) -> Value {
    stored.map(|stored| (stored.version().as_u64(), stored.bytes().to_vec()))
}

fn version(value: &Value) -> Option<u64> {
    value.as_ref().map(|(version, _)| *version)
}
