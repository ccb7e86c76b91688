//! A state of the search: nodes, clients, and what is on its way between them.
//!
//! Every command that was ever sent may be carried out by a node at any time, again, or never. A
//! client hears the answer to the first time that a node carries out the command of its round.
//! Which answers it has when the round ends is a part of that step: one that does not come, or
//! comes late, is one that it has not. A client stops for ever if no step of it follows.

use crate::client::{Client, Deed};
use crate::deletions::Deletions;
use crate::history::{History, Outcome};
use crate::mistake::Mistake;
use crate::plan::{Call, Plan};
use crate::server::{Answer, Command, NodeState, Server};
use crate::step::{Step, Violation};
use redlatch::internal::engine::register::{RegisterCommand, Replies};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// A command whose answers a client waits for, and those that were given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Round {
    command: Command,
    answers: Vec<Option<Answer>>,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) nodes: Vec<NodeState>,
    /// What was ever sent and can change a node, in the order of its numbers.
    pub(crate) sent: Vec<Command>,
    rounds: Vec<Option<Round>>,
    deletions: Deletions,
    clients: Vec<Rc<Client>>,
    digests: Vec<u64>,
    rounds_left: Vec<usize>,
    histories: Vec<Rc<History>>,
    losses_left: usize,
    /// The nodes that have lost their keys, as bits.
    lost: u8,
}

impl World {
    pub(crate) fn new(plan: &Plan, server: &mut Server) -> Self {
        let count = plan.clients.len();
        let client = |index| Rc::new(Client::new(index, plan.registers));
        Self {
            nodes: vec![server.formed(); plan.nodes],
            sent: Vec::new(),
            rounds: vec![None; count],
            deletions: Deletions::default(),
            clients: (0..count).map(client).collect(),
            digests: vec![0; count],
            rounds_left: vec![0; count],
            histories: (0..plan.registers).map(|_| Rc::new(History::new())).collect(),
            losses_left: plan.losses,
            lost: 0,
        }
    }

    /// One more client.
    pub(crate) fn join(&mut self, registers: u8) -> usize {
        let index = self.clients.len();
        self.clients.push(Rc::new(Client::new(index, registers)));
        self.digests.push(0);
        self.rounds.push(None);
        self.rounds_left.push(0);
        index
    }

    pub(crate) fn quorum(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    /// How many calls the client has begun, if it is in none.
    fn idle(&self, client: usize) -> Option<usize> {
        let client = &self.clients[client];
        client.register().is_none().then_some(client.begun.into())
    }

    pub(crate) fn can_begin(&self, plan: &Plan, client: usize) -> bool {
        self.idle(client).is_some_and(|begun| begun < plan.clients[client].len())
    }

    /// What the client calls next.
    pub(crate) fn next_call(&self, plan: &Plan, client: usize) -> Call {
        plan.clients[client][usize::from(self.clients[client].begun)]
    }

    /// The command of the client's round.
    pub(crate) fn asked<'a>(&self, client: usize, server: &'a Server) -> &'a RegisterCommand {
        server.asked(self.rounds[client].as_ref().expect("a round").command).1
    }

    /// The nodes that have not carried out the command of the client's round, if it is in one.
    pub(crate) fn unanswered(&self, client: usize) -> Option<impl Iterator<Item = usize> + '_> {
        let round = self.rounds[client].as_ref()?;
        Some((0..round.answers.len()).filter(|node| round.answers[*node].is_none()))
    }

    /// The nodes that have, as bits.
    pub(crate) fn answered(&self, client: usize) -> Option<u8> {
        let round = self.rounds[client].as_ref()?;
        let bit = |(node, answer): (usize, &Option<Answer>)| u8::from(answer.is_some()) << node;
        Some(round.answers.iter().enumerate().map(bit).sum())
    }

    pub(crate) fn can_lose(&self, node: usize) -> bool {
        self.losses_left > 0 && self.lost >> node & 1 == 0
    }

    /// The nodes that have lost their keys, as bits.
    pub(crate) fn lost(&self) -> u8 {
        self.lost
    }

    /// Does it change anything that the node carries this out?
    pub(crate) fn matters(&self, command: Command, node: usize, server: &mut Server) -> bool {
        let is_awaited = |round: &Round| round.command == command && round.answers[node].is_none();
        if self.rounds.iter().flatten().any(is_awaited) {
            return false;
        }
        self.deletions.await_node(command, node)
            || server.run(self.nodes[node], command).0 != self.nodes[node]
    }

    /// Takes a step, and returns the outcome of a call that it ends.
    pub(crate) fn take(
        &mut self,
        step: Step,
        plan: &Plan,
        server: &mut Server,
    ) -> Result<Option<Outcome>, Violation> {
        match step {
            Step::Begin(client) => {
                let call = self.next_call(plan, client);
                return self.begin(client, call, plan, server);
            }
            Step::Arrive(client, node) => {
                let command = self.rounds[client].as_ref().expect("a round").command;
                let answer = self.carry_out(command, node, plan, server);
                let round = self.rounds[client].as_mut().expect("a round");
                round.answers[node] = Some(answer);
            }
            Step::Again(command, node) => {
                self.carry_out(command, node, plan, server);
            }
            Step::Hear(client, nodes) => return self.hear(client, nodes, plan, server),
            Step::Lose(node) => {
                self.nodes[node] = server.emptied();
                self.losses_left -= 1;
                self.lost |= 1 << node;
            }
        }
        Ok(None)
    }

    fn carry_out(
        &mut self,
        command: Command,
        node: usize,
        plan: &Plan,
        server: &mut Server,
    ) -> Answer {
        let (state, answer) = server.run(self.nodes[node], command);
        self.nodes[node] = state;
        let needed = match plan.mistake {
            Some(Mistake::CollectsAtMajority) => self.quorum(),
            _ => self.nodes.len(),
        };
        if self.deletions.is_complete(command, node, server.is_done(answer), needed) {
            let (register, deletion) = server.asked(command);
            let RegisterCommand::Accept { ballot, .. } = *deletion else { unreachable!() };
            self.send(server.command(register, RegisterCommand::Collect(Some(ballot))));
        }
        answer
    }

    pub(crate) fn begin(
        &mut self,
        client: usize,
        call: Call,
        plan: &Plan,
        server: &mut Server,
    ) -> Result<Option<Outcome>, Violation> {
        let mut deeds = Vec::new();
        self.rounds_left[client] = plan.rounds_max;
        Rc::make_mut(&mut self.clients[client]).begin(call, &mut deeds);
        let (verb, register) = call;
        let id = self.call(client);
        Rc::make_mut(&mut self.histories[usize::from(register)]).begin(id, verb.looks());
        self.act(client, register, deeds, server)
    }

    fn hear(
        &mut self,
        client: usize,
        nodes: u8,
        plan: &Plan,
        server: &mut Server,
    ) -> Result<Option<Outcome>, Violation> {
        let round = self.rounds[client].take().expect("a round");
        let heard = round.answers.iter().enumerate().map(|(node, answer)| {
            let answer = answer.filter(|_| nodes >> node & 1 == 1);
            answer.map(|answer| server.reply(answer).clone())
        });
        let replies = Replies(heard.collect());
        let mut deeds = Vec::new();
        let register = self.clients[client].register().expect("a call");
        Rc::make_mut(&mut self.clients[client]).hear(&replies, plan.mistake, &mut deeds);
        self.act(client, register, deeds, server)
    }

    /// What a client has decided to do is done.
    fn act(
        &mut self,
        client: usize,
        register: u8,
        deeds: Vec<Deed>,
        server: &mut Server,
    ) -> Result<Option<Outcome>, Violation> {
        let id = self.call(client);
        let mut hasher = DefaultHasher::new();
        format!("{:?}", self.clients[client]).hash(&mut hasher);
        self.digests[client] = hasher.finish();
        let mut ended = None;
        for deed in deeds {
            let history = &mut self.histories[usize::from(register)];
            match deed {
                Deed::Send(command) => self.open_round(client, register, command, server),
                Deed::Leave(command) => self.send(server.command(register, command)),
                Deed::May(effect) => Rc::make_mut(history).may(id, effect),
                Deed::End(outcome) => {
                    let end = Rc::make_mut(history).end(id, &outcome);
                    end.map_err(|_| Violation::NoLinearization)?;
                    ended = Some(outcome);
                }
            }
        }
        Ok(ended)
    }

    fn open_round(
        &mut self,
        client: usize,
        register: u8,
        command: RegisterCommand,
        server: &mut Server,
    ) {
        if self.rounds_left[client] == 0 {
            return;
        }
        self.rounds_left[client] -= 1;
        let number = server.command(register, command.clone());
        match command {
            RegisterCommand::Read => {}
            RegisterCommand::Accept { value, .. } if value.is_empty() => {
                self.deletions.begin(number, self.nodes.len());
                self.send(number);
            }
            _ => self.send(number),
        }
        let answers = vec![None; self.nodes.len()];
        self.rounds[client] = Some(Round { command: number, answers });
    }

    fn send(&mut self, command: Command) {
        if let Err(place) = self.sent.binary_search(&command) {
            self.sent.insert(place, command);
        }
    }

    /// The number of the client's call in the history.
    fn call(&self, client: usize) -> u8 {
        client as u8 * 16 + self.clients[client].begun
    }

    /// A hash that does not tell which node is which.
    pub(crate) fn hash(&self) -> u64 {
        let column = |node: usize| {
            let answers = self.rounds.iter().map(|round| round.as_ref()?.answers[node]);
            let lost = self.lost >> node & 1;
            (self.nodes[node], lost, answers.collect::<Vec<_>>(), self.deletions.of_node(node))
        };
        let mut columns: Vec<_> = (0..self.nodes.len()).map(column).collect();
        columns.sort();
        let mut hasher = DefaultHasher::new();
        columns.hash(&mut hasher);
        (&self.sent, &self.digests, &self.rounds_left, self.losses_left).hash(&mut hasher);
        for round in &self.rounds {
            round.as_ref().map(|round| round.command).hash(&mut hasher);
        }
        self.deletions.commands().for_each(|command| command.hash(&mut hasher));
        self.histories.hash(&mut hasher);
        hasher.finish()
    }
}
