//! A replicated group: a master, its replicas, to which writes come late and in order, and what
//! promotes one of them. Each server has a history, as real ones have: the id of its reign, the one
//! before, how far it has come, and the writes that led there.

use crate::node::{Answer, Command, Node, Said, Step};
use crate::scheme::Scheme;
use redlatch_embedded::model::{Changes, Snapshot};
use redlatch_protocol::node::history::{History, Standing};
use std::rc::Rc;
use std::time::Duration;

/// So many writes wait for a replica at most: one that is further behind has lost its link.
const BEHIND_MAX: usize = 16;

/// What a replica has of its master's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    None,
    /// It waits for a copy of everything.
    Copies,
    Follows,
}

#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) is_up: bool,
    pub(crate) is_master: bool,
    pub(crate) run: u8,
    pub(crate) started: u8,
    /// How far its clock is ahead.
    skew: u8,
    /// Its reign, the one before and how far that reached, and all writes since the beginning.
    pub(crate) id: u8,
    pub(crate) former: Option<(u8, u16)>,
    log: Vec<Rc<Changes>>,
    pub(crate) keys: Rc<Snapshot>,
    /// What it finds when it starts again.
    pub(crate) disk: Option<Disk>,
    /// Of a replica.
    pub(crate) source: usize,
    pub(crate) link: Link,
    /// May it ask to be continued? Not after it has given up its data for a copy.
    resumes: bool,
    /// How many of its source's writes are under way.
    pub(crate) behind: Vec<Rc<Changes>>,
    /// Of a master: what each replica has acknowledged, and what of that was read. Acknowledgements
    /// that lie in its sockets are read also when their replica has gone.
    sent: Vec<u16>,
    acknowledged: Vec<u16>,
}

#[derive(Clone, Debug)]
pub(crate) struct Disk {
    keys: Rc<Snapshot>,
    id: u8,
    log: Vec<Rc<Changes>>,
}

/// How a replica gets what a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From where it is: its history is a part of that server's.
    Continued,
    /// It copies everything: its history is another one, or reaches back too far. Some servers
    /// forget their keys before they copy.
    Copied,
    Emptied,
}

/// With what a server starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Everything,
    /// What it has saved before.
    Disk,
    /// The keys, and nothing of its history.
    Keys,
    Nothing,
}

#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) servers: Vec<Server>,
    /// The master, as the failover authority names it, and how often it has chosen one.
    pub(crate) current: usize,
    pub(crate) epoch: u8,
    /// Runs and ids so far.
    names: u8,
}

impl Server {
    pub(crate) fn clock(&self, now: u8) -> u8 {
        now + self.skew
    }

    fn offset(&self) -> u16 {
        // An offset of zero is none.
        self.log.len() as u16 + 1
    }

    pub(crate) fn history(&self, now: u8) -> History {
        History {
            run_id: self.run.to_string(),
            uptime: Duration::from_secs((now - self.started).into()),
            is_master: self.is_master,
            id: self.id.to_string(),
            former: self
                .former
                .map(|(id, offset)| (id.to_string(), u64::from(offset) + 1)),
        }
    }

    fn apply(&mut self, changes: &Rc<Changes>) {
        Rc::make_mut(&mut self.keys).apply(changes);
        self.log.push(Rc::clone(changes));
    }

    /// Follows nobody.
    fn unlink(&mut self) {
        self.link = Link::None;
        self.behind.clear();
    }
}

impl Group {
    /// A group that has been in use for long.
    pub(crate) fn new(scheme: &Scheme, keys: &Rc<Snapshot>) -> Self {
        let server = |index| Server {
            is_up: true,
            is_master: index == 0,
            run: 1 + index as u8,
            started: 0,
            skew: if index == 1 { scheme.skew } else { 0 },
            id: 1,
            former: None,
            log: Vec::new(),
            keys: Rc::clone(keys),
            disk: None,
            source: 0,
            link: if index == 0 {
                Link::None
            } else {
                Link::Follows
            },
            resumes: true,
            behind: Vec::new(),
            sent: vec![0; scheme.servers],
            acknowledged: vec![0; scheme.servers],
        };
        Self {
            servers: (0..scheme.servers).map(server).collect(),
            current: 0,
            epoch: 1,
            names: scheme.servers as u8,
        }
    }

    fn name(&mut self) -> u8 {
        self.names += 1;
        self.names
    }

    /// A server carries out a command.
    pub(crate) fn execute(
        &mut self,
        server: usize,
        now: u8,
        command: Command,
        node: &mut Node,
    ) -> Answer {
        let it = &self.servers[server];
        let others = |index: &usize| *index != server;
        let heard = (0..self.servers.len()).filter(others);
        let said = Said {
            run: it.run,
            id: it.id,
            former: it.former.map(|(id, _)| id),
            is_replica: !it.is_master,
            offset: it.offset(),
            acknowledged: heard
                .map(|index| it.acknowledged[index])
                .filter(|offset| *offset > 0)
                .collect(),
        };
        let (keys, answer) = node.run(&it.keys, &said, it.clock(now), command);
        let changes = keys.changes_since(&it.keys);
        let is_touched = match (command, &answer) {
            (
                Command::Reign {
                    step: Step::Touch,
                    nonce,
                    ..
                },
                Answer::Standing(standing),
            ) => is_marked(standing, nonce),
            _ => false,
        };
        if !it.is_master {
            let writes = !matches!(command, Command::Reign { .. });
            return if writes { Answer::Failed } else { answer };
        }
        if !changes.is_empty() || is_touched {
            self.write(server, &Rc::new(changes));
        }
        answer
    }

    /// A master writes.
    fn write(&mut self, server: usize, changes: &Rc<Changes>) {
        self.servers[server].apply(changes);
        for (index, replica) in self.servers.iter_mut().enumerate() {
            let follows = replica.link == Link::Follows && replica.source == server;
            if index == server || !follows || replica.is_master {
                continue;
            }
            replica.behind.push(Rc::clone(changes));
            if replica.behind.len() > BEHIND_MAX {
                replica.unlink();
            }
        }
    }

    /// Has a majority of the group acknowledged all that this server has written?
    pub(crate) fn is_acknowledged(&self, server: usize, majority: usize) -> bool {
        let it = &self.servers[server];
        let all = it
            .acknowledged
            .iter()
            .filter(|offset| **offset >= it.offset());
        all.count() >= majority
    }

    /// The master loses all keys, or the marker.
    pub(crate) fn lose(&mut self, keys: &Snapshot) {
        let master = &self.servers[self.current];
        let changes = keys.changes_since(&master.keys);
        self.write(self.current, &Rc::new(changes));
    }

    pub(crate) fn deliver(&mut self, server: usize) {
        let it = &mut self.servers[server];
        let changes = it.behind.remove(0);
        it.apply(&changes);
    }

    /// Would a replica acknowledge something that does not lie in its master's socket?
    pub(crate) fn may_acknowledge(&self, server: usize) -> bool {
        let it = &self.servers[server];
        it.link == Link::Follows && self.servers[it.source].sent[server] < it.offset()
    }

    pub(crate) fn acknowledge(&mut self, server: usize) {
        let it = &self.servers[server];
        let source = it.source;
        let offset = it.offset();
        self.servers[source].sent[server] = offset;
    }

    pub(crate) fn may_hear(&self, server: usize, from: usize) -> bool {
        let it = &self.servers[server];
        it.is_master && it.sent[from] > it.acknowledged[from]
    }

    pub(crate) fn hear(&mut self, server: usize, from: usize) {
        let it = &mut self.servers[server];
        it.acknowledged[from] = it.sent[from];
    }

    /// Is the history of a replica a part of that of this server?
    pub(crate) fn may_continue(&self, server: usize, source: usize) -> bool {
        let it = &self.servers[server];
        let from = &self.servers[source];
        let offset = it.offset();
        let is_of_reign = it.id == from.id && offset <= from.offset();
        let is_of_former = from
            .former
            .is_some_and(|(id, end)| id == it.id && offset <= end);
        it.resumes && (is_of_reign || is_of_former)
    }

    /// A replica asks a server for its writes.
    pub(crate) fn attach(&mut self, server: usize, source: usize, way: Way, half: &Rc<Snapshot>) {
        let from = self.servers[source].clone();
        self.servers[source].sent[server] = 0;
        self.servers[source].acknowledged[server] = 0;
        let it = &mut self.servers[server];
        it.unlink();
        it.source = source;
        if way == Way::Continued {
            if it.id != from.id {
                it.former = Some((it.id, it.offset()));
                it.id = from.id;
            }
            it.behind = from.log[it.log.len()..].to_vec();
            it.link = Link::Follows;
            return;
        }
        // As long as it has kept its data, another server may continue it.
        it.resumes &= way == Way::Copied;
        it.link = Link::Copies;
        if way == Way::Emptied {
            it.keys = Rc::clone(half);
        }
    }

    /// A replica has got its copy.
    pub(crate) fn load(&mut self, server: usize) {
        let from = self.servers[self.servers[server].source].clone();
        let it = &mut self.servers[server];
        it.keys = from.keys;
        it.log = from.log;
        it.id = from.id;
        it.former = None;
        it.link = Link::Follows;
        it.resumes = true;
        self.drop_followers(server);
    }

    /// The replicas of a server lose it, because its history has changed.
    fn drop_followers(&mut self, server: usize) {
        for (index, it) in self.servers.iter_mut().enumerate() {
            if index != server && it.source == server && !it.is_master {
                it.unlink();
            }
        }
    }

    pub(crate) fn cut(&mut self, server: usize) {
        self.servers[server].unlink();
    }

    /// A replica becomes the master, in a reign of its own. The one before is not told.
    pub(crate) fn promote(&mut self, server: usize) {
        let id = self.name();
        self.drop_followers(server);
        let it = &mut self.servers[server];
        it.unlink();
        it.is_master = true;
        it.former = Some((it.id, it.offset()));
        it.id = id;
        it.resumes = true;
        it.sent.fill(0);
        it.acknowledged.fill(0);
        self.current = server;
        self.epoch += 1;
    }

    /// A replaced master is told so.
    pub(crate) fn demote(&mut self, server: usize) {
        self.drop_followers(server);
        let it = &mut self.servers[server];
        it.unlink();
        it.is_master = false;
        it.resumes = true;
    }

    pub(crate) fn save(&mut self, server: usize) {
        let it = &mut self.servers[server];
        it.disk = Some(Disk {
            keys: Rc::clone(&it.keys),
            id: it.id,
            log: it.log.clone(),
        });
    }

    pub(crate) fn restart(&mut self, server: usize, now: u8, kept: Kept) {
        self.drop_followers(server);
        let id = self.name();
        let it = &mut self.servers[server];
        it.unlink();
        it.is_up = true;
        it.run = id;
        it.started = now;
        it.sent.fill(0);
        it.acknowledged.fill(0);
        it.former = None;
        it.resumes = true;
        if let Some(disk) = it.disk.clone().filter(|_| kept == Kept::Disk) {
            it.keys = disk.keys;
            it.id = disk.id;
            it.log = disk.log;
        }
        let has_history = matches!(kept, Kept::Everything | Kept::Disk);
        if kept == Kept::Nothing {
            it.keys = Rc::default();
            it.log.clear();
        }
        if it.is_master && has_history {
            it.former = Some((it.id, it.offset()));
        }
        if it.is_master || !has_history {
            it.id = id;
        }
    }

    /// The master dies, and the one that it had replaced, which never learned so, is told to be the
    /// master: it is already, so its reign does not change.
    pub(crate) fn elect_again(&mut self, server: usize) {
        let master = self.current;
        self.drop_followers(master);
        let it = &mut self.servers[master];
        it.is_up = false;
        it.is_master = false;
        it.unlink();
        self.current = server;
        self.epoch += 1;
    }
}

fn is_marked(standing: &Standing, nonce: u16) -> bool {
    match standing {
        Standing::Reigning(it) => {
            let text = String::from_utf8_lossy(&it.marker);
            text.split(' ').nth(5) == Some(&nonce.to_string())
        }
        _ => false,
    }
}
