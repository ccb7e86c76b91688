//! A state of the search: the group, clients, and what is on its way between them.

use crate::client::{Attempt, Client, GreetAgain, Sent, Session, Verb};
use crate::group::{Group, Kept, Link, Way};
use crate::node::{Command, Node, Step as Question};
use crate::scheme::{Faults, Kind, Mistake, Scheme};

/// A broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    TwoHolders,
    /// A later holder has no larger fencing token.
    TokenFell,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) now: u8,
    pub(crate) group: Group,
    pub(crate) clients: Vec<Client>,
    /// What lies in the sockets of connections that have ended: in which server.
    late: Vec<(usize, Command)>,
    tokens: u8,
    nonces: u16,
    /// The last fencing token of a holder.
    counter: u64,
    pub(crate) left: Faults,
    /// How many reigns were proven, and locks granted in one.
    pub(crate) proven: u32,
    pub(crate) granted_in_proven: u32,
}

/// What can happen next. Numbers are those of a client, and then of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Tick,
    /// A client connects to a server and greets it; its connection ends.
    Connect(usize, usize),
    Close(usize),
    /// It tries to get the lock, extends it, or releases it.
    Begin(usize),
    Extend(usize),
    Release(usize),
    /// It gives its lock away as a token; it resumes the lock that it held last.
    GiveAway(usize),
    Resume(usize),
    /// It is replaced by one that knows nothing.
    Forget(usize),
    /// The next command that it has written is carried out; it reads all answers that there are.
    Execute(usize),
    Read(usize),
    /// The same, after the server has waited for its replicas in vain.
    Expire(usize),
    /// What lies in the socket of a connection that has ended is carried out.
    Late(usize),
    /// It asks a server for its history, and says that its reign is proven.
    Witness(usize, usize),
    Prove(usize),
    /// The next write arrives at a replica; it acknowledges what it has; a master hears of that.
    Deliver(usize),
    Acknowledge(usize),
    Hear(usize, usize),
    /// A replica loses its link, asks a server for its writes, and has copied everything.
    Cut(usize),
    Attach(usize, usize, Way),
    Load(usize),
    Promote(usize),
    Demote(usize),
    Save(usize),
    Restart(usize, Kept),
    Flush,
    Evict,
    /// A replaced master is elected again, without ever being told.
    ElectAgain(usize),
}

impl World {
    pub(crate) fn new(scheme: &Scheme, node: &mut Node) -> Self {
        let keys = node.first_keys();
        Self {
            now: scheme.start(),
            group: Group::new(scheme, &keys),
            clients: vec![Client::default(); scheme.clients],
            late: Vec::new(),
            tokens: 0,
            nonces: 0,
            counter: 0,
            left: scheme.faults,
            proven: 0,
            granted_in_proven: 0,
        }
    }

    pub(crate) fn holders(&self) -> usize {
        let held = self.clients.iter().filter(|client| client.held.is_some());
        held.count()
    }

    pub(crate) fn steps(&self, scheme: &Scheme) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.now < scheme.start() + scheme.ticks {
            steps.push(Step::Tick);
        }
        self.steps_of_group(&mut steps);
        for client in 0..self.clients.len() {
            self.steps_of_client(client, scheme, &mut steps);
        }
        steps.extend((0..self.late.len()).map(Step::Late));
        steps
    }

    fn steps_of_group(&self, steps: &mut Vec<Step>) {
        let Group {
            servers, current, ..
        } = &self.group;
        let left = &self.left;
        for (index, server) in servers.iter().enumerate() {
            let mut push = |may: bool, step| steps.extend(may.then_some(step));
            let may_restart = left.restarts > 0;
            push(may_restart, Step::Restart(index, Kept::Everything));
            let has_disk = server.disk.is_some();
            push(may_restart && has_disk, Step::Restart(index, Kept::Disk));
            push(may_restart, Step::Restart(index, Kept::Keys));
            push(may_restart, Step::Restart(index, Kept::Nothing));
            if !server.is_up {
                continue;
            }
            push(left.saves > 0, Step::Save(index));
            let is_replaced = index != *current;
            if server.is_master {
                push(is_replaced, Step::Demote(index));
                let may_return = is_replaced && left.second_elections > 0;
                push(may_return, Step::ElectAgain(index));
                for from in 0..servers.len() {
                    push(self.group.may_hear(index, from), Step::Hear(index, from));
                }
                continue;
            }
            self.steps_of_replica(index, steps);
        }
        let master = &servers[*current];
        if master.is_up && master.is_master {
            steps.extend((left.flushes > 0).then_some(Step::Flush));
            steps.extend((left.evictions > 0).then_some(Step::Evict));
        }
    }

    fn steps_of_replica(&self, index: usize, steps: &mut Vec<Step>) {
        let Group {
            servers, current, ..
        } = &self.group;
        let server = &servers[index];
        let left = &self.left;
        let mut push = |may: bool, step| steps.extend(may.then_some(step));
        push(
            server.link == Link::Copies && servers[server.source].is_up,
            Step::Load(index),
        );
        if server.link == Link::Follows {
            push(!server.behind.is_empty(), Step::Deliver(index));
            push(self.group.may_acknowledge(index), Step::Acknowledge(index));
            push(left.cuts > 0, Step::Cut(index));
        }
        for (other, source) in servers.iter().enumerate() {
            let is_linked = server.link != Link::None && server.source == other;
            if other == index || !source.is_up || is_linked {
                continue;
            }
            let is_master = other == *current && source.is_master;
            let may = is_master || left.detours > 0;
            let continues = self.group.may_continue(index, other);
            push(may && continues, Step::Attach(index, other, Way::Continued));
            push(may, Step::Attach(index, other, Way::Copied));
            push(may, Step::Attach(index, other, Way::Emptied));
        }
        push(
            left.promotions > 0 && index != *current,
            Step::Promote(index),
        );
    }

    fn steps_of_client(&self, index: usize, scheme: &Scheme, steps: &mut Vec<Step>) {
        let client = &self.clients[index];
        let servers = &self.group.servers;
        let Some(session) = &client.session else {
            let masters =
                (0..servers.len()).filter(|it| servers[*it].is_up && servers[*it].is_master);
            steps.extend(masters.map(|server| Step::Connect(index, server)));
            return;
        };
        let mut push = |may: bool, step| steps.extend(may.then_some(step));
        let server = &servers[session.server];
        let is_there = server.is_up && server.run == session.run;
        let next = session.sent.front().filter(|_| is_there);
        let majority = scheme.group().majority();
        let waits = next.is_some_and(Sent::is_check)
            && !self.group.is_acknowledged(session.server, majority);
        push(next.is_some() && !waits, Step::Execute(index));
        push(waits, Step::Expire(index));
        push(!session.answered.is_empty(), Step::Read(index));
        let is_elsewhere = self.group.current != session.server;
        let is_idle = client.attempt.is_none();
        let may_end = is_elsewhere || session.is_stale(scheme, self.now);
        push(!is_there || is_idle && may_end, Step::Close(index));
        if session.is_to_prove() && is_there {
            for (other, witness) in servers.iter().enumerate() {
                push(witness.is_up, Step::Witness(index, other));
            }
            push(session.is_proven(scheme), Step::Prove(index));
        }
        if client.attempt.is_some() {
            return;
        }
        let is_ready = session.is_ready(scheme, self.now);
        match client.held {
            Some(_) => {
                push(is_ready, Step::Extend(index));
                push(true, Step::Release(index));
                push(self.left.resumptions > 0, Step::GiveAway(index));
            }
            None => {
                push(is_ready && self.left.attempts > 0, Step::Begin(index));
                let may_resume = self.left.resumptions > 0 && self.may_resume(client);
                push(is_ready && may_resume, Step::Resume(index));
                push(self.left.new_clients > 0, Step::Forget(index));
            }
        }
    }

    /// May a client resume the lock that it held last? Not while a release of it is on its way, for
    /// that would release what was resumed.
    fn may_resume(&self, client: &Client) -> bool {
        let Some(token) = client.last.filter(|_| client.held.is_none()) else {
            return false;
        };
        let sessions = client.session.iter();
        let sent = sessions.flat_map(|it| it.sent.iter().map(|sent| sent.command));
        let mut written = sent.chain(self.late.iter().map(|(_, command)| *command));
        !written.any(|command| command == Command::Release { token })
    }

    pub(crate) fn take(
        &mut self,
        step: Step,
        scheme: &Scheme,
        node: &mut Node,
    ) -> Result<(), Violation> {
        match step {
            Step::Tick => {
                self.now += 1;
                for client in &mut self.clients {
                    client.held = client.held.filter(|held| held.until > self.now);
                }
            }
            Step::Connect(client, server) => self.connect(client, server, scheme),
            Step::Close(client) => self.close(client),
            Step::Begin(client) => {
                self.left.attempts -= 1;
                self.tokens += 1;
                self.attempt(client, self.tokens, Verb::Lock, scheme);
            }
            Step::Extend(client) => {
                let held = self.clients[client].held.expect("it extends what it holds");
                self.attempt(client, held.token, Verb::Extend, scheme);
            }
            Step::Resume(client) => {
                self.left.resumptions -= 1;
                let token = self.clients[client].last.expect("it held a lock");
                self.attempt(client, token, Verb::Resume, scheme);
            }
            Step::Release(client) => {
                let client = &mut self.clients[client];
                let token = client.held.take().expect("it releases what it holds").token;
                if let Some(session) = &mut client.session {
                    session.write(Command::Release { token }, self.now);
                }
            }
            Step::GiveAway(client) => self.clients[client].held = None,
            Step::Forget(client) => {
                self.left.new_clients -= 1;
                self.close(client);
                self.clients[client] = Client::default();
            }
            Step::Execute(client) | Step::Expire(client) => self.execute(client, node),
            Step::Read(client) => return self.read(client, scheme),
            Step::Late(index) => {
                let (server, command) = self.late.remove(index);
                self.group.execute(server, self.now, command, node);
            }
            Step::Witness(client, server) => self.witness(client, server, scheme),
            Step::Prove(client) => {
                let session = self.clients[client].session.as_mut();
                let session = session.expect("it is connected");
                session.has_proven = true;
                session.ask(Question::Prove, scheme, self.now);
                self.proven += 1;
            }
            other => self.take_of_group(other, scheme, node),
        }
        Ok(())
    }

    fn take_of_group(&mut self, step: Step, scheme: &Scheme, node: &mut Node) {
        let left = &mut self.left;
        match step {
            Step::Deliver(server) => self.group.deliver(server),
            Step::Acknowledge(server) => self.group.acknowledge(server),
            Step::Hear(server, from) => self.group.hear(server, from),
            Step::Cut(server) => {
                left.cuts -= 1;
                self.group.cut(server);
            }
            Step::Attach(server, source, way) => {
                let is_master = source == self.group.current;
                left.detours -= u8::from(!is_master);
                let is_half = scheme.has(Mistake::HalfCopied);
                let half = if is_half {
                    node.first_keys()
                } else {
                    Default::default()
                };
                self.group.attach(server, source, way, &half);
            }
            Step::Load(server) => self.group.load(server),
            Step::Promote(server) => {
                left.promotions -= 1;
                self.group.promote(server);
            }
            Step::Demote(server) => self.group.demote(server),
            Step::Save(server) => {
                left.saves -= 1;
                self.group.save(server);
            }
            Step::Restart(server, kept) => {
                left.restarts -= 1;
                self.late.retain(|(other, _)| *other != server);
                self.group.restart(server, self.now, kept);
            }
            Step::Flush => {
                left.flushes -= 1;
                self.group.lose(&Default::default());
            }
            Step::Evict => {
                left.evictions -= 1;
                let master = &self.group.servers[self.group.current];
                let keys = node.unmarked(&master.keys, master.clock(self.now));
                self.group.lose(&keys);
            }
            Step::ElectAgain(server) => {
                left.second_elections -= 1;
                let master = self.group.current;
                self.group.elect_again(server);
                let keeps = scheme.has(Mistake::ConnectionsKept);
                self.late
                    .retain(|(other, _)| *other != master && (keeps || *other != server));
                for client in &mut self.clients {
                    let session = client.session.as_ref();
                    if !keeps && session.is_some_and(|it| it.server == server) {
                        client.session = None;
                        client.attempt = None;
                    }
                }
            }
            other => unreachable!("{other:?}"),
        }
    }

    fn connect(&mut self, client: usize, server: usize, scheme: &Scheme) {
        self.nonces += 1;
        let is_counted = scheme.has_epochs && !scheme.has(Mistake::NoEpoch);
        let epoch = if is_counted { self.group.epoch } else { 1 };
        let asks = client > 0 || !scheme.has(Mistake::ModesMix);
        let run = self.group.servers[server].run;
        let mut session = Session::new(server, run, asks, self.now);
        let greeting = Command::Reign {
            step: Question::Greet,
            nonce: self.nonces,
            epoch,
            replicas: if asks { scheme.replicas } else { 0 },
        };
        session.write(greeting, self.now);
        self.clients[client].session = Some(session);
    }

    fn close(&mut self, client: usize) {
        let client = &mut self.clients[client];
        client.attempt = None;
        let Some(session) = client.session.take() else {
            return;
        };
        let server = &self.group.servers[session.server];
        let is_there = server.is_up && server.run == session.run;
        if is_there && self.left.late > 0 && !session.sent.is_empty() {
            self.left.late -= 1;
            let late = session
                .sent
                .iter()
                .map(|sent| (session.server, sent.command));
            self.late.extend(late);
        }
    }

    fn attempt(&mut self, client: usize, token: u8, verb: Verb, scheme: &Scheme) {
        let now = self.now;
        let client = &mut self.clients[client];
        let Some(session) = &mut client.session else {
            return;
        };
        let is_resumed = verb == Verb::Resume;
        let may_reclaim = !is_resumed || scheme.has(Mistake::ResumedIsReclaimed);
        let command = match verb {
            Verb::Lock => {
                // The clock of the client, which is more than the counter after a while.
                let floor = u64::from(now) * 10;
                Command::Claim { token, floor }
            }
            Verb::Extend | Verb::Resume => Command::Keep {
                token,
                reclaims: may_reclaim && session.reclaims(scheme, now),
                is_resumed,
            },
        };
        if scheme.kind == Kind::Queued && verb == Verb::Lock {
            session.write(Command::Join { token }, now);
        }
        session.vote(scheme, now, command);
        client.attempt = Some(Attempt {
            token,
            at: now,
            verb,
        });
    }

    fn execute(&mut self, client: usize, node: &mut Node) {
        let session = self.clients[client]
            .session
            .as_mut()
            .expect("it is connected");
        let sent: Sent = session.sent.pop_front().expect("it was written");
        let server = session.server;
        let answer = self.group.execute(server, self.now, sent.command, node);
        let session = self.clients[client]
            .session
            .as_mut()
            .expect("it is connected");
        if !matches!(sent.command, Command::Release { .. }) {
            session.answered.push_back((sent, answer));
        }
    }

    fn read(&mut self, index: usize, scheme: &Scheme) -> Result<(), Violation> {
        let now = self.now;
        while let Some(session) = &mut self.clients[index].session {
            let Some((sent, answer)) = session.answered.pop_front() else {
                break;
            };
            match session.told(scheme, now, sent, answer) {
                Err(GreetAgain) => self.close(index),
                Ok(votes) => {
                    let is_proven = session.is_proven_reign();
                    for vote in votes {
                        let Some(counter) = self.clients[index].voted(scheme, now, &vote) else {
                            continue;
                        };
                        let has_fallen = scheme.kind == Kind::Fenced && counter <= self.counter;
                        self.counter = counter;
                        self.granted_in_proven += u32::from(is_proven);
                        if has_fallen {
                            return Err(Violation::TokenFell);
                        }
                    }
                }
            }
        }
        if self.holders() > 1 {
            return Err(Violation::TwoHolders);
        }
        Ok(())
    }

    fn witness(&mut self, client: usize, server: usize, scheme: &Scheme) {
        let servers = &self.group.servers;
        let session = self.clients[client]
            .session
            .as_mut()
            .expect("it is connected");
        let master = servers[session.server].history(self.now);
        let witness = servers[server].history(self.now);
        session.hear(scheme, server, &witness, &master);
    }
}
