//! What a server does with a frame.

use super::{ConnectionId, Model};
use crate::ensemble::acl::{Identity, permission};
use crate::ensemble::refusal::Refusal;
use crate::ensemble::reply::{Body, Reply, ReplyHeader};
use crate::ensemble::request::{Connect, Operation, Part, Read, Request, RequestHeader};
use crate::ensemble::transaction::{Outcome, Requester, Transaction};
use redlatch_protocol::time::Time;
use redlatch_zookeeper::jute::{JuteError, Reader};

/// In the reply to a request of an unknown type.
const NO_ZXID: i64 = -1;

impl Model {
    /// Takes one frame of a connection, without its length. Bytes that are no request close the
    /// connection or are refused.
    pub(in super::super) fn received(&mut self, now: Time, id: ConnectionId, frame: &[u8]) {
        self.advance(now);
        self.counts.0 += 1;
        let Some(connection) = self.connections.get(&id) else { return };
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
    pub(in super::super) fn four_letters(&mut self, id: ConnectionId, word: [u8; 4]) {
        self.counts.0 += 1;
        let text = match &word {
            b"ruok" => "imok".to_owned(),
            b"srvr" => self.description(),
            _ => format!("{} is not a command of this server.\n", String::from_utf8_lossy(&word)),
        };
        self.send_bytes(id, text.into_bytes());
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
        let request = Connect::decode(frame)?;
        if request.last_zxid > self.zxid {
            // The client has seen what this server has not: another one knows more.
            self.close(id);
            return Ok(());
        }
        let timeout = self.sessions.granted(request.timeout_ms);
        let session = if request.session == 0 {
            let _ = self.next_change(now);
            Some(self.sessions.begin(now, timeout))
        } else {
            // The former connection is closed in any case, as by ZooKeeper.
            let of_it = |session: Option<i64>| session == Some(request.session);
            let former = self.connections.iter().find(|(_, it)| of_it(it.session));
            let former = former.map(|(id, _)| *id);
            former.into_iter().for_each(|former| self.close(former));
            let (session, password) = (request.session, request.password);
            self.sessions.resume(now, session, password, timeout).then_some(session)
        };
        let granted = session.map(|session| (session, timeout, self.sessions.password(session)));
        self.send(id, &Reply::Session(granted));
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
        let header = RequestHeader::read(&mut reader)?;
        let xid = header.xid;
        match Request::decode(header, &mut reader) {
            Ok(Some(Request::Write(operation))) => self.write(now, id, xid, &operation),
            Ok(Some(Request::Multi(operations))) => self.multi(now, id, xid, &operations),
            Ok(Some(Request::Read(read))) => self.read(id, xid, read),
            Ok(Some(Request::Sync(path))) => self.done(id, xid, Body::Path(path)),
            Ok(Some(Request::Ping)) => self.done(id, xid, Body::Empty),
            Ok(Some(Request::Auth { scheme, credentials })) => {
                self.authenticate(id, xid, scheme, credentials);
            }
            Ok(Some(Request::CloseSession)) => {
                self.delete_ephemerals(now, session);
                self.done(id, xid, Body::Empty);
                self.close(id);
            }
            Ok(None) => {
                let header = ReplyHeader { xid, zxid: NO_ZXID };
                self.send(id, &Reply::Refused(header, Refusal::Unimplemented));
                self.close(id);
            }
            Err(refusal) => {
                if header.is_write() {
                    let _ = self.next_change(now);
                }
                self.refuse(id, xid, refusal);
            }
        }
        Ok(())
    }

    fn done(&mut self, id: ConnectionId, xid: i32, body: Body<'_>) {
        let header = ReplyHeader { xid, zxid: self.zxid };
        self.send(id, &Reply::Done(header, body));
    }

    fn refuse(&mut self, id: ConnectionId, xid: i32, refusal: Refusal) {
        let header = ReplyHeader { xid, zxid: self.zxid };
        self.send(id, &Reply::Refused(header, refusal));
    }

    fn write(&mut self, now: Time, id: ConnectionId, xid: i32, operation: &Operation<'_>) {
        let change = self.next_change(now);
        let Some(connection) = self.connections.get(&id) else { return };
        let requester = Requester {
            session: connection.session.unwrap_or_default(),
            identities: &connection.identities,
        };
        let mut transaction = Transaction::begin(&mut self.tree, change);
        match transaction.run(requester, operation) {
            // It is for transactions of several operations. Alone it can fail, and no more.
            Ok(Outcome::Checked) => self.close(id),
            Ok(outcome) => {
                let events = transaction.commit();
                self.notify(&events);
                self.done(id, xid, Body::Outcome(&outcome));
            }
            Err(refusal) => self.refuse(id, xid, refusal),
        }
    }

    fn multi(&mut self, now: Time, id: ConnectionId, xid: i32, operations: &[Operation<'_>]) {
        let change = self.next_change(now);
        let Some(connection) = self.connections.get(&id) else { return };
        let requester = Requester {
            session: connection.session.unwrap_or_default(),
            identities: &connection.identities,
        };
        let mut transaction = Transaction::begin(&mut self.tree, change);
        let mut outcomes = Vec::new();
        for (index, operation) in operations.iter().enumerate() {
            match transaction.run(requester, operation) {
                Ok(outcome) => outcomes.push(outcome),
                Err(refusal) => {
                    transaction.roll_back();
                    let body = Body::Failed(index, refusal, operations.len());
                    return self.done(id, xid, body);
                }
            }
        }
        let events = transaction.commit();
        self.notify(&events);
        self.done(id, xid, Body::Outcomes(&outcomes));
    }

    fn read(&mut self, id: ConnectionId, xid: i32, read: Read<'_>) {
        let Some(connection) = self.connections.get(&id) else { return };
        if read.what == Part::Stat && read.path.contains('\0') {
            return self.refuse(id, xid, Refusal::BadArguments);
        }
        let identities = &connection.identities;
        let znode = self.tree.znode(read.path).and_then(|znode| {
            if read.what != Part::Stat {
                znode.acl.check(permission::READ, identities)?;
            }
            Ok(znode)
        });
        // Also of one that is not there: an exists waits until it is created.
        if read.watch && (znode.is_ok() || read.what == Part::Stat) {
            match read.what {
                Part::Stat | Part::Data => self.watches.watch_znode(read.path, id),
                Part::Children | Part::ChildrenAndStat => {
                    self.watches.watch_children(read.path, id);
                }
            }
        }
        let header = ReplyHeader { xid, zxid: self.zxid };
        let bytes = match znode {
            Ok(znode) => Reply::Done(header, Body::Znode(read.what, znode)).encode(),
            Err(refusal) => Reply::Refused(header, refusal).encode(),
        };
        match bytes {
            Some(bytes) => self.send_bytes(id, bytes),
            None => self.close(id),
        }
    }

    /// Adds credentials to a connection. Its reply has no transaction.
    fn authenticate(&mut self, id: ConnectionId, xid: i32, scheme: &str, credentials: &[u8]) {
        let header = ReplyHeader { xid, zxid: 0 };
        if scheme != "digest" {
            self.send(id, &Reply::Refused(header, Refusal::AuthFailed));
            return self.close(id);
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            let identity = Identity::digest(credentials);
            if !connection.identities.contains(&identity) {
                connection.identities.push(identity);
            }
        }
        self.send(id, &Reply::Done(header, Body::Empty));
    }
}
