//! What schedules are made of: steps that belong together, each of which is taken if it is
//! possible.

use crate::group::Way;
use crate::scheme::Scheme;
use crate::search::Search;
use crate::world::{Step, Violation, World};
use Step::{
    Acknowledge, Attach, Begin, Close, Connect, Deliver, Execute, Expire, Extend, Hear, Load,
    Promote, Prove, Read, Resume, Tick, Witness,
};
use models::explore::Model;

/// The first master, the one that is promoted, and a replica of one of them.
pub(crate) const OLD: usize = 0;
pub(crate) const NEW: usize = 1;
pub(crate) const REPLICA: usize = 2;

pub(crate) const ANN: usize = 0;
pub(crate) const BOB: usize = 1;

/// A schedule under way.
pub(crate) struct Schedule {
    pub(crate) search: Search,
    pub(crate) world: World,
    pub(crate) trace: Vec<Step>,
    pub(crate) found: Option<Violation>,
}

impl Schedule {
    pub(crate) fn new(scheme: Scheme) -> Self {
        let mut search = Search::new(scheme);
        let world = search.first();
        Self {
            search,
            world,
            trace: Vec::new(),
            found: None,
        }
    }

    /// Takes a step, if it is possible: by the right rules, some are not.
    pub(crate) fn go(&mut self, step: Step) {
        if self.found.is_none() && self.search.allows(&self.world, &step) {
            self.trace.push(step);
            self.found = self.search.take(&mut self.world, &step).err();
        }
    }

    pub(crate) fn pass(&mut self, ticks: u8) {
        (0..ticks).for_each(|_| self.go(Tick));
    }

    pub(crate) fn greet(&mut self, client: usize, server: usize) {
        self.go(Close(client));
        self.go(Connect(client, server));
        self.go(Execute(client));
        self.go(Read(client));
    }

    /// A replica gets all that its master has written, and the master hears of it.
    pub(crate) fn catch_up(&mut self, master: usize, replica: usize) {
        while !self.world.group.servers[replica].behind.is_empty() {
            self.go(Deliver(replica));
        }
        self.go(Acknowledge(replica));
        self.go(Hear(master, replica));
    }

    /// A vote that these replicas acknowledge before the last question, and what follows it.
    pub(crate) fn vote(&mut self, first: Step, master: usize, replicas: &[usize]) {
        let (Begin(client) | Extend(client) | Resume(client)) = first else {
            unreachable!("{first:?}")
        };
        self.go(first);
        let written = self.world.clients[client].session.as_ref();
        for _ in 1..written.map_or(0, |session| session.sent.len()) {
            self.go(Execute(client));
        }
        for replica in replicas {
            self.catch_up(master, *replica);
        }
        self.go(Expire(client));
        for _ in 0..2 {
            self.go(Execute(client));
            self.go(Read(client));
        }
    }

    /// A replica follows a server, continued if it can be.
    pub(crate) fn follow(&mut self, replica: usize, master: usize) {
        self.go(Attach(replica, master, Way::Continued));
        self.go(Attach(replica, master, Way::Copied));
        self.go(Load(replica));
    }

    /// A client asks these servers for proof, and says so.
    pub(crate) fn prove(&mut self, client: usize, servers: &[usize]) {
        for server in servers {
            self.go(Witness(client, *server));
        }
        self.go(Prove(client));
        self.go(Execute(client));
        self.go(Read(client));
    }

    /// The new master reigns with the other replica, both are asked for proof, and Bob tries.
    pub(crate) fn succeed(&mut self) {
        self.go(Promote(NEW));
        self.follow(REPLICA, NEW);
        self.try_at_new(&[NEW, REPLICA]);
    }

    pub(crate) fn try_at_new(&mut self, witnesses: &[usize]) {
        self.greet(BOB, NEW);
        self.prove(BOB, witnesses);
        self.vote(Begin(BOB), NEW, &[REPLICA]);
    }

    pub(crate) fn holds(&self, client: usize) -> bool {
        self.world.clients[client].held.is_some()
    }
}
