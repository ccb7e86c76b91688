//! Faults of clients, nodes and connections, and the passing of time.

use crate::client::{Answer, Phase};
use crate::grant::Order;
use crate::kind::Kind;
use crate::node::Entry;
use crate::pace::Pace;
use crate::request::Word;
use crate::scheme::Scheme;
use crate::token::Token;
use crate::violation::Violation;
use crate::world::{Command, Reply, World};

/// A fault, or one of its consequences. Where there are two numbers, the node is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    GiveUp(usize),
    Die(usize),
    /// The last command of a dead client was never sent.
    Vanish(usize, usize),
    /// A node notices that the connection of a dead client is gone.
    Notice(usize, usize),
    /// From now on a waiter is no good.
    Slow(usize, Pace),
    /// A waiter that is no good leaves, and wants the lock no more.
    Stop(usize),
    /// The time has passed for which a set may keep a part from others.
    LosePatience(usize),
    /// The lease of the waiter in this place ends.
    EndLease(usize, usize),
    EndReservation(usize),
    EndToken(usize, Token),
    /// All tokens have ended that a restarted node forgot.
    EndQuarantine(usize),
    TimeOut(usize),
    LosePush(usize, usize),
    RepeatPush(usize, usize),
    FalsePush(usize, usize),
    Cut(usize, usize),
    /// A command of an earlier connection arrives; it may arrive once more.
    Late {
        node: usize,
        client: usize,
        index: usize,
        again: bool,
    },
    /// A command of an earlier connection never arrives.
    Never {
        node: usize,
        client: usize,
        index: usize,
    },
    LoseQueue(usize),
    Restart(usize),
    GoDown(usize),
    ComeUp(usize),
}

impl Fault {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::GiveUp(_) => Kind::GiveUp,
            Self::Die(_) | Self::Vanish(..) | Self::Notice(..) => Kind::Death,
            Self::Slow(..) | Self::Stop(_) => Kind::Slow,
            Self::LosePatience(_) => Kind::Patience,
            Self::EndLease(..) => Kind::Lease,
            Self::EndReservation(_) => Kind::Reservation,
            Self::EndToken(..) => Kind::Token,
            Self::TimeOut(_) => Kind::Timeout,
            Self::LosePush(..) | Self::RepeatPush(..) | Self::FalsePush(..) => Kind::Push,
            Self::Cut(..) | Self::Late { .. } | Self::Never { .. } => Kind::Cut,
            Self::LoseQueue(_) => Kind::QueueLoss,
            Self::Restart(_) | Self::EndQuarantine(_) => Kind::Restart,
            Self::GoDown(_) | Self::ComeUp(_) => Kind::Down,
        }
    }

    /// Is it the consequence of another fault, so that it is not counted?
    pub(crate) fn is_consequence(self) -> bool {
        matches!(
            self,
            Self::Vanish(..)
                | Self::Notice(..)
                | Self::Stop(_)
                | Self::EndToken(..)
                | Self::EndQuarantine(_)
                | Self::Late { .. }
                | Self::Never { .. }
                | Self::ComeUp(_)
        )
    }
}

impl World {
    /// Lets a possible fault happen.
    pub(crate) fn suffer(&mut self, fault: Fault, scheme: &Scheme) -> Result<(), Violation> {
        if !fault.is_consequence() {
            self.faults_left = self.faults_left.saturating_sub(1);
        }
        match fault {
            Fault::GiveUp(client) => self.end_call(client, scheme),
            Fault::Die(client) => self.die(client),
            Fault::Slow(client, pace) => {
                self.slow_down(client, pace, scheme);
                return self.decide(client, scheme);
            }
            Fault::Stop(client) => {
                self.end_call(client, scheme);
                self.clients[client].calls_left = 0;
            }
            Fault::LosePatience(client) => self.clients[client].is_patient = false,
            Fault::TimeOut(client) => return self.time_out(client, scheme),
            Fault::Cut(node, client) => {
                self.order = Order::None;
                self.cut(node, client, true);
                return self.decide(client, scheme);
            }
            Fault::Late {
                node,
                client,
                index,
                again,
            } => {
                let late = &mut self.sites[node].links[client].late;
                let request = if again {
                    late[index]
                } else {
                    late.remove(index)
                };
                if !self.sites[node].is_down {
                    self.run(node, request, scheme);
                }
            }
            Fault::Never {
                node,
                client,
                index,
            } => {
                self.sites[node].links[client].late.remove(index);
            }
            Fault::EndToken(node, token) => {
                self.sites[node].node.end_token(token);
                self.order = self.order.max(Order::OfClaims);
            }
            Fault::Restart(node) => return self.restart(node, scheme),
            _ => self.pass(fault),
        }
        Ok(())
    }

    /// What happens to one node or connection, and concerns no client at once.
    fn pass(&mut self, fault: Fault) {
        match fault {
            Fault::Vanish(node, client) => {
                self.sites[node].links[client].commands.pop();
            }
            Fault::Notice(node, client) => self.sites[node].links[client].is_heard = false,
            Fault::LosePush(node, client) => {
                self.sites[node].links[client].replies.remove(0);
            }
            Fault::RepeatPush(node, client) => {
                let push = self.sites[node].links[client].replies[0];
                self.sites[node].links[client].replies.push(push);
            }
            Fault::FalsePush(node, client) => {
                let id = self.clients[client].id;
                let push = Reply::Push {
                    id,
                    word: Word::Reserved,
                    counts: true,
                };
                self.sites[node].links[client].replies.push(push);
            }
            Fault::EndLease(node, place) => {
                let waiter = self.sites[node].node.waiter_mut(place);
                waiter.entry = Entry::Gone;
                let id = waiter.id;
                if self.is_waiting(id) {
                    self.order = Order::None;
                }
            }
            Fault::EndReservation(node) => {
                let site = &mut self.sites[node];
                let claimants = site.node.claimants();
                site.node.end_reservation();
                for id in claimants {
                    site.links[usize::from(id.client)].is_firm = false;
                }
                if site.node.is_free() {
                    self.order = self.order.max(Order::OfClaims);
                }
            }
            Fault::LoseQueue(node) => {
                self.sites[node].node.lose_queue();
                self.order = Order::None;
            }
            Fault::EndQuarantine(node) => self.sites[node].forgotten.clear(),
            Fault::GoDown(node) => self.sites[node].is_down = true,
            Fault::ComeUp(node) => self.sites[node].is_down = false,
            _ => unreachable!("the fault of a client"),
        }
    }

    fn die(&mut self, client: usize) {
        self.leave_order(client);
        self.clients[client].phase = Phase::Dead;
        self.clients[client].before = 0;
        for site in &mut self.sites {
            let link = &mut site.links[client];
            link.replies.clear();
            (link.is_hinted, link.asks) = (false, None);
        }
    }

    fn slow_down(&mut self, client: usize, pace: Pace, scheme: &Scheme) {
        self.leave_order(client);
        self.clients[client].pace = pace;
        if pace == Pace::Minority {
            for site in self.sites.iter_mut().skip(scheme.nodes - scheme.quorum()) {
                let link = &mut site.links[client];
                link.is_cut_off = true;
                link.replies.clear();
                if link.answer == Answer::Pending {
                    link.answer = Answer::NoVote;
                }
            }
        }
    }

    fn time_out(&mut self, client: usize, scheme: &Scheme) -> Result<(), Violation> {
        match self.clients[client].phase {
            phase @ (Phase::Trying | Phase::Claiming) => {
                self.clients[client].misses += u8::from(phase == Phase::Claiming);
                self.fail(client, scheme);
            }
            Phase::Joining => self.join(client, scheme),
            Phase::Looking => self.wait(client, false),
            _ => self.clients[client].phase = Phase::Expired,
        }
        self.claim_if_reserved(client, scheme)
    }

    /// A connection ends. The client repeats the removals that were not answered.
    fn cut(&mut self, node: usize, client: usize, arrives_late: bool) {
        let state = &self.clients[client];
        let link = &mut self.sites[node].links[client];
        let replies = link.replies.drain(..);
        let carried = replies.filter_map(|reply| match reply {
            Reply::Outcome { command, .. } | Reply::Unreachable(command) => Some(command),
            Reply::Push { .. } => None,
        });
        let unanswered: Vec<Command> = carried.chain(link.commands.iter().copied()).collect();
        if unanswered
            .iter()
            .any(|command| command.round == state.round)
        {
            link.answer = Answer::NoVote;
        }
        if arrives_late {
            link.late
                .extend(link.commands.iter().map(|command| command.request));
            link.late.sort_unstable();
        } else {
            link.late.clear();
        }
        link.is_heard = false;
        if state.phase.is_queued() {
            link.asks = Some(Word::AskNow);
        }
        let removals = unanswered
            .into_iter()
            .filter(|command| command.request.is_removal());
        link.commands = match state.phase {
            Phase::Dead => Vec::new(),
            _ => removals.collect(),
        };
    }

    fn restart(&mut self, node: usize, scheme: &Scheme) -> Result<(), Violation> {
        let site = &mut self.sites[node];
        site.forgotten
            .extend(std::mem::take(&mut site.node).tokens());
        self.order = Order::None;
        for client in 0..self.clients.len() {
            self.cut(node, client, false);
            self.decide(client, scheme)?;
        }
        Ok(())
    }
}
