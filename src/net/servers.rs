//! The servers of a ZooKeeper ensemble, of which one is connected at a time: the [`Conversation`]
//! of a session, and what is reported about each server.

use super::Endpoint;
use super::change_queue::ChangeQueue;
use super::connection::unreachable;
use super::follower::Follower;
use super::keeper_loop::ClientKeeper;
use super::socket_loop::Conversation;
use super::stream::{Received, TlsSession};
use crate::clock::{self, Time};
use crate::engine::Node;
use crate::node::{ChangeRecorder, Host, NodeAnswer, NodeError, NodeReport, Phase};
use crate::node_url::Address;
use crate::zookeeper::keeper::Outcome;
use crate::zookeeper::message::{Remedy, ServerError};
use crate::zookeeper::server_status::{ANSWER_MAX, QUESTION};
use crate::zookeeper::session::Problem;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The locks of a client, and the servers that are asked about them.
#[derive(Debug)]
pub(super) struct Servers {
    keeper: ClientKeeper,
    /// What each server did last, for errors. Other threads read it.
    reports: Arc<Mutex<Vec<NodeReport>>>,
    /// The timeout of the session that was granted last. Other threads read it.
    granted_ms: Arc<AtomicU64>,
    /// Where to put changes of the servers' states, if there is a listener.
    changes: Option<Arc<ChangeQueue>>,
    recorder: ChangeRecorder,
    /// The server of the connection that was last looked at, and how far that had come.
    seen: Option<(Node, Phase)>,
    phase: Phase,
    /// Why the socket of the current connection was closed.
    problem: Option<NodeError>,
}

impl Servers {
    pub(super) fn new(
        keeper: ClientKeeper,
        reports: &Arc<Mutex<Vec<NodeReport>>>,
        granted_ms: &Arc<AtomicU64>,
        changes: Option<Arc<ChangeQueue>>,
    ) -> Self {
        // No server is slow: one that is silent is left.
        let recorder = ChangeRecorder::new(Duration::MAX);
        Self {
            keeper,
            reports: Arc::clone(reports),
            granted_ms: Arc::clone(granted_ms),
            changes,
            recorder,
            seen: None,
            phase: Phase::Connecting,
            problem: None,
        }
    }

    pub(super) fn keeper(&mut self) -> &mut ClientKeeper {
        &mut self.keeper
    }

    pub(super) fn waiters(&self) -> impl Iterator<Item = &Arc<Follower<Outcome>>> {
        self.keeper.waiters()
    }

    /// Notes what has become of the connection since the last call.
    pub(super) fn follow_session(&mut self) {
        self.note_session_loss();
        let session = self.keeper.session();
        let now = (!session.is_down()).then(|| {
            let phase = if session.is_ready() { Phase::Answering } else { self.phase };
            (Node::new(session.server()), phase)
        });
        if now == self.seen {
            return;
        }
        let before = std::mem::replace(&mut self.seen, now);
        if let Some((node, phase)) = before.filter(|(node, _)| now.map(|(it, _)| it) != Some(*node))
        {
            let problem = self.keeper.session().problem();
            let error = self.problem.take().unwrap_or_else(|| error(problem, phase));
            self.lost(node, &error);
        }
        match now {
            Some((node, Phase::Answering)) => {
                let granted = self.keeper.session().timeout().unwrap_or_default();
                let millis = u64::try_from(granted.as_millis()).unwrap_or(u64::MAX);
                self.granted_ms.store(millis, Ordering::Relaxed);
                let url = self.report(node, NodeAnswer::Answered);
                self.recorder.greeted(node, &url);
            }
            Some((node, phase)) if !self.has_said_why(node) => {
                self.report(node, NodeAnswer::Failed(NodeError::TimedOut(phase)));
            }
            _ => {}
        }
        self.tell_changes();
    }

    /// The server of the last connection has told that the session has ended.
    fn note_session_loss(&mut self) {
        if !self.keeper.take_session_loss() {
            return;
        }
        let node = self.seen.map_or(Node::new(self.keeper.session().server()), |(node, _)| node);
        let url = Arc::clone(&self.lock_reports()[node.index()].url);
        self.recorder.session_lost(&url);
        self.tell_changes();
    }

    fn lost(&mut self, node: Node, error: &NodeError) {
        let url = self.report(node, NodeAnswer::Failed(error.clone()));
        self.recorder.lost(node, &url, error);
    }

    /// Did the last connection to this server fail for a reason that says more than how far another
    /// one has come?
    fn has_said_why(&self, node: Node) -> bool {
        match &self.lock_reports()[node.index()].answer {
            NodeAnswer::Failed(error) => !matches!(error, NodeError::TimedOut(_)),
            _ => false,
        }
    }

    /// Notes what a server did last. Returns its URL.
    fn report(&self, node: Node, answer: NodeAnswer) -> Arc<str> {
        let report = &mut self.lock_reports()[node.index()];
        report.answer = answer;
        Arc::clone(&report.url)
    }

    fn tell_changes(&mut self) {
        while let Some(change) = self.recorder.pop() {
            self.changes.iter().for_each(|changes| changes.push(change.clone()));
        }
    }

    fn lock_reports(&self) -> MutexGuard<'_, Vec<NodeReport>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_current(&mut self, node: Node) -> bool {
        self.keeper.session().server() == node.index()
    }
}

impl Conversation for Servers {
    fn is_down(&mut self, node: Node) -> bool {
        !self.is_current(node) || self.keeper.session().is_down()
    }

    fn wants_connection(&mut self, node: Node, now: Time) -> bool {
        self.is_current(node) && self.keeper.session().wants_connection(now)
    }

    fn connecting(&mut self, _: Node, now: Time, phase: Phase) {
        self.phase = phase;
        if self.keeper.session().is_down() {
            self.keeper.session().connecting(now);
        }
        self.follow_session();
    }

    fn phase(&mut self, _: Node) -> Phase {
        if self.keeper.session().is_ready() { Phase::Answering } else { self.phase }
    }

    fn connected(&mut self, _: Node, now: Time, _: Option<Host>) {
        self.phase = Phase::Greeting;
        self.keeper.session().connected(now);
        self.follow_session();
    }

    fn secure_scheme(&self) -> &'static str {
        "zks"
    }

    fn output(&mut self, node: Node) -> &[u8] {
        if self.is_down(node) { &[] } else { self.keeper.session().output() }
    }

    fn wrote(&mut self, _: Node, count: usize) {
        self.keeper.session().wrote(count);
    }

    fn received(&mut self, now: Time, node: Node, bytes: &[u8]) {
        if !self.is_down(node) {
            self.keeper.session().received(now, bytes);
            self.follow_session();
            self.keeper.settle(now);
        }
    }

    fn closed(&mut self, now: Time, node: Node, problem: NodeError) {
        if !self.is_down(node) {
            self.problem = Some(problem);
            self.keeper.session().closed(now, Problem::Disconnected);
            self.follow_session();
            self.keeper.settle(now);
        }
    }
}

/// What a server has refused, as an error of that server.
pub(crate) fn refusal(error: ServerError) -> NodeError {
    let is_permanent = error.remedy() == Remedy::Configure;
    NodeError::Refused { text: error.to_string(), is_permanent }
}

/// Why a connection has ended, as the session says it.
fn error(problem: Option<&Problem>, phase: Phase) -> NodeError {
    match problem {
        Some(Problem::Protocol(error)) => NodeError::UnexpectedReply(error.to_string()),
        Some(Problem::Refused(error) | Problem::Moved(error)) => refusal(*error),
        Some(Problem::TimedOut) => NodeError::TimedOut(phase),
        Some(problem) => NodeError::Disconnected(problem.to_string()),
        None => NodeError::Disconnected("the session has ended".to_owned()),
    }
}

// Asking a server of an ensemble about itself, over a connection of its own that blocks.

/// What a server has answered.
#[derive(Debug)]
pub(super) struct ProbeAnswer {
    pub(super) bytes: Vec<u8>,
    /// From the question to the end of the answer.
    pub(super) took: Duration,
    /// The machine on which it runs, if it is known.
    pub(super) host: Option<Host>,
}

/// A connection that is made to ask one question.
struct Probe {
    socket: TcpStream,
    tls: Option<TlsSession>,
    phase: Phase,
    until: Time,
}

/// Connects, asks, and reads the answer to its end. The resolver of the operating system may take
/// longer than `until`; nothing else does.
pub(super) fn probe(endpoint: &Endpoint, until: Time) -> Result<ProbeAnswer, NodeError> {
    let Address::Tcp { host, port } = &endpoint.address else {
        return Err(NodeError::Unresolved("it is no TCP address".to_owned()));
    };
    let addresses = (host.as_str(), *port).to_socket_addrs();
    let addresses = addresses.map_err(|error| NodeError::Unresolved(error.to_string()))?;
    let socket = connect(&addresses.collect::<Vec<_>>(), until)?;
    let own = socket.local_addr().ok().map(|own| own.ip());
    let host = socket.peer_addr().ok().map(|peer| Host::at(peer.ip(), own));
    let tls = endpoint.tls.as_ref().map(TlsSession::new).transpose();
    let tls = tls.map_err(|error| unreachable(&error))?;
    let mut probe = Probe { socket, tls, phase: Phase::Securing, until };
    let asked = probe.secure().and_then(|()| {
        probe.phase = Phase::Answering;
        let sent_at = clock::now();
        let bytes = probe.ask()?;
        Ok(ProbeAnswer { bytes, took: clock::now().since(sent_at), host })
    });
    asked.map_err(|error| failure(&error, probe.phase))
}

/// A connection to the first of these addresses that accepts one. Each gets its part of the time.
fn connect(addresses: &[SocketAddr], until: Time) -> Result<TcpStream, NodeError> {
    let mut last = NodeError::Unresolved("no address".to_owned());
    for (index, address) in addresses.iter().enumerate() {
        let count = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
        let Some(left) = left(until) else { return Err(NodeError::TimedOut(Phase::Connecting)) };
        match TcpStream::connect_timeout(address, (left / count).max(TIMEOUT_MIN)) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = failure(&error, Phase::Connecting),
        }
    }
    Err(last)
}

impl Probe {
    /// Makes the handshake of TLS, if there is one.
    fn secure(&mut self) -> io::Result<()> {
        while let Some(tls) = self.tls.as_mut().filter(|tls| tls.is_handshaking()) {
            set_timeouts(&self.socket, self.until)?;
            tls.flush(&mut self.socket)?;
            if tls.is_handshaking() {
                tls.receive(&mut self.socket)?;
            }
        }
        Ok(())
    }

    fn ask(&mut self) -> io::Result<Vec<u8>> {
        set_timeouts(&self.socket, self.until)?;
        match &mut self.tls {
            None => self.socket.write_all(QUESTION)?,
            Some(tls) => {
                // The first bytes of a connection always have room.
                tls.write(&mut self.socket, QUESTION)?;
                tls.flush(&mut self.socket)?;
            }
        }
        let mut answer = Vec::new();
        let mut buffer = [0; 4096];
        while answer.len() < ANSWER_MAX {
            set_timeouts(&self.socket, self.until)?;
            let received = match &mut self.tls {
                None => self.socket.read(&mut buffer),
                Some(tls) => match tls.read(&mut self.socket, &mut buffer) {
                    Ok(Received::Bytes { count: 0, .. }) => continue,
                    Ok(Received::Bytes { count, .. }) => Ok(count),
                    Ok(Received::End) => Ok(0),
                    Err(error) => Err(error),
                },
            };
            match received {
                Ok(0) => break,
                Ok(count) => answer.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A server may close the connection without a word of TLS.
                Err(error) if is_timeout(&error) || answer.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(answer)
    }
}

/// The shortest timeout of a socket: zero would be none.
const TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// How much time is left, if any.
fn left(until: Time) -> Option<Duration> {
    Some(until.since(clock::now())).filter(|left| !left.is_zero())
}

fn set_timeouts(socket: &TcpStream, until: Time) -> io::Result<()> {
    let left = left(until).ok_or(ErrorKind::TimedOut)?.max(TIMEOUT_MIN);
    socket.set_read_timeout(Some(left))?;
    socket.set_write_timeout(Some(left))
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn failure(error: &io::Error, phase: Phase) -> NodeError {
    match phase {
        _ if is_timeout(error) => NodeError::TimedOut(phase),
        Phase::Answering => NodeError::Disconnected(error.to_string()),
        _ => unreachable(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn endpoint(port: u16) -> Endpoint {
        Endpoint { address: Address::Tcp { host: "127.0.0.1".to_owned(), port }, tls: None }
    }

    fn soon() -> Time {
        clock::now().after(Duration::from_millis(300))
    }

    /// What becomes of a probe at a server that reads the question and then does this.
    fn probed(then: impl FnOnce(TcpStream) + Send + 'static) -> Result<ProbeAnswer, NodeError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut question = [0; 4];
            socket.read_exact(&mut question).unwrap();
            assert_eq!(question, QUESTION);
            then(socket);
        });
        let probed = probe(&endpoint(port), soon());
        server.join().unwrap();
        probed
    }

    #[test]
    fn an_answer_is_read_to_its_end() {
        let answer = probed(|mut socket| {
            for part in ["Mode: ", "leader\n"] {
                socket.write_all(part.as_bytes()).unwrap();
                thread::sleep(Duration::from_millis(5));
            }
        });
        let answer = answer.unwrap();
        assert_eq!(answer.bytes, b"Mode: leader\n");
        assert!(answer.took >= Duration::from_millis(5) && answer.host.unwrap().is_here);
        assert_eq!(probed(drop).unwrap().bytes, b"", "closed without an answer");
        let flood = probed(|mut socket| while socket.write_all(&[b'x'; 4096]).is_ok() {});
        assert!(flood.unwrap().bytes.len() < ANSWER_MAX + 4096);
    }

    #[test]
    fn silence_and_refusal_are_errors() {
        let silent = probed(|socket| {
            thread::sleep(Duration::from_millis(400));
            drop(socket);
        });
        assert_eq!(silent.unwrap_err(), NodeError::TimedOut(Phase::Answering));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let refused = probe(&endpoint(port), soon()).unwrap_err();
        assert!(matches!(refused, NodeError::Unreachable { .. }), "{refused:?}");
    }
}
