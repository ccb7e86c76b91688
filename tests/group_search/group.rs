//! A replicated group: a master, its replicas, to which writes come late and in order, and what
//! promotes one of them.

use crate::node::{Answer, Command, Keys, Node, Said};

/// A time that never comes.
const NEVER: u8 = u8::MAX;

/// So many writes wait for a replica at most: one that is further behind has lost its link.
const BEHIND_MAX: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub(crate) is_up: bool,
    pub(crate) is_master: bool,
    pub(crate) run: u8,
    pub(crate) id: u8,
    pub(crate) keys: Keys,
    /// It was replaced, and takes no writes after this time.
    pub(crate) writes_until: u8,
    /// Of a replica: whose writes it gets, while its link stands, and what the keys are after each
    /// write that has not arrived.
    pub(crate) source: u8,
    pub(crate) is_linked: bool,
    pub(crate) behind: Vec<Keys>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    pub(crate) servers: Vec<Server>,
    /// The master, as the failover authority names it, and how often it has chosen one.
    pub(crate) current: usize,
    pub(crate) epoch: u8,
}

impl Server {
    pub(crate) fn takes_writes(&self, now: u8) -> bool {
        self.is_up && self.is_master && now <= self.writes_until
    }

    /// Neither follows another server nor has followers.
    fn unlink(&mut self) {
        self.is_linked = false;
        self.behind.clear();
        self.writes_until = NEVER;
    }
}

impl Group {
    /// A group that has been in use for long. The runs of its servers begin with this number.
    pub(crate) fn new(servers: usize, run: u8, epoch: u8, node: &mut Node) -> Self {
        let marker = Some(node.first_marker(run, 0, epoch));
        let server = |index| Server {
            is_up: true,
            is_master: index == 0,
            run: run + index as u8,
            id: 0,
            keys: Keys { lock: None, marker },
            writes_until: NEVER,
            source: 0,
            is_linked: index != 0,
            behind: Vec::new(),
        };
        Self {
            servers: (0..servers).map(server).collect(),
            current: 0,
            epoch,
        }
    }

    /// What a server says about itself.
    fn said(&self, server: usize) -> Said {
        let it = &self.servers[server];
        Said {
            run: it.run,
            id: it.id,
            is_replica: !it.is_master,
        }
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
        let (keys, answer) = node.run(it.keys, self.said(server), now, command);
        let takes_writes = it.takes_writes(now);
        if !takes_writes && (command.is_vote() || keys != it.keys) {
            return Answer::Failed;
        }
        if keys != it.keys {
            self.write(server, keys);
        }
        answer
    }

    /// A master has these keys from now on.
    pub(crate) fn write(&mut self, server: usize, keys: Keys) {
        let it = &mut self.servers[server];
        it.keys = keys;
        for (index, replica) in self.servers.iter_mut().enumerate() {
            if index == server || !replica.is_linked || usize::from(replica.source) != server {
                continue;
            }
            if replica.behind.len() == BEHIND_MAX {
                (replica.is_linked, replica.behind) = (false, Vec::new());
            } else {
                replica.behind.push(keys);
            }
        }
    }

    /// Locks that have ended count as absent.
    pub(crate) fn tick(&mut self, now: u8) {
        for server in &mut self.servers {
            for keys in server.behind.iter_mut().chain([&mut server.keys]) {
                keys.lock = keys.lock.filter(|lock| lock.until > now);
            }
        }
    }

    /// The next write arrives at a replica.
    pub(crate) fn deliver(&mut self, server: usize) {
        let it = &mut self.servers[server];
        it.keys = it.behind.remove(0);
    }

    /// A replica becomes the master, with an id that no server had. The one before takes writes
    /// until then.
    pub(crate) fn promote(&mut self, server: usize, id: u8, writes_until: u8) {
        self.servers[self.current].writes_until = writes_until;
        let it = &mut self.servers[server];
        it.unlink();
        (it.is_master, it.id) = (true, id);
        self.current = server;
        self.epoch += 1;
    }

    /// A replaced master is told so.
    pub(crate) fn demote(&mut self, server: usize) {
        let it = &mut self.servers[server];
        it.unlink();
        it.is_master = false;
    }

    /// A replica gets a copy of what the present master has, and follows it.
    pub(crate) fn sync(&mut self, server: usize) {
        let master = &self.servers[self.current];
        let keys = master.keys;
        let id = master.id;
        let it = &mut self.servers[server];
        it.behind.clear();
        it.keys = keys;
        it.id = id;
        (it.source, it.is_linked) = (self.current as u8, true);
    }

    /// A server starts again, as the next run.
    pub(crate) fn restart(&mut self, server: usize, run: u8, keeps_keys: bool) {
        let it = &mut self.servers[server];
        let writes_until = it.writes_until;
        it.unlink();
        (it.is_up, it.run, it.writes_until) = (true, run, writes_until);
        if it.is_master {
            it.id = run;
        }
        if !keeps_keys {
            it.keys = Keys::default();
        }
    }

    /// The master dies, and the one that it had replaced, which never learned so, is told to be the
    /// master: it is already, so its reign does not change.
    pub(crate) fn elect_again(&mut self, server: usize) {
        let master = &mut self.servers[self.current];
        (master.is_up, master.is_master) = (false, false);
        self.servers[server].writes_until = NEVER;
        self.current = server;
        self.epoch += 1;
    }
}
