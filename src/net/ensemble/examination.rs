//! The status of each server of an ensemble, all asked at the same time.

use crate::clock::{self, Time};
use crate::net::Endpoint;
use crate::net::probe::ProbeConnection;
use crate::node::{Host, NodeAnswer, NodeError, NodeReport, NodeStatus, Phase};
use crate::node_url::Address;
use crossbeam_channel::unbounded;
use redlatch_zookeeper::server_status::{self, ANSWER_MAX, QUESTION};
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
        let endpoint = endpoint.clone();
        let sender = sender.clone();
        let thread = thread::Builder::new().name("redlatch-probe".to_owned());
        let started = thread.spawn(move || {
            // It fails if nobody waits any more.
            let _ = sender.send((index, probe(&endpoint, until)));
        });
        results.push(Err(match started {
            Ok(_) => NodeError::TimedOut(Phase::Resolving),
            Err(error) => NodeError::Unreachable {
                kind: error.kind(),
                text: error.to_string(),
            },
        }));
    }
    drop(sender);
    while let Ok((index, result)) = receiver.recv_timeout(until.since(clock::now())) {
        results[index] = result;
    }
    reports
        .into_iter()
        .zip(results)
        .map(|(report, result)| status(report, result))
        .collect()
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

/// What a server has answered.
#[derive(Debug)]
struct ProbeAnswer {
    bytes: Vec<u8>,
    /// From the question to the end of the answer.
    took: Duration,
    /// The machine on which it runs, if it is known.
    host: Option<Host>,
}

fn probe(endpoint: &Endpoint, until: Time) -> Result<ProbeAnswer, NodeError> {
    let Address::Tcp { host, port } = &endpoint.address else {
        return Err(NodeError::Unresolved("it is not a TCP address".to_owned()));
    };
    let mut probe = ProbeConnection::connect((host, *port), endpoint.tls.as_ref(), until)?;
    let sent_at = clock::now();
    let bytes = probe.ask(QUESTION, |answer| answer.len() >= ANSWER_MAX)?;
    Ok(ProbeAnswer {
        bytes,
        took: clock::now().since(sent_at),
        host: probe.host(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::LookupAuth;
    use crate::node::{NodeKind, Role};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    fn status_of(answer: &str, known: NodeAnswer) -> NodeStatus {
        let report = NodeReport::new("zk://a:2181".into(), NodeKind::Ensemble, known);
        let bytes = answer.as_bytes().to_vec();
        status(
            report,
            Ok(ProbeAnswer {
                bytes,
                took: Duration::from_millis(1),
                host: None,
            }),
        )
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
            (
                leader.replace("leader", "read-only").as_str(),
                false,
                "refused: the server has no",
            ),
            (
                "srvr is not executed because it is not in the whitelist.",
                true,
                "refused: srvr is",
            ),
            (
                "This ZooKeeper instance is not currently serving requests",
                false,
                "refused: the",
            ),
            (
                "-ERR\r\n",
                false,
                "unexpected reply: not the answer of a ZooKeeper server",
            ),
        ] {
            let status = status_of(answer, NodeAnswer::Answered);
            let text = status.last_error.unwrap().to_string();
            assert!(
                status.is_connected == is_connected && text.starts_with(error),
                "{text}"
            );
        }
    }

    #[test]
    fn what_a_server_has_refused_the_client_is_shown() {
        let refused = NodeError::Refused {
            text: "AuthFailed".to_owned(),
            is_permanent: true,
        };
        let known = NodeAnswer::Failed(refused.clone());
        let status = status_of("Mode: follower\n", known.clone());
        assert_eq!(
            (status.is_connected, status.last_error),
            (true, Some(refused))
        );
        let report = NodeReport::new("zk://a:2181".into(), NodeKind::Ensemble, known);
        let error = NodeError::TimedOut(Phase::Connecting);
        assert_eq!(
            super::status(report, Err(error.clone())).last_error,
            Some(error)
        );
    }

    fn endpoint(port: u16) -> Endpoint {
        Endpoint {
            address: Address::Tcp {
                host: "127.0.0.1".to_owned(),
                port,
            },
            tls: None,
            auth: LookupAuth::default(),
        }
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
        // The server says nothing until the client has given up.
        let silent = probed(|mut socket| {
            socket.read_to_end(&mut Vec::new()).unwrap();
        });
        assert_eq!(silent.unwrap_err(), NodeError::TimedOut(Phase::Answering));
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let refused = probe(&endpoint(port), soon()).unwrap_err();
        assert!(
            matches!(refused, NodeError::Unreachable { .. }),
            "{refused:?}"
        );
    }
}
