//! The state of all nodes, connections and clients, and the steps from one state to the next.

use crate::client::{Answer, Client, Phase};
use crate::fault::Fault;
use crate::kind::Kind;
use crate::node::{Key, Node, Outcome, Request};
use crate::scheme::Scheme;
use crate::token::Token;
use crate::violation::Violation;

/// A command on its way to a node. Answers to the commands of an earlier round are no votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Command {
    pub(crate) round: u16,
    pub(crate) request: Request,
}

/// What is on its way from a node to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Reply {
    /// To a command. The grant or the reservation of a node that may have forgotten a token does
    /// not count.
    Outcome { command: Command, outcome: Outcome, counts: bool },
    /// The node cannot be reached.
    Unreachable(Command),
    /// The bell of this waiter has changed.
    Push { id: Token, counts: bool },
}

/// A client's connection to a node. What is sent on it arrives in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Link {
    pub(crate) commands: Vec<Command>,
    pub(crate) replies: Vec<Reply>,
    /// The commands on connections that were cut.
    pub(crate) late: Vec<Request>,
    /// The waiter whose bell the node watches for this connection, until it has changed once.
    pub(crate) watched: Option<Token>,
    /// The answer in the client's present round.
    pub(crate) answer: Answer,
    /// Does the client believe that the node has reserved the key for it?
    pub(crate) is_hinted: bool,
    /// Did the client, in this round, restore its share there?
    pub(crate) restores: bool,
}

/// A node with its connections, one for each client.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Site {
    pub(crate) node: Node,
    pub(crate) links: Vec<Link>,
}

/// What still has a bearing on the order of grants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Order {
    /// Nobody may be overtaken.
    #[default]
    Strict,
    /// The key may be free while waiters are queued, so a try may overtake, but no claim.
    OfClaims,
    /// Places may be lost.
    None,
}

/// One state of a history.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) sites: Vec<Site>,
    pub(crate) clients: Vec<Client>,
    pub(crate) order: Order,
    pub(crate) faults_left: u8,
    pub(crate) looks_left: u16,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A client tries to take the lock.
    Begin(usize),
    /// A node carries out the next command of a client: node, client.
    Carry(usize, usize),
    /// A client receives the next reply of a node: node, client.
    Receive(usize, usize),
    /// A waiter looks of its own accord.
    Look(usize),
    /// A holder releases the lock.
    Release(usize),
    Fault(Fault),
}

impl World {
    pub(crate) fn new(scheme: &Scheme) -> Self {
        let links = vec![Link::default(); scheme.clients];
        let sites = vec![Site { node: Node::default(), links }; scheme.nodes];
        let clients = (0..scheme.clients).map(|index| Client::new(index, scheme)).collect();
        let order = if scheme.has_plain_client { Order::OfClaims } else { Order::Strict };
        let (faults_left, looks_left) = (scheme.faults_max, scheme.looks_max);
        Self { sites, clients, order, faults_left, looks_left }
    }

    /// The same state with the nodes in one order: their names make no difference.
    pub(crate) fn sorted(&self) -> Self {
        let mut world = self.clone();
        world.sites.sort_unstable();
        world
    }

    /// All steps that are possible without a fault, except for looks.
    pub(crate) fn steps(&self, steps: &mut Vec<Step>) {
        for (client, state) in self.clients.iter().enumerate() {
            match state.phase {
                Phase::Idle if state.calls_left > 0 => steps.push(Step::Begin(client)),
                Phase::Holding | Phase::Expired => steps.push(Step::Release(client)),
                _ => {}
            }
        }
        for (node, site) in self.sites.iter().enumerate() {
            for (client, link) in site.links.iter().enumerate() {
                if !link.commands.is_empty() {
                    steps.push(Step::Carry(node, client));
                }
                if !link.replies.is_empty() {
                    steps.push(Step::Receive(node, client));
                }
            }
        }
    }

    /// The looks that are possible.
    pub(crate) fn looks(&self, steps: &mut Vec<Step>) {
        if self.looks_left > 0 {
            let may_look = |client: &usize| self.clients[*client].phase.may_look();
            steps.extend((0..self.clients.len()).filter(may_look).map(Step::Look));
        }
    }

    /// Takes a possible step.
    pub(crate) fn take(&mut self, step: Step, scheme: &Scheme) -> Result<(), Violation> {
        match step {
            Step::Begin(client) => {
                self.begin(client, scheme);
                Ok(())
            }
            Step::Carry(node, client) => {
                self.carry(node, client, scheme);
                Ok(())
            }
            Step::Receive(node, client) => self.receive(node, client, scheme),
            Step::Look(client) => {
                self.looks_left -= 1;
                self.look_again(client, scheme);
                Ok(())
            }
            Step::Release(client) => {
                self.end_call(client, scheme);
                Ok(())
            }
            Step::Fault(fault) => self.suffer(fault, scheme),
        }
    }

    fn carry(&mut self, node: usize, client: usize, scheme: &Scheme) {
        let command = self.sites[node].links[client].commands.remove(0);
        let is_dead = self.clients[client].phase == Phase::Dead;
        let reply = if self.sites[node].node.is_down {
            Reply::Unreachable(command)
        } else {
            if let (Request::Queue { id, .. }, false) = (command.request, is_dead) {
                // The client sends the command that watches the bell before this one.
                self.sites[node].links[client].watched = Some(id);
            }
            let outcome = self.run(node, command.request, scheme);
            let counts = self.sites[node].node.forgotten.is_empty();
            Reply::Outcome { command, outcome, counts }
        };
        // The answer to a removal matters only if a connection may end before it arrives.
        let is_cut = scheme.allows(Kind::Cut) || scheme.allows(Kind::Restart);
        if !is_dead && (is_cut || !command.request.is_removal()) {
            self.sites[node].links[client].replies.push(reply);
        }
    }

    /// A node carries out a request, and pushes what changed to those who watch it.
    pub(crate) fn run(&mut self, node: usize, request: Request, scheme: &Scheme) -> Outcome {
        let mut bells = Vec::new();
        let site = &mut self.sites[node];
        let outcome = site.node.run(request, scheme, &mut bells);
        let counts = site.node.forgotten.is_empty();
        for id in bells {
            let link = &mut site.links[usize::from(id.client)];
            if link.watched == Some(id) {
                link.watched = None;
                link.replies.push(Reply::Push { id, counts });
            }
        }
        outcome
    }

    fn receive(&mut self, node: usize, client: usize, scheme: &Scheme) -> Result<(), Violation> {
        let reply = self.sites[node].links[client].replies.remove(0);
        self.clients[client].note(&mut self.sites[node].links[client], reply, scheme);
        self.decide(client, scheme)
    }

    /// Sends a command to all nodes in a new round.
    pub(crate) fn ask(&mut self, client: usize, request: Request) {
        self.clients[client].round += 1;
        let round = self.clients[client].round;
        for site in &mut self.sites {
            site.links[client].answer = Answer::Pending;
            site.links[client].restores = false;
            site.links[client].commands.push(Command { round, request });
        }
    }

    /// Can this token no longer be taken for that of a lock or of an attempt? Then its ttl may
    /// pass.
    pub(crate) fn has_ended(&self, token: Token) -> bool {
        let owner = &self.clients[usize::from(token.client)];
        let is_present = matches!(owner.phase, Phase::Trying | Phase::Claiming | Phase::Holding);
        owner.token != token || !is_present
    }

    /// Is this the id of a client that waits?
    pub(crate) fn is_waiting(&self, id: Token) -> bool {
        let owner = &self.clients[usize::from(id.client)];
        owner.id == id && owner.phase.is_queued()
    }

    /// Nobody wants the lock any more.
    pub(crate) fn is_over(&self) -> bool {
        let is_done = |client: &Client| match client.phase {
            Phase::Idle => client.calls_left == 0,
            phase => phase == Phase::Dead,
        };
        self.clients.iter().all(is_done)
    }

    pub(crate) fn is_clean(&self) -> bool {
        let is_clean = |node: &Node| node.key == Key::Free && node.queue.is_empty();
        self.sites.iter().all(|site| site.node.is_down || is_clean(&site.node))
    }
}
