//! The status of each server of an ensemble, all asked at the same time.

use crate::clock::{self, Time};
use crate::net::Endpoint;
use crate::net::connection::unreachable as not_connected;
use crate::net::stream::{Received, TlsSession};
use crate::node::{Host, NodeAnswer, NodeError, NodeReport, NodeStatus, Phase};
use crate::node_url::Address;
use crossbeam_channel::unbounded;
use redlatch_zookeeper::server_status::{self, ANSWER_MAX, QUESTION};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Asks the servers, until this time at the latest. `reports` is what the session knows of each.
///
/// Each has a thread of its own, since the resolver of the operating system blocks. One that takes
/// longer ends by itself.
pub(super) fn examine(
    endpoints: &[Endpoint],
    reports: Vec<NodeReport>,
    until: Time,
) -> Vec<NodeStatus> {
    let (sender, receiver) = unbounded();
    let mut results: Vec<Result<ProbeAnswer, NodeError>> = Vec::new();
    for (index, endpoint) in endpoints.iter().enumerate() {
        let (endpoint, sender) = (endpoint.clone(), sender.clone());
        let ask = move || {
            // It fails if nobody waits any more.
            let _ = sender.send((index, probe(&endpoint, until)));
        };
        let thread = thread::Builder::new().name("redlatch-probe".to_owned()).spawn(ask);
        results.push(Err(match thread {
            Ok(_) => NodeError::TimedOut(Phase::Resolving),
            Err(error) => NodeError::Unreachable { kind: error.kind(), text: error.to_string() },
        }));
    }
    drop(sender);
    while let Ok((index, result)) = receiver.recv_timeout(until.since(clock::now())) {
        results[index] = result;
    }
    reports.into_iter().zip(results).map(|(report, result)| status(report, result)).collect()
}

fn status(report: NodeReport, result: Result<ProbeAnswer, NodeError>) -> NodeStatus {
    let mut status = NodeStatus::unknown(&report.url);
    match result {
        Ok(answer) => {
            status.set_host(answer.host);
            status.round_trip = Some(answer.took);
            server_status::add(&answer.bytes, &mut status);
        }
        Err(error) => status.last_error = Some(error),
    }
    // It answers anyone, and may have refused this client.
    if let (None, NodeAnswer::Failed(error @ NodeError::Refused { .. })) =
        (&status.last_error, report.answer)
    {
        status.last_error = Some(error);
    }
    status
}

/// The statuses of servers that are not asked.
pub(super) fn unreachable(reports: &[NodeReport], error: &NodeError) -> Vec<NodeStatus> {
    let urls: Vec<Arc<str>> = reports.iter().map(|report| Arc::clone(&report.url)).collect();
    NodeStatus::of_unreachable(&urls, error)
}

// Asking a server of an ensemble about itself, over a connection of its own that blocks.

/// What a server has answered.
#[derive(Debug)]
struct ProbeAnswer {
    bytes: Vec<u8>,
    /// From the question to the end of the answer.
    took: Duration,
    /// The machine on which it runs, if it is known.
    host: Option<Host>,
}

/// A connection that is made to ask one question.
struct ProbeConnection {
    socket: TcpStream,
    tls: Option<TlsSession>,
    phase: Phase,
    until: Time,
}

/// Connects, asks, and reads the answer to its end. The resolver of the operating system may take
/// longer than `until`; nothing else does.
fn probe(endpoint: &Endpoint, until: Time) -> Result<ProbeAnswer, NodeError> {
    let Address::Tcp { host, port } = &endpoint.address else {
        return Err(NodeError::Unresolved("it is no TCP address".to_owned()));
    };
    let addresses = (host.as_str(), *port).to_socket_addrs();
    let addresses = addresses.map_err(|error| NodeError::Unresolved(error.to_string()))?;
    let socket = connect(&addresses.collect::<Vec<_>>(), until)?;
    let own = socket.local_addr().ok().map(|own| own.ip());
    let host = socket.peer_addr().ok().map(|peer| Host::at(peer.ip(), own));
    let tls = endpoint.tls.as_ref().map(TlsSession::new).transpose();
    let tls = tls.map_err(|error| not_connected(&error))?;
    let mut probe = ProbeConnection { socket, tls, phase: Phase::Securing, until };
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

impl ProbeConnection {
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
        _ => not_connected(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Role;
    use std::net::TcpListener;
    use std::thread;

    fn status_of(answer: &str, known: NodeAnswer) -> NodeStatus {
        let report = NodeReport::new("zk://a:2181".into(), known);
        let bytes = answer.as_bytes().to_vec();
        status(report, Ok(ProbeAnswer { bytes, took: Duration::from_millis(1), host: None }))
    }

    #[test]
    fn a_server_is_up_if_it_serves_clients() {
        let leader = "Zookeeper version: 3.8.0-1, built\nZxid: 0x10\nMode: leader\n";
        let up = status_of(leader, NodeAnswer::Answered);
        assert!(up.is_connected && up.last_error.is_none());
        assert_eq!(
            (up.role, up.zxid, up.version.as_deref()),
            (Some(Role::Leader), Some(16), Some("3.8.0"))
        );
        for (answer, is_connected, error) in [
            (leader.replace("leader", "read-only").as_str(), false, "refused: the server has no"),
            ("srvr is not executed because it is not in the whitelist.", true, "refused: srvr is"),
            ("This ZooKeeper instance is not currently serving requests", false, "refused: the"),
            ("-ERR\r\n", false, "unexpected reply: not the answer of a ZooKeeper server"),
        ] {
            let status = status_of(answer, NodeAnswer::Answered);
            let text = status.last_error.unwrap().to_string();
            assert!(status.is_connected == is_connected && text.starts_with(error), "{text}");
        }
    }

    #[test]
    fn what_a_server_has_refused_the_client_is_shown() {
        let refused = NodeError::Refused { text: "AuthFailed".to_owned(), is_permanent: true };
        let known = NodeAnswer::Failed(refused.clone());
        let status = status_of("Mode: follower\n", known.clone());
        assert_eq!((status.is_connected, status.last_error), (true, Some(refused)));
        let report = NodeReport::new("zk://a:2181".into(), known);
        let error = NodeError::TimedOut(Phase::Connecting);
        assert_eq!(super::status(report, Err(error.clone())).last_error, Some(error));
    }

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
