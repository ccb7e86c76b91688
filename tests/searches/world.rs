//! The state of all nodes, connections and clients, and the steps from one state to the next.

use crate::client::{Answer, Client, Phase};
use crate::fault::Fault;
use crate::grant::Order;
use crate::kind::Kind;
use crate::node::{Node, Outcome, Request};
use crate::pace::Pace;
use crate::request::Word;
use crate::scheme::Scheme;
use crate::server::{self, Done};
use crate::token::Token;
use crate::violation::Violation;

/// A command on its way to a node. Answers to the commands of an earlier round are not votes.
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
    Outcome {
        command: Command,
        outcome: Outcome,
        counts: bool,
    },
    /// The node cannot be reached.
    Unreachable(Command),
    /// The node has a word for this waiter.
    Push { id: Token, word: Word, counts: bool },
}

/// A client's connection to a node. What is sent on it arrives in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Link {
    pub(crate) commands: Vec<Command>,
    pub(crate) replies: Vec<Reply>,
    /// The commands on connections that were cut.
    pub(crate) late: Vec<Request>,
    /// Does the server believe that the connection is there, on which it tells the client's waiter?
    pub(crate) is_heard: bool,
    /// Does nothing get through in either direction, although the client lives?
    pub(crate) is_cut_off: bool,
    /// Has the waiter a place on the node, which nothing but a step of its own takes from it?
    pub(crate) is_firm: bool,
    /// The answer in the client's present round.
    pub(crate) answer: Answer,
    /// Does the client believe that the node has reserved the key for it?
    pub(crate) is_hinted: bool,
    /// Was the client called on to ask?
    pub(crate) asks: Option<Word>,
    /// Did the client, in this round, restore its share there?
    pub(crate) restores: bool,
}

/// A node with its connections, one for each client.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Site {
    pub(crate) node: Node,
    pub(crate) links: Vec<Link>,
    /// The tokens that the node forgot in restarts. As long as one of them may be valid, its grants
    /// do not count.
    pub(crate) forgotten: Vec<Token>,
    pub(crate) is_down: bool,
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
        let sites = vec![
            Site {
                links,
                ..Site::default()
            };
            scheme.nodes
        ];
        let clients = (0..scheme.clients)
            .map(|index| Client::new(index, scheme))
            .collect();
        let order = if scheme.has_plain_client {
            Order::OfClaims
        } else {
            Order::Strict
        };
        let faults_left = scheme.faults_max;
        let looks_left = scheme.looks_max;
        Self {
            sites,
            clients,
            order,
            faults_left,
            looks_left,
        }
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

    /// The looks that are possible. Who is told to look may do so at any time.
    pub(crate) fn looks(&self, scheme: &Scheme, steps: &mut Vec<Step>) {
        let is_told = |client: usize| {
            self.sites
                .iter()
                .any(|site| site.links[client].asks == Some(Word::AskNow))
        };
        let may_look = |client: &usize| {
            let phase = self.clients[*client].phase;
            let is_ready = phase == Phase::Waiting || phase == Phase::Holding && scheme.extends;
            is_ready && (self.looks_left > 0 || is_told(*client))
        };
        steps.extend((0..self.clients.len()).filter(may_look).map(Step::Look));
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
                self.looks_left = self.looks_left.saturating_sub(1);
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
        let site = &mut self.sites[node];
        let link = &mut site.links[client];
        let command = link.commands.remove(0);
        let is_dead = self.clients[client].phase == Phase::Dead;
        let reply = if site.is_down || link.is_cut_off {
            Reply::Unreachable(command)
        } else {
            // The client subscribes before it enters the queue.
            link.is_heard |= matches!(command.request, Request::Queue { .. });
            let outcome = self.run(node, command.request, scheme);
            let counts = self.sites[node].forgotten.is_empty();
            Reply::Outcome {
                command,
                outcome,
                counts,
            }
        };
        // The answer to a removal matters only if a connection may end before it arrives.
        let is_cut = scheme.allows(Kind::Cut) || scheme.allows(Kind::Restart);
        if !is_dead && (is_cut || !command.request.is_removal()) {
            self.sites[node].links[client].replies.push(reply);
        }
    }

    /// A node carries out a request, and tells those about it whom it concerns.
    pub(crate) fn run(&mut self, node: usize, request: Request, scheme: &Scheme) -> Outcome {
        let site = &mut self.sites[node];
        let hearing = site.links.iter().enumerate();
        let hearing = hearing
            .map(|(client, link)| u8::from(link.is_heard) << client)
            .sum();
        let Done {
            node: changed,
            outcome,
            told,
        } = server::run(&site.node, request, hearing, scheme);
        site.node = changed;
        let counts = site.forgotten.is_empty();
        for (id, word) in told {
            let link = &mut site.links[usize::from(id.client)];
            let is_dead = self.clients[usize::from(id.client)].phase == Phase::Dead;
            if !is_dead && !link.is_cut_off {
                link.replies.push(Reply::Push { id, word, counts });
            }
        }
        if let Request::Queue { id, .. } = request {
            self.note_place(node, id, scheme);
        }
        outcome
    }

    /// A waiter has asked a node for its place. If a majority has it now, and had not before, those
    /// may still be served before it whose attempt is under way.
    fn note_place(&mut self, node: usize, id: Token, scheme: &Scheme) {
        let client = usize::from(id.client);
        let was_firm = self.is_firm(client, scheme);
        let site = &mut self.sites[node];
        site.links[client].is_firm =
            self.clients[client].id == id && site.node.has_waiter(id, self.clients[client].awaited);
        if !was_firm && self.is_firm(client, scheme) {
            for other in &mut self.clients {
                if matches!(other.phase, Phase::Trying | Phase::Claiming) {
                    other.before &= !(1 << client);
                }
            }
        }
    }

    /// Has the waiter its place on a majority?
    pub(crate) fn is_firm(&self, client: usize, scheme: &Scheme) -> bool {
        self.sites
            .iter()
            .filter(|site| site.links[client].is_firm)
            .count()
            >= scheme.quorum()
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
        let is_present = matches!(
            owner.phase,
            Phase::Trying | Phase::Claiming | Phase::Holding
        );
        owner.token != token || !is_present
    }

    /// Is this the id of a client that waits?
    pub(crate) fn is_waiting(&self, id: Token) -> bool {
        let owner = &self.clients[usize::from(id.client)];
        owner.id == id && owner.phase.is_queued()
    }

    /// Nobody wants the lock any more, except for those who cannot take it.
    pub(crate) fn is_over(&self) -> bool {
        let is_done = |client: &Client| match client.phase {
            Phase::Idle => client.calls_left == 0,
            phase => phase == Phase::Dead,
        };
        self.clients
            .iter()
            .all(|client| client.pace != Pace::Prompt || is_done(client))
    }

    /// Is the lock free although somebody waits who can take it?
    pub(crate) fn lies_free(&self) -> bool {
        let holds = |client: &Client| matches!(client.phase, Phase::Holding | Phase::Expired);
        let waits = |client: &Client| client.phase.is_queued() && client.pace == Pace::Prompt;
        let is_left = |site: &&Site| site.node.is_left();
        let left = self.sites.iter().filter(is_left).count();
        !self.clients.iter().any(holds)
            && self.clients.iter().any(waits)
            && left * 2 < self.sites.len()
            && self.sites.iter().all(|site| site.forgotten.is_empty())
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.sites
            .iter()
            .all(|site| site.is_down || site.node.is_empty())
    }
}
