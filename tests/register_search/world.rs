//! A state of the search: nodes, clients, repairers, and what is on its way between them.
//!
//! Every command that was ever sent may be carried out by a node at any time, again, or never. An
//! actor hears the answer to the first time that a node carries out the command of its round.
//! Which answers it has when the round ends is a part of that step: one that does not come, or
//! comes late, is one that it has not. An actor stops for ever if no step of it follows.

use crate::actor::Actor;
use crate::client::Deed;
use crate::deletions::Deletions;
use crate::history::{History, Outcome};
use crate::mistake::Mistake;
use crate::plan::{Call, Plan};
use crate::repairer::Next;
use crate::round::{Round, Sent};
use crate::server::{Answer, Asked, Command, LIST, NodeState, Server};
use crate::step::{Step, Violation};
use models::explore;
use redlatch_registers::{MarkStep, RegisterCommand, Replies};
use std::rc::Rc;

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) nodes: Vec<NodeState>,
    /// The states that each node had, if it may come back with one of them.
    pub(crate) older: Vec<Vec<NodeState>>,
    pub(crate) sent: Sent,
    pub(crate) rounds: Vec<Option<Round>>,
    pub(crate) deletions: Deletions,
    /// The clients of the plan, its repairers, and those that come later.
    pub(crate) actors: Vec<Actor>,
    pub(crate) digests: Vec<u64>,
    pub(crate) rounds_left: Vec<usize>,
    pub(crate) histories: Vec<Rc<History>>,
    pub(crate) losses_left: usize,
    /// The nodes that have lost something, or have given up their marks for a repair, as bits.
    pub(crate) lost: u8,
}

impl World {
    pub(crate) fn new(plan: &Plan, server: &mut Server) -> Self {
        // Nodes that are never told apart make fewer states.
        let is_alike = plan.repairers.is_empty();
        let formed = |node| server.formed(if is_alike { 0 } else { node }, plan.nodes);
        let nodes: Vec<NodeState> = (0..plan.nodes).map(formed).collect();
        let mut world = Self {
            older: nodes.iter().map(|node| vec![*node]).collect(),
            nodes,
            sent: Sent::default(),
            rounds: Vec::new(),
            deletions: Deletions::default(),
            actors: Vec::new(),
            digests: Vec::new(),
            rounds_left: Vec::new(),
            histories: (0..plan.registers)
                .map(|_| Rc::new(History::new()))
                .collect(),
            losses_left: plan.losses,
            lost: 0,
        };
        for index in 0..plan.clients.len() {
            world.join(Actor::client(index, plan, true));
        }
        for index in 0..plan.repairers.len() {
            world.join(Actor::repairer(plan.clients.len() + index, plan));
        }
        world
    }

    /// One more actor.
    pub(crate) fn join(&mut self, actor: Actor) -> usize {
        self.actors.push(actor);
        self.digests.push(0);
        self.rounds.push(None);
        self.rounds_left.push(0);
        self.actors.len() - 1
    }

    pub(crate) fn can_begin(&self, plan: &Plan, actor: usize) -> bool {
        match &self.actors[actor] {
            Actor::Client(client) => {
                client.register().is_none() && usize::from(client.begun) < plan.clients[actor].len()
            }
            Actor::Repairer(repairer) => {
                // Before, there is nothing to repair.
                self.lost != 0 && repairer.is_idle() && repairer.begun < plan.repairs_max
            }
        }
    }

    /// What the actor calls next, if it is a client.
    pub(crate) fn next_call(&self, plan: &Plan, actor: usize) -> Option<Call> {
        let Actor::Client(client) = &self.actors[actor] else {
            return None;
        };
        Some(plan.clients[actor][usize::from(client.begun)])
    }

    /// What a node is to carry out in the actor's round. `None`: it lists its names.
    pub(crate) fn asked<'a>(
        &self,
        actor: usize,
        node: usize,
        server: &'a Server,
    ) -> Option<&'a Asked> {
        let command = self.rounds[actor].as_ref()?.asked[node]?;
        (command != LIST).then(|| server.asked(command))
    }

    /// Can the node lose something, and which?
    pub(crate) fn can_lose(&self, node: usize, plan: &Plan) -> bool {
        self.losses_left > 0 && (self.lost >> node & 1 == 0 || !plan.repairers.is_empty())
    }

    /// How many nodes were given a vote.
    pub(crate) fn repairs(&self) -> u64 {
        let repairs = self.actors.iter().map(|actor| match actor {
            Actor::Client(_) => 0,
            Actor::Repairer(repairer) => repairer.entered,
        });
        repairs.sum()
    }

    /// How many older states of a node there are.
    pub(crate) fn older(&self, node: usize) -> usize {
        self.older[node].len()
    }

    /// Does it change anything that the node carries this out?
    pub(crate) fn matters(&self, command: Command, node: usize, server: &mut Server) -> bool {
        if self
            .rounds
            .iter()
            .flatten()
            .any(|round| round.awaits(command, node))
        {
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
            Step::Begin(actor) => match self.next_call(plan, actor) {
                Some(call) => return self.begin(actor, call, plan, server),
                None => {
                    self.rounds_left[actor] = plan.rounds_of(actor);
                    let next = self.actors[actor].as_repairer().begin();
                    self.go_on(actor, Ok(next), server);
                }
            },
            Step::Arrive(actor, node) => {
                let round = self.rounds[actor].as_ref().expect("a round");
                let command = round.asked[node].expect("it was asked");
                let answer = self.carry_out(command, node, plan, server);
                let round = self.rounds[actor].as_mut().expect("a round");
                round.answers[node] = Some(answer);
            }
            Step::Again(command, node) => {
                self.carry_out(command, node, plan, server);
            }
            Step::Hear(actor, nodes) => return self.hear(actor, nodes, plan, server),
            Step::Lose(node) | Step::Restart(node, _) => {
                let now = self.nodes[node];
                self.nodes[node] = match step {
                    Step::Restart(_, older) => server.restarted(now, self.older[node][older]),
                    _ => server.emptied(now),
                };
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
        let is_changed = state != self.nodes[node];
        self.nodes[node] = state;
        if plan.comes_back_older && is_changed {
            self.older[node].push(state);
        }
        if command == LIST {
            return answer;
        }
        if let RegisterCommand::Mark(MarkStep::Join { .. }) = server.asked(command).command {
            self.lost |= u8::from(is_changed) << node;
        }
        let needed = match plan.mistake {
            Some(Mistake::CollectsAtMajority) => self.nodes.len() / 2 + 1,
            _ => self.nodes.len(),
        };
        if self
            .deletions
            .is_complete(command, node, server.is_done(answer), needed)
        {
            let deletion = server.asked(command).clone();
            let RegisterCommand::Accept { ballot, .. } = deletion.command else {
                unreachable!()
            };
            let command = RegisterCommand::Collect(Some(ballot));
            self.sent.send(
                server.command(Asked {
                    command,
                    ..deletion
                }),
                self.all(),
            );
        }
        answer
    }

    /// All nodes, as bits.
    fn all(&self) -> u8 {
        ((1_u16 << self.nodes.len()) - 1) as u8
    }

    pub(crate) fn begin(
        &mut self,
        client: usize,
        call: Call,
        plan: &Plan,
        server: &mut Server,
    ) -> Result<Option<Outcome>, Violation> {
        let mut deeds = Vec::new();
        self.rounds_left[client] = plan.rounds_of(client);
        self.actors[client].as_client().begin(call, &mut deeds);
        let (verb, register) = call;
        let id = self.call(client);
        Rc::make_mut(&mut self.histories[usize::from(register)]).begin(id, verb.looks());
        self.act(client, register, deeds, server)
    }

    fn hear(
        &mut self,
        actor: usize,
        nodes: u8,
        plan: &Plan,
        server: &mut Server,
    ) -> Result<Option<Outcome>, Violation> {
        let round = self.rounds[actor].take().expect("a round");
        let heard = |node: usize| round.answers[node].filter(|_| nodes >> node & 1 == 1);
        let places = || 0..round.answers.len();
        let listed = places()
            .find(|node| round.asked[*node] == Some(LIST))
            .map(heard);
        if let Actor::Repairer(_) = &self.actors[actor] {
            let replies = places().map(|node| heard(node).filter(|_| listed.is_none()));
            let replies = replies.map(|it| it.map(|answer| server.reply(answer).clone()));
            let replies = Replies(replies.collect());
            let names = listed.flatten().map(|state| server.names(state));
            let next = self.actors[actor]
                .as_repairer()
                .hear(&replies, names, plan.mistake);
            self.go_on(actor, next, server);
            return Ok(None);
        }
        let replies = places().map(|node| heard(node).map(|it| server.reply(it).clone()));
        let replies = Replies(replies.collect());
        let mut deeds = Vec::new();
        let client = self.actors[actor].as_client();
        let register = client.register().expect("a call");
        client.hear(&replies, plan.mistake, &mut deeds);
        self.act(actor, register, deeds, server)
    }

    /// A repairer goes on, or ends its call.
    fn go_on(&mut self, actor: usize, next: Next, server: &mut Server) {
        if let Ok(ask) = next {
            self.open_round(actor, ask, server);
        }
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
        self.digests[client] = explore::hash(&format!("{:?}", self.actors[client]));
        let mut ended = None;
        for deed in deeds {
            let history = &mut self.histories[usize::from(register)];
            match deed {
                Deed::Send(ask) => self.open_round(client, ask, server),
                Deed::Leave(ask) => {
                    for (node, asked) in ask {
                        self.send(node, asked.expect("a command"), server);
                    }
                }
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

    /// The number of the client's call in the history.
    fn call(&mut self, client: usize) -> u8 {
        client as u8 * 16 + self.actors[client].as_client().begun
    }
}
