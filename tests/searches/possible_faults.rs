//! Which faults are possible in a state.

use crate::client::Phase;
use crate::fault::Fault;
use crate::mistake::Mistake;
use crate::pace::Pace;
use crate::scheme::Scheme;
use crate::token::Token;
use crate::world::{Reply, Step, World};

impl World {
    /// The faults that are possible now.
    pub(crate) fn faults(&self, scheme: &Scheme, steps: &mut Vec<Step>) {
        let first = steps.len();
        for client in 0..self.clients.len() {
            self.faults_of_client(client, scheme, steps);
            for node in 0..self.sites.len() {
                self.faults_of_link(node, client, steps);
            }
        }
        for node in 0..self.sites.len() {
            self.faults_of_node(node, scheme, steps);
        }
        let mut index = 0;
        steps.retain(|step| {
            index += 1;
            let Step::Fault(fault) = step else {
                return true;
            };
            let is_paid = fault.is_consequence() || self.faults_left > 0;
            index <= first || is_paid && scheme.allows(fault.kind())
        });
    }

    fn faults_of_client(&self, client: usize, scheme: &Scheme, steps: &mut Vec<Step>) {
        let phase = self.clients[client].phase;
        if matches!(phase, Phase::Idle | Phase::Dead) {
            return;
        }
        steps.push(Step::Fault(Fault::Die(client)));
        let holds = matches!(phase, Phase::Holding | Phase::Expired);
        if !holds && !scheme.is_plain(client) {
            steps.push(Step::Fault(Fault::GiveUp(client)));
        }
        let is_last = self
            .clients
            .iter()
            .filter(|client| client.is_good())
            .count()
            <= 1;
        if phase == Phase::Waiting && self.clients[client].is_good() && !is_last {
            // One that asks again and again is only late when it claims.
            let paces = [Pace::Minority, Pace::Late, Pace::Idle];
            // Several that renew their entries on one node have it reserved for them in turns.
            let is_first = |pace| self.clients.iter().all(|client| client.pace != pace);
            let paces = &paces[..if scheme.is_mute { 2 } else { 3 }];
            for pace in paces
                .iter()
                .filter(|pace| is_first(**pace) || **pace != Pace::Minority)
            {
                steps.push(Step::Fault(Fault::Slow(client, *pace)));
            }
        }
        if self.clients[client].may_lose_patience() {
            steps.push(Step::Fault(Fault::LosePatience(client)));
        }
        if !matches!(phase, Phase::Waiting | Phase::Expired) {
            steps.push(Step::Fault(Fault::TimeOut(client)));
        }
    }

    fn faults_of_link(&self, node: usize, client: usize, steps: &mut Vec<Step>) {
        let link = &self.sites[node].links[client];
        let phase = self.clients[client].phase;
        if let Some(Reply::Push { .. }) = link.replies.first() {
            steps.push(Step::Fault(Fault::LosePush(node, client)));
            steps.push(Step::Fault(Fault::RepeatPush(node, client)));
        }
        if phase.is_queued() && !link.is_hinted {
            steps.push(Step::Fault(Fault::FalsePush(node, client)));
        }
        if phase == Phase::Dead && !link.commands.is_empty() {
            steps.push(Step::Fault(Fault::Vanish(node, client)));
        }
        if phase == Phase::Dead && link.commands.is_empty() && link.is_heard {
            steps.push(Step::Fault(Fault::Notice(node, client)));
        }
        let is_idle = link.commands.is_empty() && link.replies.is_empty();
        if phase != Phase::Dead && (!is_idle || link.is_heard) {
            steps.push(Step::Fault(Fault::Cut(node, client)));
        }
        for index in 0..link.late.len() {
            for again in [false, true] {
                steps.push(Step::Fault(Fault::Late {
                    node,
                    client,
                    index,
                    again,
                }));
            }
            steps.push(Step::Fault(Fault::Never {
                node,
                client,
                index,
            }));
        }
    }

    fn faults_of_node(&self, node: usize, scheme: &Scheme, steps: &mut Vec<Step>) {
        let site = &self.sites[node];
        let state = &site.node;
        if site.is_down {
            steps.push(Step::Fault(Fault::ComeUp(node)));
        } else if self.sites.iter().filter(|site| site.is_down).count()
            < scheme.nodes - scheme.quorum()
        {
            steps.push(Step::Fault(Fault::GoDown(node)));
        }
        for (place, waiter) in state.waiters().enumerate() {
            if waiter.has_lease() {
                steps.push(Step::Fault(Fault::EndLease(node, place)));
            }
        }
        for token in state.tokens() {
            if self.may_expire(token, scheme) {
                steps.push(Step::Fault(Fault::EndToken(node, token)));
            }
        }
        if state.has_time() {
            steps.push(Step::Fault(Fault::EndReservation(node)));
        }
        if !site.forgotten.is_empty() && site.forgotten.iter().all(|token| self.has_ended(*token)) {
            steps.push(Step::Fault(Fault::EndQuarantine(node)));
        }
        if state.waiters().next().is_some() {
            steps.push(Step::Fault(Fault::LoseQueue(node)));
        }
        if !state.is_empty() {
            steps.push(Step::Fault(Fault::Restart(node)));
        }
    }

    fn may_expire(&self, token: Token, scheme: &Scheme) -> bool {
        let phase = self.clients[usize::from(token.client)].phase;
        let is_undecided = matches!(phase, Phase::Trying | Phase::Claiming);
        self.has_ended(token) || is_undecided && scheme.makes(Mistake::ValidityFromAnswers)
    }
}
