//! Connections: two streams of bytes each, that are late, cut up, cut off, or lead nowhere.
//!
//! As in TCP, bytes of one direction of one connection keep their order, and nothing else does.
//! What was on its way when its sender closed the connection may still arrive, or a part of it.
//!
//! What a real network can do, and what stands for it here:
//!
//! * Deliver what a client wrote long after it gave the connection up: `Fault::Late`, on several
//!   nodes at once, for several ttls. In any order across connections: that, `Fault::Stall`, and
//!   nodes that thaw.
//! * Repeat a reply, or say something that nobody asked for: `Fault::Stray`. At moments in which
//!   RESP cannot tell it from an answer: `Beyond::Strays`.
//! * Lead to two servers in turn by one address: `Beyond::Exchanged`, which breaks exclusion, also
//!   with the restart guard. To a server that was set back to a snapshot and has the run id that it
//!   had: `Beyond::Restored`, which does too.
//! * Answer in the place of a server that is down: not here. An invented grant keeps no promise,
//!   and an invented error is a stray.
//! * Give a port to another connection: not here. TCP discards the bytes of the one before.

mod harm;
mod pipe;

use crate::chance::Random;
use crate::clock::{MICROS, MILLIS};
use crate::options::Options;
use crate::queue::{Event, Queue};
use pipe::{Piece, Pipe};

/// One side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Client,
    Node,
}

/// What becomes of a connection that is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setup {
    Pending,
    Made,
    Refused,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) client: usize,
    pub(crate) node: usize,
    pub(crate) setup: Setup,
    /// The client has closed its side: nobody will read what comes back.
    pub(crate) is_abandoned: bool,
    /// The node has forgotten the connection: it crashed.
    is_forgotten: bool,
    /// Nothing new arrives before then: a lost segment that is sent again and again.
    stalled_until: u64,
    /// Nor does anything that the client writes: a proxy holds it, and lets answers through.
    held_until: u64,
    /// Before this, what the node answers arrives once more, some time later.
    pub(crate) repeated_until: u64,
    /// Has an error arrived on it that nobody asked for?
    pub(crate) is_disturbed: bool,
    pipes: [Pipe; 2],
}

/// What a read yields.
#[derive(Debug)]
pub(crate) enum Read<'a> {
    Bytes(&'a [u8]),
    Empty,
    Finished,
}

/// All connections there ever were, and the delays on the way.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) connections: Vec<Connection>,
    /// Until when nothing gets through: by client and node, one time for each direction.
    clogs: Vec<[u64; 2]>,
    nodes: usize,
    delay: (u64, u64),
    tail_permille: u64,
    split_permille: u64,
    window: usize,
    is_calm: bool,
    /// How many times bytes were cut up on the way, and how many times they took long.
    pub(crate) splits: u64,
    pub(crate) tails: u64,
}

impl Network {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            connections: Vec::new(),
            clogs: vec![[0; 2]; options.clients * options.nodes],
            nodes: options.nodes,
            delay: options.delay,
            tail_permille: options.tail_permille,
            split_permille: options.split_permille,
            window: options.window,
            is_calm: false,
            splits: 0,
            tails: 0,
        }
    }

    /// From now on everything arrives soon. Also, a command finds room at once: while nobody
    /// drives, nobody would write the rest of it.
    pub(crate) fn calm(&mut self) {
        self.is_calm = true;
        self.window = usize::MAX;
        self.delay = (50 * MICROS, 500 * MICROS);
    }

    /// Nothing gets from this client to this node, or back, until then.
    pub(crate) fn clog(&mut self, client: usize, node: usize, towards: Side, until: u64) {
        self.clogs[client * self.nodes + node][towards as usize] = until;
    }

    fn arrival(
        &mut self,
        queue: &Queue,
        random: &mut Random,
        ends: (usize, usize),
        side: Side,
    ) -> u64 {
        let mut delay = random.between(self.delay.0, self.delay.1);
        if !self.is_calm && random.chance(self.tail_permille) {
            self.tails += 1;
            delay *= random.between(2, 40);
        }
        let clog = self.clogs[ends.0 * self.nodes + ends.1][side as usize];
        if self.is_calm { queue.now() + delay } else { queue.now().max(clog) + delay }
    }

    /// Begins to connect.
    pub(crate) fn connect(
        &mut self,
        queue: &mut Queue,
        random: &mut Random,
        client: usize,
        node: usize,
    ) -> usize {
        let connection = self.connections.len();
        self.connections.push(Connection {
            client,
            node,
            setup: Setup::Pending,
            is_abandoned: false,
            is_forgotten: false,
            stalled_until: 0,
            held_until: 0,
            repeated_until: 0,
            is_disturbed: false,
            pipes: [Pipe::default(), Pipe::default()],
        });
        let there = self.arrival(queue, random, (client, node), Side::Node);
        let back = self.arrival(queue, random, (client, node), Side::Client);
        queue.at(there.max(back), Event::Connected { connection });
        connection
    }

    /// Sends bytes towards `side`, as many as there is room for.
    pub(crate) fn send(
        &mut self,
        queue: &mut Queue,
        random: &mut Random,
        connection: usize,
        side: Side,
        bytes: &[u8],
    ) -> usize {
        let entry = &self.connections[connection];
        let pipe = &entry.pipes[side as usize];
        if pipe.is_swallowing {
            if entry.is_forgotten && !entry.pipes[Side::Client as usize].is_finished {
                // The other machine does not know of this connection, and says so.
                self.finish(queue, random, connection, Side::Client);
            }
            return bytes.len();
        }
        let used = pipe.bytes.len() - pipe.read;
        let room = if side == Side::Node { self.window.saturating_sub(used) } else { usize::MAX };
        let taken = bytes.len().min(room);
        let mut left = taken;
        self.connections[connection].pipes[side as usize].take_up(&bytes[..taken]);
        while left > 0 {
            let size = if random.chance(self.split_permille) {
                self.splits += 1;
                random.between(1, left as u64) as usize
            } else {
                left
            };
            self.push(queue, random, connection, side, Piece::Bytes(size));
            left -= size;
        }
        taken
    }

    fn push(
        &mut self,
        queue: &mut Queue,
        random: &mut Random,
        connection: usize,
        side: Side,
        piece: Piece,
    ) {
        let ends = (self.connections[connection].client, self.connections[connection].node);
        let arrival = self.arrival(queue, random, ends, side);
        let entry = &self.connections[connection];
        let held_until = if side == Side::Node { entry.held_until } else { 0 };
        let stalled_until = entry.stalled_until.max(held_until);
        let pipe = &mut self.connections[connection].pipes[side as usize];
        pipe.last_arrival = pipe.last_arrival.max(arrival).max(stalled_until);
        pipe.flying.push_back(piece);
        queue.at(pipe.last_arrival, Event::Arrive { connection, side });
    }

    /// What was on its way has come.
    pub(crate) fn arrive(&mut self, connection: usize, side: Side) {
        let pipe = &mut self.connections[connection].pipes[side as usize];
        match pipe.flying.pop_front() {
            Some(Piece::Bytes(size)) => pipe.arrived += size,
            Some(Piece::End) => pipe.is_finished = true,
            None => {}
        }
    }

    /// Is it known at `side` that no more will come?
    pub(crate) fn is_finished(&self, connection: usize, side: Side) -> bool {
        self.connections[connection].pipes[side as usize].is_finished
    }

    /// Takes what has arrived at `side`, up to `most` bytes.
    pub(crate) fn read(&mut self, connection: usize, side: Side, most: usize) -> Read<'_> {
        let pipe = &mut self.connections[connection].pipes[side as usize];
        if pipe.read == pipe.arrived {
            return if pipe.is_finished { Read::Finished } else { Read::Empty };
        }
        let start = pipe.read;
        pipe.read = pipe.arrived.min(start.saturating_add(most));
        Read::Bytes(&pipe.bytes[start..pipe.read])
    }

    /// The client closes its side. What it has written still arrives.
    pub(crate) fn close(&mut self, queue: &mut Queue, random: &mut Random, connection: usize) {
        self.connections[connection].is_abandoned = true;
        self.connections[connection].pipes[Side::Client as usize].is_swallowing = true;
        self.finish(queue, random, connection, Side::Node);
    }

    /// No more comes to `side` after what is on its way.
    pub(crate) fn finish(
        &mut self,
        queue: &mut Queue,
        random: &mut Random,
        connection: usize,
        side: Side,
    ) {
        self.push(queue, random, connection, side, Piece::End);
        self.connections[connection].pipes[side as usize].is_swallowing = true;
    }

    /// The connections that work, as far as the network knows.
    pub(crate) fn working(&self) -> Vec<usize> {
        let works = |connection: &Connection| {
            connection.setup == Setup::Made
                && connection.pipes.iter().all(|pipe| !pipe.is_swallowing)
        };
        (0..self.connections.len()).filter(|index| works(&self.connections[*index])).collect()
    }

    /// A delay of a thread or a node that is normally short.
    pub(crate) fn hitch(&self, random: &mut Random) -> u64 {
        match self.is_calm || random.chance(900) {
            true => random.below(50 * MICROS),
            false => random.below(5 * MILLIS),
        }
    }
}
