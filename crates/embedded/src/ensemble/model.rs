//! The pure model of a server: times and frames in, frames out. It reads no clock.
//!
//! The owner of the sockets calls [`Model::connect`], then [`Model::received`] for each frame of
//! this connection and [`Model::disconnect`] when it is closed, and [`Model::advance`] at
//! [`Model::next_deadline`]. After each of these calls, [`Model::poll`] says what to send and which
//! connections to close, until it returns `None`. Time never goes back.

use super::EnsembleBuilder;
use super::acl::{AclIdentity, permission};
use super::messages::{self, ClientRequest, Frame, Part, Refusal, ZnodeWrite, write_results};
use super::sessions::{Sessions, Watches, ZnodeEvent};
use super::tree::{OperationEffect, Stamp, Tree, TreeTransaction};
use redlatch_protocol::time::Time;
use redlatch_zookeeper::jute::{FrameWriter, JuteError, Reader};
use std::collections::{BTreeMap, VecDeque};

/// Identifies a connection. Later ones are larger, and none is used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ConnectionId(pub(super) usize);

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
    settings: EnsembleBuilder,
    /// A time, and microseconds since 1970 at that time.
    wall_clock: (Time, u64),
    tree: Tree,
    sessions: Sessions,
    watches: Watches<ConnectionId>,
    connections: BTreeMap<ConnectionId, KnownClient>,
    next_connection: usize,
    zxid: i64,
    next_sweep: Time,
    outputs: VecDeque<Output>,
    /// Frames received and sent.
    counts: (u64, u64),
}

#[derive(Debug, Default)]
struct KnownClient {
    /// `None` before the connect request.
    session: Option<i64>,
    identities: Vec<AclIdentity>,
}

impl Model {
    /// A server that starts now, at this time in microseconds since 1970. Its tree is empty.
    pub(super) fn new(settings: EnsembleBuilder, now: Time, wall_micros: u64) -> Self {
        // As a server with the number 1 does.
        let first_session = (1 << 56) | (((wall_micros / 1_000) << 24) >> 8) as i64;
        let ticks = settings.tick.saturating_mul(2)..=settings.tick.saturating_mul(20);
        let timeouts = settings.timeouts.clone().unwrap_or(ticks);
        Self {
            wall_clock: (now, wall_micros),
            tree: Tree::new(),
            sessions: Sessions::new(settings.tick, timeouts, first_session),
            watches: Watches::default(),
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
        self.watches = Watches::default();
        self.outputs.clear();
        self.sessions.touch_all(now);
        self.next_sweep = now.after(self.settings.sweep_interval);
    }

    pub(super) fn connect(&mut self) -> ConnectionId {
        let id = ConnectionId(self.next_connection);
        self.next_connection += 1;
        self.connections.insert(id, KnownClient::default());
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
                self.delete(now, &[path]);
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
        Some(
            znode
                .children
                .iter()
                .map(|name| String::from(&**name))
                .collect(),
        )
    }

    /// Ends a session: its ephemeral znodes go, its connection is closed.
    fn end_session(&mut self, now: Time, session: i64) {
        self.delete_ephemerals(now, session);
        self.close_that_of(session);
    }

    /// Closes the connection of a session, if it has one.
    fn close_that_of(&mut self, session: i64) {
        let mut connections = self.connections.iter();
        let connection = connections.find(|(_, it)| it.session == Some(session));
        connection
            .map(|(id, _)| *id)
            .into_iter()
            .for_each(|id| self.close(id));
    }

    /// Ends a session, but not its connection.
    fn delete_ephemerals(&mut self, now: Time, session: i64) {
        self.sessions.end(session);
        let paths = self.tree.of_session(session);
        self.delete(now, &paths);
    }

    /// Deletes znodes in a transaction that is not a client's. One that is refused changes nothing.
    fn delete(&mut self, now: Time, paths: &[Box<str>]) {
        let change = self.next_change(now);
        let mut transaction = TreeTransaction::begin(&mut self.tree, change, 0, &[]);
        // They have no children, and nobody else deletes them meanwhile.
        match paths.iter().try_for_each(|path| transaction.delete(path)) {
            Ok(()) => {
                let events = transaction.commit();
                self.notify(&events);
            }
            Err(_) => transaction.roll_back(),
        }
    }

    fn next_change(&mut self, now: Time) -> Stamp {
        self.zxid += 1;
        let (then, micros) = self.wall_clock;
        let millis = u128::from(micros / 1_000) + now.since(then).as_millis();
        Stamp {
            zxid: self.zxid,
            time_ms: i64::try_from(millis).unwrap_or(i64::MAX),
        }
    }

    fn notify(&mut self, events: &[ZnodeEvent]) {
        for event in events {
            for connection in self.watches.trigger(event) {
                self.send(connection, messages::event(event));
            }
        }
    }

    /// Sends a reply, or closes the connection if there can be none.
    fn send(&mut self, connection: ConnectionId, reply: Frame) {
        let Some(bytes) = reply else {
            return self.close(connection);
        };
        self.counts.1 += 1;
        self.outputs.push_back(Output::Send(connection, bytes));
    }

    fn done(&mut self, id: ConnectionId, xid: i32, body: impl FnOnce(&mut FrameWriter<'_>)) {
        self.send(id, messages::done(xid, self.zxid, body));
    }

    fn refuse(&mut self, id: ConnectionId, xid: i32, refusal: Refusal) {
        self.send(id, messages::refused(xid, self.zxid, refusal));
    }

    fn close(&mut self, connection: ConnectionId) {
        self.disconnect(connection);
        self.outputs.push_back(Output::Close(connection));
    }
}

// What a server does with a frame.

/// In the reply to a request of an unknown type.
const NO_ZXID: i64 = -1;

impl Model {
    /// Takes one frame of a connection, without its length. Bytes that are not a request close the
    /// connection or are refused.
    pub(super) fn received(&mut self, now: Time, id: ConnectionId, frame: &[u8]) {
        self.advance(now);
        self.counts.0 += 1;
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        let served = match connection.session {
            None => self.greet(now, id, frame),
            Some(session) => {
                self.sessions.touch(now, session);
                self.serve(now, id, session, frame)
            }
        };
        if served.is_err() {
            self.close(id);
        }
    }

    /// Takes one of the commands of four letters, which are sent instead of the first frame.
    pub(super) fn four_letters(&mut self, id: ConnectionId, word: [u8; 4]) {
        self.counts.0 += 1;
        let text = match &word {
            b"ruok" => "imok".to_owned(),
            b"srvr" => self.description(),
            _ => format!(
                "{} is not a command of this server.\n",
                String::from_utf8_lossy(&word)
            ),
        };
        self.send(id, Some(text.into_bytes()));
        self.close(id);
    }

    fn description(&self) -> String {
        let (received, sent) = self.counts;
        format!(
            "Zookeeper version: 3.8.0-redlatch, built on an embedded server\n\
             Latency min/avg/max: 0/0.0/0\nReceived: {received}\nSent: {sent}\n\
             Connections: {}\nOutstanding: 0\nZxid: {:#x}\nMode: standalone\nNode count: {}\n",
            self.connections.len(),
            self.zxid,
            self.tree.len()
        )
    }

    fn greet(&mut self, now: Time, id: ConnectionId, frame: &[u8]) -> Result<(), JuteError> {
        let mut reader = Reader::new(frame);
        let _version = reader.int()?;
        let last_zxid = reader.long()?;
        let timeout_ms = reader.int()?;
        let resumed = reader.long()?;
        let password = reader.buffer()?.unwrap_or_default();
        if last_zxid > self.zxid {
            // The client has seen what this server has not: another one knows more.
            self.close(id);
            return Ok(());
        }
        let timeout = self.sessions.granted(timeout_ms);
        let session = if resumed == 0 {
            let _ = self.next_change(now);
            Some(self.sessions.begin(now, timeout))
        } else {
            // The former connection is closed in any case, as by ZooKeeper.
            self.close_that_of(resumed);
            self.sessions
                .resume(now, resumed, password, timeout)
                .then_some(resumed)
        };
        let granted = session.map(|session| (session, timeout, self.sessions.password(session)));
        self.send(id, messages::session(granted));
        match self.connections.get_mut(&id) {
            Some(connection) if session.is_some() => connection.session = session,
            _ => self.close(id),
        }
        Ok(())
    }

    fn serve(
        &mut self,
        now: Time,
        id: ConnectionId,
        session: i64,
        frame: &[u8],
    ) -> Result<(), JuteError> {
        let mut reader = Reader::new(frame);
        let xid = reader.int()?;
        let opcode = reader.int()?;
        match ClientRequest::decode(opcode, &mut reader) {
            Ok(ClientRequest::Write(operation)) => {
                let operations = std::slice::from_ref(&operation);
                match self.transact(now, id, session, operations).as_deref() {
                    // It is for transactions of several operations. Alone it can fail, and no more.
                    Ok([OperationEffect::Checked] | []) => self.close(id),
                    Ok([outcome, ..]) => self.done(id, xid, |frame| outcome.write(frame)),
                    Err((_, refusal)) => self.refuse(id, xid, *refusal),
                }
            }
            Ok(ClientRequest::Multi(operations)) => {
                let results = self.transact(now, id, session, &operations);
                self.done(id, xid, |frame| {
                    write_results(&results, operations.len(), frame);
                });
            }
            Ok(ClientRequest::Read { part, path, watch }) => self.read(id, xid, part, path, watch),
            Ok(ClientRequest::Sync(path)) => self.done(id, xid, |frame| _ = frame.text(path)),
            Ok(ClientRequest::Ping) => self.done(id, xid, |_| {}),
            Ok(ClientRequest::Auth {
                scheme,
                credentials,
            }) => {
                self.authenticate(id, xid, scheme, credentials);
            }
            Ok(ClientRequest::CloseSession) => {
                self.delete_ephemerals(now, session);
                self.done(id, xid, |_| {});
                self.close(id);
            }
            Ok(ClientRequest::Unknown) => {
                self.send(id, messages::refused(xid, NO_ZXID, Refusal::Unimplemented));
                self.close(id);
            }
            Err(refusal) => {
                if ClientRequest::is_write(opcode) {
                    let _ = self.next_change(now);
                }
                self.refuse(id, xid, refusal);
            }
        }
        Ok(())
    }

    /// Carries out all these operations or none. An error says which one is refused, and why.
    fn transact(
        &mut self,
        now: Time,
        id: ConnectionId,
        session: i64,
        operations: &[ZnodeWrite<'_>],
    ) -> Result<Vec<OperationEffect>, (usize, Refusal)> {
        let change = self.next_change(now);
        let identities = self
            .connections
            .get(&id)
            .map_or(&[][..], |it| &it.identities);
        let mut transaction = TreeTransaction::begin(&mut self.tree, change, session, identities);
        let mut outcomes = Vec::new();
        for (index, operation) in operations.iter().enumerate() {
            match transaction.run(operation) {
                Ok(outcome) => outcomes.push(outcome),
                Err(refusal) => {
                    transaction.roll_back();
                    return Err((index, refusal));
                }
            }
        }
        let events = transaction.commit();
        self.notify(&events);
        Ok(outcomes)
    }

    fn read(&mut self, id: ConnectionId, xid: i32, part: Part, path: &str, watch: bool) {
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        if part == Part::Stat && path.contains('\0') {
            return self.refuse(id, xid, Refusal::BadArguments);
        }
        let znode = self.tree.znode(path).and_then(|znode| {
            if part != Part::Stat {
                znode.acl.check(permission::READ, &connection.identities)?;
            }
            Ok(znode)
        });
        // Also of one that is not there: an exists waits until it is created.
        if watch && (znode.is_ok() || part == Part::Stat) {
            let watches = match part {
                Part::Stat | Part::Data => &mut self.watches.znodes,
                Part::Children | Part::ChildrenAndStat => &mut self.watches.children,
            };
            watches.add(path.as_bytes(), id);
        }
        let reply = match znode {
            Ok(znode) => messages::done(xid, self.zxid, |frame| znode.write(part, frame)),
            Err(refusal) => messages::refused(xid, self.zxid, refusal),
        };
        self.send(id, reply);
    }

    /// Adds credentials to a connection. Its reply has no transaction.
    fn authenticate(&mut self, id: ConnectionId, xid: i32, scheme: &str, credentials: &[u8]) {
        if scheme != "digest" {
            self.send(id, messages::refused(xid, 0, Refusal::AuthFailed));
            return self.close(id);
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            let identity = AclIdentity::digest(credentials);
            if !connection.identities.contains(&identity) {
                connection.identities.push(identity);
            }
        }
        self.send(id, messages::done(xid, 0, |_| {}));
    }
}

#[cfg(test)]
mod tests;
