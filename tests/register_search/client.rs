//! A client: the library's own changes of registers, run as the loop of `src/registers/register`
//! runs them, or with a mistake.

use crate::current::{Current, Phase, draw_up, value, version};
use crate::history::{Effect, Outcome};
use crate::membership::{Ask, Learnt, Membership, ask_all};
use crate::misreading::{are_without_value, newest, promised_by_minority};
use crate::mistake::Mistake;
use crate::plan::{Call, Verb};
use redlatch_protocol::engine::Token;
use redlatch_registers::{Change, ChangeStep, Epoch, Proposer, RegisterCommand, Replies};

/// How often the marks of the nodes are looked at in one call.
const LOOKS_MAX: usize = 3;

/// What a client does next, or what it has come to.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// It sends this, and waits.
    Send(Ask),
    /// It sends this, and does not wait.
    Leave(Ask),
    /// What it sends next may have this effect.
    May(Effect),
    /// The call is over.
    End(Outcome),
}

/// A client between two calls, or in one.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    index: u8,
    nodes: usize,
    membership: Membership,
    /// What it remembers of each register.
    proposers: Vec<Proposer>,
    /// The version of each register that it has met last.
    met: Vec<Option<u64>>,
    /// How many calls it has begun.
    pub(crate) begun: u8,
    current: Option<Current>,
}

impl Client {
    pub(crate) fn new(index: usize, registers: u8, nodes: usize, known: Option<Epoch>) -> Self {
        let proposer = |register| {
            let mut owner = [b'0'; Token::LEN];
            (owner[0], owner[1]) = (b'A' + index as u8, b'a' + register);
            Proposer::new(Token::new(owner))
        };
        Self {
            index: index as u8,
            nodes,
            membership: Membership::new(nodes, known),
            proposers: (0..registers).map(proposer).collect(),
            met: vec![None; registers.into()],
            begun: 0,
            current: None,
        }
    }

    /// Begins a call.
    pub(crate) fn begin(&mut self, (verb, register): Call, deeds: &mut Vec<Deed>) {
        self.begun += 1;
        self.current = Some(Current::new(verb, register));
        match self.membership.known {
            Some(_) => self.start(deeds),
            None => deeds.push(Deed::Send(self.membership.learn(None))),
        }
    }

    /// Begins what is called, with the group that is known.
    fn start(&mut self, deeds: &mut Vec<Deed>) {
        let current = self.current.as_mut().expect("a call");
        current.group = self
            .membership
            .known
            .as_ref()
            .map(|epoch| epoch.group.clone());
        match current.verb {
            Verb::Read => {
                current.phase = Phase::Reading;
                self.send(&RegisterCommand::Read { watcher: None }, deeds);
            }
            _ => self.change(deeds, None),
        }
    }

    /// Asks all nodes, as members of the group.
    fn send(&self, command: &RegisterCommand, deeds: &mut Vec<Deed>) {
        let current = self.current.as_ref().expect("a call");
        let group = current.group.as_ref().expect("it is known");
        deeds.push(Deed::Send(ask_all(
            self.nodes,
            current.register,
            group,
            command,
        )));
    }

    fn change(&mut self, deeds: &mut Vec<Deed>, mistake: Option<Mistake>) {
        let current = self.current.as_mut().expect("a call");
        let mut proposer = self.proposers[usize::from(current.register)].clone();
        proposer.enter(&self.membership.known.as_ref().expect("it is known").group);
        current.group = self
            .membership
            .known
            .as_ref()
            .map(|epoch| epoch.group.clone());
        let change = match current.verb {
            Verb::Create => Change::create(proposer),
            _ => Change::new(proposer),
        };
        current.phase = Phase::Changing(Box::new(change));
        self.go_on(mistake, deeds);
    }

    /// Ends the round with these answers.
    pub(crate) fn hear(
        &mut self,
        replies: &Replies,
        mistake: Option<Mistake>,
        deeds: &mut Vec<Deed>,
    ) {
        if self.membership.is_asking() {
            return match self.membership.hear(replies) {
                Learnt::Ask(ask) => deeds.push(Deed::Send(ask)),
                Learnt::Known => self.followed(true, mistake, deeds),
                Learnt::Nothing => self.followed(false, mistake, deeds),
            };
        }
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
            return self.follow(replies, mistake, deeds);
        }
        change.handle(replies);
        self.go_on(mistake, deeds);
    }

    fn follow(&mut self, replies: &Replies, mistake: Option<Mistake>, deeds: &mut Vec<Deed>) {
        let current = self.current.as_mut().expect("a call");
        let group = current.group.as_ref().expect("it was asked");
        let ask = self.membership.follow(replies, group);
        current.refused = Some(replies.clone());
        if ask.is_empty() {
            self.membership.hear(replies);
            return self.followed(true, mistake, deeds);
        }
        deeds.push(Deed::Send(ask));
    }

    /// The marks of the nodes were looked at, or a later epoch was named.
    fn followed(&mut self, is_known: bool, mistake: Option<Mistake>, deeds: &mut Vec<Deed>) {
        let current = self.current.as_mut().expect("a call");
        let group = self
            .membership
            .known
            .as_ref()
            .map(|epoch| epoch.group.clone());
        let group = group.filter(|_| is_known);
        match (&mut current.phase, group) {
            (Phase::Beginning, Some(_)) => self.start(deeds),
            (Phase::Reading, Some(group)) => {
                current.group = Some(group);
                self.send(&RegisterCommand::Read { watcher: None }, deeds);
            }
            (Phase::Beginning | Phase::Reading, None) => self.end_without_effect(deeds),
            (Phase::Changing(change), Some(group)) => {
                current.looks += usize::from(current.group.as_ref() == Some(&group));
                change.enter(&group);
                current.group = Some(group);
                self.go_on(mistake, deeds);
            }
            (Phase::Changing(change), None) => {
                change.handle(current.refused.as_ref().expect("they have refused"));
                self.go_on(mistake, deeds);
            }
        }
    }

    fn end_without_effect(&mut self, deeds: &mut Vec<Deed>) {
        let register = self.current.as_ref().expect("a call").register;
        let proposer = self.proposers[usize::from(register)].clone();
        self.end(proposer, Outcome::Nothing, deeds);
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
            return self.change(deeds, mistake);
        }
        if current.looks == 0 && replies.lack_votes() {
            current.looks = 1;
            return self.follow(replies, mistake, deeds);
        }
        self.end_without_effect(deeds);
    }

    /// Goes on with a change until it waits for answers.
    fn go_on(&mut self, mistake: Option<Mistake>, deeds: &mut Vec<Deed>) {
        let index = self.index;
        let begun = self.begun;
        loop {
            let current = self.current.as_mut().expect("a call");
            let Phase::Changing(change) = &mut current.phase else {
                unreachable!("a change")
            };
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
                    return self.send(&command, deeds);
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
                ChangeStep::Preempted(_) => change.try_again(),
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
            // By now the client may know a later group than the one that it has asked.
            let group = current.group.as_ref().expect("it was asked");
            let command = RegisterCommand::Collect(None);
            deeds.push(Deed::Leave(ask_all(
                self.nodes,
                current.register,
                group,
                &command,
            )));
        }
        deeds.push(Deed::End(outcome));
    }

    /// The register of the call.
    pub(crate) fn register(&self) -> Option<u8> {
        self.current.as_ref().map(|current| current.register)
    }
}
