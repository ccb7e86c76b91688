//! Connections: two streams of bytes each, which may be delayed, split, cut off or lost.
//!
//! As in TCP, the bytes of one direction of one connection keep their order; there is no other
//! order. Bytes in flight when their sender closes the connection may still arrive, or a part of
//! them.
//!
//! What a real network can do, and how it is simulated:
//!
//! * Deliver bytes long after the client abandoned the connection: `Fault::Late`, on several nodes
//!   at once, for several ttls. In any order across connections: `Fault::Late`, `Fault::Stall`, and
//!   nodes that resume.
//! * Repeat a reply, or deliver an unsolicited one: `Fault::Stray`. At moments in which RESP cannot
//!   distinguish it from the expected reply: `BrokenAssumption::Strays`.
//! * Lead to two servers alternately at one address: `BrokenAssumption::Exchanged`, which breaks
//!   exclusion, also with the restart guard. To a server that was set back to a snapshot and has
//!   the run id that it had: `BrokenAssumption::Restored`, which does too.
//! * Reply in place of a server that is down: not simulated. An invented grant breaks every
//!   guarantee, and an invented error is an unsolicited reply.
//! * Reuse a port for another connection: not simulated. TCP discards the bytes of the former one.

mod faults;
mod pipe;

use crate::clock::{MICROS, MILLIS};
use crate::options::Options;
use crate::queue::{Event, Queue};
use crate::random::Random;
use pipe::{Piece, Pipe};

/// One side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Client,
    Node,
}

/// The result of connecting.
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
    /// The server that it leads to, once it is made, and the epoch in which that was elected.
    pub(crate) server: Option<usize>,
    pub(crate) epoch: u64,
    pub(crate) setup: Setup,
    /// The client has closed its side: replies are not read any more.
    pub(crate) is_abandoned: bool,
    /// The node has forgotten the connection: it crashed.
    is_forgotten: bool,
    /// Nothing new arrives before then, as with a lost segment that is sent again and again.
    stalled_until: u64,
    /// Nothing that the client writes arrives before then, as with a proxy that holds it back but
    /// forwards replies.
    held_until: u64,
    /// Until then, each reply of the node arrives a second time, some time later.
    pub(crate) repeated_until: u64,
    /// Has an unsolicited error arrived on it?
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

/// All connections of the history, and the delays in the network.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) connections: Vec<Connection>,
    /// Until when nothing is delivered: by client and node, one time for each direction.
    clogs: Vec<[u64; 2]>,
    nodes: usize,
    delay: (u64, u64),
    /// The delay of each link, by client and node, if the links are steady. Zero before its first
    /// use.
    links: Option<Vec<u64>>,
    tail_permille: u64,
    split_permille: u64,
    window: usize,
    /// Are threads never delayed for long?
    is_prompt: bool,
    has_faults_ended: bool,
    /// How often bytes were split in flight, and how often they were late.
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
            links: options
                .has_steady_links
                .then(|| vec![0; options.clients * options.nodes]),
            tail_permille: options.tail_permille,
            split_permille: options.split_permille,
            window: options.window,
            is_prompt: options.queueing.is_quiet,
            has_faults_ended: false,
            splits: 0,
            tails: 0,
        }
    }

    /// From now on everything arrives soon, and a command always has room: without a leader, no
    /// thread would write the rest of it.
    pub(crate) fn end_faults(&mut self) {
        self.has_faults_ended = true;
        self.window = usize::MAX;
        self.delay = (50 * MICROS, 500 * MICROS);
        self.links = None;
    }

    /// Nothing is delivered from this client to this node, or back, until then.
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
        let mut delay = self.delay_of_link(random, ends);
        if !self.has_faults_ended && random.chance(self.tail_permille) {
            self.tails += 1;
            delay *= random.between(2, 40);
        }
        let clog = self.clogs[ends.0 * self.nodes + ends.1][side as usize];
        if self.has_faults_ended {
            queue.now() + delay
        } else {
            queue.now().max(clog) + delay
        }
    }

    fn delay_of_link(&mut self, random: &mut Random, ends: (usize, usize)) -> u64 {
        let mut draw = || random.between(self.delay.0, self.delay.1);
        match &mut self.links {
            None => draw(),
            Some(links) => {
                let link = &mut links[ends.0 * self.nodes + ends.1];
                *link = if *link == 0 { draw() } else { *link };
                *link
            }
        }
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
            server: None,
            epoch: 0,
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
                // The other machine does not know this connection, and resets it.
                self.finish(queue, random, connection, Side::Client);
            }
            return bytes.len();
        }
        let used = pipe.bytes.len() - pipe.read;
        let room = if side == Side::Node {
            self.window.saturating_sub(used)
        } else {
            usize::MAX
        };
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
        let ends = (
            self.connections[connection].client,
            self.connections[connection].node,
        );
        let arrival = self.arrival(queue, random, ends, side);
        let entry = &self.connections[connection];
        let held_until = if side == Side::Node {
            entry.held_until
        } else {
            0
        };
        let stalled_until = entry.stalled_until.max(held_until);
        let pipe = &mut self.connections[connection].pipes[side as usize];
        pipe.last_arrival = pipe.last_arrival.max(arrival).max(stalled_until);
        pipe.flying.push_back(piece);
        queue.at(pipe.last_arrival, Event::Arrive { connection, side });
    }

    /// Bytes in flight arrive.
    pub(crate) fn arrive(&mut self, connection: usize, side: Side) {
        let pipe = &mut self.connections[connection].pipes[side as usize];
        match pipe.flying.pop_front() {
            Some(Piece::Bytes(size)) => pipe.arrived += size,
            Some(Piece::End) => pipe.is_finished = true,
            None => {}
        }
    }

    /// Does `side` know that no more bytes will arrive?
    pub(crate) fn is_finished(&self, connection: usize, side: Side) -> bool {
        self.connections[connection].pipes[side as usize].is_finished
    }

    /// Reads up to `most` bytes that have arrived at `side`.
    pub(crate) fn read(&mut self, connection: usize, side: Side, most: usize) -> Read<'_> {
        let pipe = &mut self.connections[connection].pipes[side as usize];
        if pipe.read == pipe.arrived {
            return if pipe.is_finished {
                Read::Finished
            } else {
                Read::Empty
            };
        }
        let start = pipe.read;
        pipe.read = pipe.arrived.min(start.saturating_add(most));
        Read::Bytes(&pipe.bytes[start..pipe.read])
    }

    /// The client closes its side. The bytes that it has written still arrive.
    pub(crate) fn close(&mut self, queue: &mut Queue, random: &mut Random, connection: usize) {
        self.connections[connection].is_abandoned = true;
        self.connections[connection].pipes[Side::Client as usize].is_swallowing = true;
        self.finish(queue, random, connection, Side::Node);
    }

    /// No more bytes arrive at `side` after those in flight.
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
        (0..self.connections.len())
            .filter(|index| works(&self.connections[*index]))
            .collect()
    }

    /// A delay of a thread or a node that is normally short.
    pub(crate) fn scheduling_delay(&self, random: &mut Random) -> u64 {
        match self.is_prompt || self.has_faults_ended || random.chance(900) {
            true => random.below(50 * MICROS),
            false => random.below(5 * MILLIS),
        }
    }
}
