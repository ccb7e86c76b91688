//! A state of the search: groups, clients, and what is on its way between them.

use crate::client::{Attempt, Client, Sent, Session, Verb, Vote, nonce_of};
use crate::group::Group;
use crate::node::{Command, Node};
use crate::scheme::{Faults, Mistake, Scheme};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct World {
    pub(crate) now: u8,
    pub(crate) groups: Vec<Group>,
    pub(crate) clients: Vec<Client>,
    /// What lies in the sockets of connections that have ended: in which group and server.
    pub(crate) late: Vec<(usize, usize, Command)>,
    /// Runs and reigns so far, and tokens.
    pub(crate) names: u8,
    pub(crate) tokens: u8,
    pub(crate) left: Faults,
}

/// What can happen next. Numbers are those of a client, a group and a server, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Tick,
    /// A client asks which server is the master, and connects to one, or to what was one. The
    /// second may follow the first at once, or much later.
    Ask(usize, usize),
    Connect(usize, usize, usize),
    /// Its connection ends.
    Close(usize, usize),
    /// It tries to get the lock, extends it, or releases it.
    Begin(usize),
    Extend(usize),
    Release(usize),
    /// It gives its lock away as a token; it resumes the lock that it held last, which it has given
    /// away, or released, or which has ended.
    GiveAway(usize),
    Resume(usize),
    /// It waits for no more votes.
    GiveUp(usize),
    /// It is replaced by one that knows nothing.
    Forget(usize),
    /// The next command that it has written is carried out.
    Execute(usize, usize),
    /// It reads all answers that there are.
    Read(usize, usize),
    /// What lies in the socket of a connection that has ended is carried out.
    Late(usize),
    /// The next write arrives at a replica.
    Deliver(usize, usize),
    Promote(usize, usize),
    Demote(usize, usize),
    /// A server gets a full copy from the present master.
    Sync(usize, usize),
    Restart(usize, usize, bool),
    Flush(usize),
    Evict(usize),
    /// A replaced master is elected again, without ever being told.
    ElectAgain(usize, usize),
}

impl World {
    pub(crate) fn holders(&self) -> usize {
        self.clients
            .iter()
            .filter(|client| client.held.is_some())
            .count()
    }

    pub(crate) fn steps_of_group(&self, group: usize, steps: &mut Vec<Step>) {
        let Group {
            servers, current, ..
        } = &self.groups[group];
        let left = &self.left;
        let has_master = servers[*current].is_up;
        for (index, server) in servers.iter().enumerate() {
            let mut push = |may: bool, step| steps.extend(may.then_some(step));
            let is_replaced = index != *current;
            if !server.is_up {
                push(left.restarts > 0, Step::Restart(group, index, false));
            } else if server.is_master {
                push(is_replaced, Step::Demote(group, index));
                let is_elected = is_replaced && left.second_elections > 0;
                push(is_elected, Step::ElectAgain(group, index));
                for keeps in [false, true] {
                    push(left.restarts > 0, Step::Restart(group, index, keeps));
                }
            } else {
                let is_apart = !server.is_linked || usize::from(server.source) != *current;
                push(
                    server.is_linked && !server.behind.is_empty(),
                    Step::Deliver(group, index),
                );
                push(
                    is_apart && is_replaced && has_master,
                    Step::Sync(group, index),
                );
                push(left.promotions > 0, Step::Promote(group, index));
            }
        }
        steps.extend((left.flushes > 0 && has_master).then_some(Step::Flush(group)));
        let is_marked = servers[*current].keys.marker.is_some();
        steps.extend((left.evictions > 0 && is_marked).then_some(Step::Evict(group)));
    }

    pub(crate) fn steps_of_client(&self, index: usize, scheme: &Scheme, steps: &mut Vec<Step>) {
        let client = &self.clients[index];
        for (group, session) in client.sessions.iter().enumerate() {
            let servers = &self.groups[group].servers;
            let Some(session) = session else {
                // A server that takes no writes cannot be greeted.
                let masters = (0..servers.len()).filter(|it| servers[*it].takes_writes(self.now));
                steps.extend(masters.map(|server| Step::Connect(index, group, server)));
                let may_ask = scheme.has_epochs && client.named[group].is_none();
                steps.extend(may_ask.then_some(Step::Ask(index, group)));
                continue;
            };
            let server = &servers[session.server];
            let is_there = server.is_up && server.run == session.run;
            if is_there && !session.sent.is_empty() {
                steps.push(Step::Execute(index, group));
            }
            if !session.answered.is_empty() {
                steps.push(Step::Read(index, group));
            }
            let is_elsewhere = scheme.groups > 1 || self.groups[group].current != session.server;
            let is_idle = client.attempt.is_none();
            let may_end = is_elsewhere || session.is_stale(scheme, self.now);
            if !is_there || is_idle && may_end {
                steps.push(Step::Close(index, group));
            }
        }
        let usable = |it: &&Session| it.reign.is_some() && !it.is_stale(scheme, self.now);
        let sessions = client.sessions.iter().flatten().filter(usable);
        let has_majority = |count: usize| count * 2 > scheme.groups;
        if client.attempt.is_some() {
            steps.extend((scheme.groups > 1).then_some(Step::GiveUp(index)));
            return;
        }
        if has_majority(sessions.clone().count()) {
            let old = sessions
                .filter(|it| it.is_old(scheme, self.now, false))
                .count();
            let may_try = scheme.tries_early || has_majority(old);
            match client.held {
                Some(_) if scheme.extends => steps.push(Step::Extend(index)),
                None if self.left.attempts > 0 && may_try => steps.push(Step::Begin(index)),
                _ => {}
            }
            let may_resume = self.left.resumptions > 0 && self.may_resume(client, scheme);
            steps.extend(may_resume.then_some(Step::Resume(index)));
        }
        if client.held.is_some() {
            steps.extend(scheme.releases.then_some(Step::Release(index)));
            let gives_away = self.left.resumptions > 0;
            steps.extend(gives_away.then_some(Step::GiveAway(index)));
        } else if self.left.new_clients > 0 && client.sessions.iter().any(Option::is_some) {
            steps.push(Step::Forget(index));
        }
    }

    /// May a client resume the lock that it held last? Not while a release of it is on its way, for
    /// that would release what was resumed; and not in the tick in which it asked for it, because
    /// votes are told apart by their ticks.
    fn may_resume(&self, client: &Client, scheme: &Scheme) -> bool {
        let Some(last) = client.last.filter(|_| client.held.is_none()) else {
            return false;
        };
        let release = Command::Release { token: last.token };
        let sessions = client.sessions.iter().flatten();
        let sent = sessions.flat_map(|it| it.sent.iter().map(|sent| sent.command));
        let mut written = sent.chain(self.late.iter().map(|(.., command)| *command));
        self.now + scheme.ttl > last.until && !written.any(|command| command == release)
    }

    pub(crate) fn take(&mut self, step: Step, scheme: &Scheme, node: &mut Node) {
        let now = self.now;
        let left = &mut self.left;
        match step {
            Step::Tick => {
                self.now += 1;
                self.groups.iter_mut().for_each(|group| group.tick(now + 1));
                for client in &mut self.clients {
                    client.held = client.held.filter(|held| held.until > now + 1);
                }
            }
            Step::Connect(client, group, server) => {
                self.connect(client, group, server, scheme, node);
                if scheme.greets_at_once {
                    self.execute(client, group, node);
                    self.read(client, group, scheme);
                }
            }
            Step::Ask(client, group) => {
                self.clients[client].named[group] = Some((self.groups[group].epoch, now));
            }
            Step::Close(client, group) => self.close(client, group),
            Step::Begin(client) => {
                left.attempts -= 1;
                self.tokens += 1;
                self.attempt(client, self.tokens, Verb::Lock, scheme);
            }
            Step::Extend(client) => {
                let token = self.clients[client]
                    .held
                    .expect("it extends what it holds")
                    .token;
                self.attempt(client, token, Verb::Extend, scheme);
            }
            Step::Resume(client) => {
                left.resumptions -= 1;
                let token = self.clients[client].last.expect("it held a lock").token;
                self.attempt(client, token, Verb::Resume, scheme);
            }
            Step::Release(client) => {
                let client = &mut self.clients[client];
                let token = client.held.take().expect("it releases what it holds").token;
                let command = Command::Release { token };
                for session in client.sessions.iter_mut().flatten() {
                    session.sent.push_back(Sent { command, at: now });
                }
            }
            Step::GiveAway(client) => self.clients[client].held = None,
            Step::GiveUp(client) => self.clients[client].attempt = None,
            Step::Forget(client) => {
                left.new_clients -= 1;
                for group in 0..self.groups.len() {
                    self.close(client, group);
                }
                self.clients[client] = Client::new(self.groups.len());
            }
            Step::Execute(client, group) => self.execute(client, group, node),
            Step::Read(client, group) => self.read(client, group, scheme),
            Step::Late(index) => {
                let (group, server, command) = self.late.remove(index);
                self.groups[group].execute(server, now, command, node);
            }
            other => self.take_fault(other, scheme),
        }
    }

    /// What happens to the servers.
    fn take_fault(&mut self, step: Step, scheme: &Scheme) {
        let Self {
            now,
            groups,
            left,
            names,
            late,
            ..
        } = self;
        let mut name = || {
            *names += 1;
            *names
        };
        match step {
            Step::Deliver(group, server) => groups[group].deliver(server),
            Step::Promote(group, server) => {
                left.promotions -= 1;
                groups[group].promote(server, name(), *now + scheme.goes_on);
            }
            Step::Demote(group, server) => groups[group].demote(server),
            Step::Sync(group, server) => groups[group].sync(server),
            Step::Restart(group, server, keeps_keys) => {
                left.restarts -= 1;
                late.retain(|it| (it.0, it.1) != (group, server));
                groups[group].restart(server, name(), keeps_keys);
            }
            Step::Flush(group) => {
                left.flushes -= 1;
                let master = groups[group].current;
                groups[group].write(master, Default::default());
            }
            Step::Evict(group) => {
                left.evictions -= 1;
                let master = groups[group].current;
                groups[group].servers[master].keys.marker = None;
            }
            Step::ElectAgain(group, server) => {
                left.second_elections -= 1;
                let master = groups[group].current;
                late.retain(|it| (it.0, it.1) != (group, master));
                groups[group].elect_again(server);
            }
            other => unreachable!("{other:?}"),
        }
    }

    fn connect(
        &mut self,
        client: usize,
        group: usize,
        server: usize,
        scheme: &Scheme,
        node: &Node,
    ) {
        let nonce = self.unused_nonce(node);
        let at = &self.groups[group];
        let is_counted = scheme.has_epochs && !scheme.has(Mistake::NoEpoch);
        let named = self.clients[client].named[group].take();
        let (epoch, named_at) = named.unwrap_or((at.epoch, self.now));
        let epoch = if is_counted { epoch } else { 0 };
        let command = Command::Greet { epoch, nonce };
        let mut session = Session::new(server, at.servers[server].run, named_at);
        session.sent.push_back(Sent {
            command,
            at: self.now,
        });
        self.clients[client].sessions[group] = Some(session);
    }

    /// The smallest number that stands in no marker, and is on its way to none.
    fn unused_nonce(&self, node: &Node) -> u8 {
        let servers = self.groups.iter().flat_map(|group| &group.servers);
        let keys = servers.flat_map(|server| server.behind.iter().chain([&server.keys]));
        let mut used: Vec<u8> = keys
            .filter_map(|keys| keys.marker)
            .map(|marker| node.nonce(marker))
            .collect();
        let sessions = self
            .clients
            .iter()
            .flat_map(|client| client.sessions.iter().flatten());
        let mut commands: Vec<Command> = self.late.iter().map(|(.., command)| *command).collect();
        for session in sessions {
            used.extend(session.reign.as_ref().map(nonce_of));
            commands.extend(session.sent.iter().map(|sent| sent.command));
            commands.extend(session.answered.iter().map(|(sent, _)| sent.command));
        }
        used.extend(commands.iter().filter_map(|command| match command {
            Command::Greet { nonce, .. } => Some(*nonce),
            _ => None,
        }));
        (1..)
            .find(|nonce| !used.contains(nonce))
            .expect("few are used")
    }

    fn close(&mut self, client: usize, group: usize) {
        let Some(session) = self.clients[client].close(group) else {
            return;
        };
        let server = &self.groups[group].servers[session.server];
        let is_there = server.is_up && server.run == session.run;
        if is_there && self.left.late > 0 && !session.sent.is_empty() {
            self.left.late -= 1;
            let late = session
                .sent
                .iter()
                .map(|sent| (group, session.server, sent.command));
            self.late.extend(late);
        }
    }

    fn attempt(&mut self, client: usize, token: u8, verb: Verb, scheme: &Scheme) {
        let now = self.now;
        let client = &mut self.clients[client];
        let mut votes = vec![Vote::None; scheme.groups];
        for (session, vote) in client.sessions.iter_mut().zip(&mut votes) {
            let usable = |it: &&mut Session| it.reign.is_some() && !it.is_stale(scheme, now);
            let Some(session) = session.as_mut().filter(usable) else {
                continue;
            };
            *vote = Vote::Open;
            let is_resumed = verb == Verb::Resume;
            let may_reclaim = !is_resumed || scheme.has(Mistake::ResumedIsReclaimed);
            let command = match verb {
                Verb::Lock => Command::Claim { token },
                Verb::Extend | Verb::Resume => Command::Keep {
                    token,
                    reclaims: may_reclaim && session.reclaims(scheme, now),
                    is_resumed,
                },
            };
            session.vote(scheme, now, command);
        }
        client.attempt = Some(Attempt {
            token,
            at: now,
            verb,
            votes,
        });
        client.decide(scheme, now);
    }

    fn execute(&mut self, client: usize, group: usize, node: &mut Node) {
        let session = self.clients[client].sessions[group]
            .as_mut()
            .expect("it is there");
        let sent = session.sent.pop_front().expect("it was written");
        let server = session.server;
        let now = self.now;
        let answer = self.groups[group].execute(server, now, sent.command, node);
        session.answered.push_back((sent, answer));
    }

    fn read(&mut self, client: usize, group: usize, scheme: &Scheme) {
        let now = self.now;
        loop {
            let Client {
                sessions, known, ..
            } = &mut self.clients[client];
            let Some(session) = &mut sessions[group] else {
                break;
            };
            let Some((sent, answer)) = session.answered.pop_front() else {
                break;
            };
            match session.told(scheme, now, sent, &answer, &mut known[group]) {
                Ok(votes) => {
                    for (sent, counts) in votes {
                        self.clients[client].voted(group, sent, counts);
                    }
                }
                Err(_) => self.close(client, group),
            }
            self.clients[client].decide(scheme, now);
        }
    }
}
