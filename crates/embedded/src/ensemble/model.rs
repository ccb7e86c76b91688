//! The pure model of a server: times and frames in, frames out. It reads no clock.
//!
//! The owner of the sockets calls [`Model::connect`], then [`Model::received`] for each frame of
//! this connection and [`Model::disconnect`] when it is closed, and [`Model::advance`] at
//! [`Model::next_deadline`]. After each of these calls, [`Model::poll`] says what to send and which
//! connections to close, until it returns `None`. Time never goes back.

mod serving;

use super::acl::Identity;
use super::reply::Reply;
use super::sessions::Sessions;
use super::settings::Settings;
use super::transaction::Transaction;
use super::tree::Tree;
use super::watches::{Event, Watches};
use super::znode::Change;
use redlatch_protocol::time::Time;
use std::collections::{BTreeMap, VecDeque};

/// Identifies a connection. Later ones are larger, and none is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ConnectionId(u64);

impl ConnectionId {
    /// Counts from 0.
    pub(super) fn number(self) -> u64 {
        self.0
    }
}

/// What is to be done for a connection.
#[derive(Debug, PartialEq)]
pub(super) enum Output {
    /// Send these bytes.
    Send(ConnectionId, Vec<u8>),
    /// Close it when all bytes before were sent.
    Close(ConnectionId),
}

/// A server, with its tree and its sessions.
#[derive(Debug)]
pub(super) struct Model {
    settings: Settings,
    /// A time, and microseconds since 1970 at that time.
    wall_clock: (Time, u64),
    tree: Tree,
    sessions: Sessions,
    watches: Watches<ConnectionId>,
    connections: BTreeMap<ConnectionId, Connection>,
    next_connection: u64,
    zxid: i64,
    next_sweep: Time,
    outputs: VecDeque<Output>,
    /// Frames received and sent.
    counts: (u64, u64),
}

#[derive(Debug, Default)]
struct Connection {
    /// `None` before the connect request.
    session: Option<i64>,
    identities: Vec<Identity>,
}

impl Model {
    /// A server that starts now, when it is so many microseconds after 1970. Its tree is empty.
    pub(super) fn new(settings: Settings, now: Time, wall_micros: u64) -> Self {
        // As a server with the number 1 does.
        let first_session = (1 << 56) | (((wall_micros / 1_000) << 24) >> 8) as i64;
        Self {
            wall_clock: (now, wall_micros),
            tree: Tree::new(),
            sessions: Sessions::new(settings.tick, settings.timeouts(), first_session),
            watches: Watches::new(),
            connections: BTreeMap::new(),
            next_connection: 0,
            zxid: 0,
            next_sweep: now.after(settings.sweep_interval),
            outputs: VecDeque::new(),
            counts: (0, 0),
            settings,
        }
    }

    /// The server has started again, with its tree and its sessions and without its connections.
    pub(super) fn restart(&mut self, now: Time) {
        self.connections.clear();
        self.watches = Watches::new();
        self.outputs.clear();
        self.sessions.touch_all(now);
        self.next_sweep = now.after(self.settings.sweep_interval);
    }

    pub(super) fn connect(&mut self) -> ConnectionId {
        let id = ConnectionId(self.next_connection);
        self.next_connection += 1;
        self.connections.insert(id, Connection::default());
        id
    }

    /// The connection is closed. Its session goes on.
    pub(super) fn disconnect(&mut self, connection: ConnectionId) {
        self.connections.remove(&connection);
        self.watches.forget(connection);
    }

    /// What is to be done; `None`: nothing more.
    pub(super) fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`advance`](Self::advance).
    pub(super) fn next_deadline(&self) -> Time {
        self.next_sweep.min(self.sessions.next_end())
    }

    /// Ends the sessions whose time has passed, and removes empty containers.
    pub(super) fn advance(&mut self, now: Time) {
        while let Some(session) = self.sessions.expired(now) {
            self.end_session(now, session);
        }
        if now >= self.next_sweep {
            self.next_sweep = now.after(self.settings.sweep_interval);
            for path in self.tree.empty_containers() {
                self.transact(now, |transaction| transaction.delete(&path));
            }
        }
    }

    /// Ends all sessions, and with them their connections.
    pub(super) fn expire_sessions(&mut self, now: Time) {
        for session in self.sessions.ids() {
            self.end_session(now, session);
        }
    }

    /// The names of the children of a znode, in their order. `None` if there is no such znode.
    pub(super) fn children(&self, path: &str) -> Option<Vec<String>> {
        let znode = self.tree.znode(path).ok()?;
        Some(znode.children.iter().map(|name| String::from(&**name)).collect())
    }

    /// Ends a session: its ephemeral znodes go, its connection is closed.
    fn end_session(&mut self, now: Time, session: i64) {
        self.delete_ephemerals(now, session);
        let of_it = |connection: &Connection| connection.session == Some(session);
        let connections = self.connections.iter().filter(|(_, connection)| of_it(connection));
        let connections: Vec<_> = connections.map(|(id, _)| *id).collect();
        connections.into_iter().for_each(|id| self.close(id));
    }

    /// Ends a session, but not its connection.
    fn delete_ephemerals(&mut self, now: Time, session: i64) {
        self.sessions.end(session);
        let paths = self.tree.of_session(session);
        self.transact(now, |transaction| {
            // They have no children, and nobody else deletes them meanwhile.
            paths.iter().try_for_each(|path| transaction.delete(path))
        });
    }

    /// Carries out a transaction that is no client's. One that is refused changes nothing.
    fn transact<E>(&mut self, now: Time, run: impl FnOnce(&mut Transaction<'_>) -> Result<(), E>) {
        let change = self.next_change(now);
        let mut transaction = Transaction::begin(&mut self.tree, change);
        match run(&mut transaction) {
            Ok(()) => {
                let events = transaction.commit();
                self.notify(&events);
            }
            Err(_) => transaction.roll_back(),
        }
    }

    fn next_change(&mut self, now: Time) -> Change {
        self.zxid += 1;
        let (then, micros) = self.wall_clock;
        let millis = u128::from(micros / 1_000) + now.since(then).as_millis();
        Change { zxid: self.zxid, time_ms: i64::try_from(millis).unwrap_or(i64::MAX) }
    }

    fn notify(&mut self, events: &[Event]) {
        for event in events {
            for connection in self.watches.trigger(event) {
                self.send(connection, &Reply::Event(event));
            }
        }
    }

    fn send(&mut self, connection: ConnectionId, reply: &Reply<'_>) {
        let Some(bytes) = reply.encode() else { return self.close(connection) };
        self.send_bytes(connection, bytes);
    }

    fn send_bytes(&mut self, connection: ConnectionId, bytes: Vec<u8>) {
        self.counts.1 += 1;
        self.outputs.push_back(Output::Send(connection, bytes));
    }

    fn close(&mut self, connection: ConnectionId) {
        self.disconnect(connection);
        self.outputs.push_back(Output::Close(connection));
    }
}

#[cfg(test)]
mod tests;
