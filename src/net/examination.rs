//! The status of each server of an ensemble, all asked at the same time.

use super::Endpoint;
use super::servers::{ProbeAnswer, probe};
use crate::clock::{self, Time};
use crate::node::{NodeAnswer, NodeError, NodeReport, NodeStatus, Phase, Role};
use crate::zookeeper::server_status::{Mode, NoStatus, ServerStatus};
use crossbeam_channel::unbounded;
use std::sync::Arc;
use std::thread;

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
        Ok(answer) => answered(&mut status, &answer),
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

fn answered(status: &mut NodeStatus, answer: &ProbeAnswer) {
    status.set_host(answer.host);
    status.round_trip = Some(answer.took);
    let refused = |text: String| NodeError::Refused { text, is_permanent: false };
    let server = match ServerStatus::read(&answer.bytes) {
        Ok(server) => server,
        Err(NoStatus::Other) => {
            let text = NoStatus::Other.to_string();
            status.last_error = Some(NodeError::UnexpectedReply(text));
            return;
        }
        Err(why) => {
            status.is_connected = why == NoStatus::Forbidden;
            status.last_error = Some(refused(why.to_string()));
            return;
        }
    };
    status.server = Some("zookeeper".to_owned());
    status.version = server.version;
    status.zxid = server.zxid;
    status.is_connected = server.mode != Some(Mode::ReadOnly);
    if !status.is_connected {
        status.last_error = Some(refused(NoStatus::NotServing.to_string()));
    }
    status.role = server.mode.and_then(|mode| match mode {
        Mode::Standalone => Some(Role::Standalone),
        Mode::Leader => Some(Role::Leader),
        Mode::Follower => Some(Role::Follower),
        Mode::Observer => Some(Role::Observer),
        _ => None,
    });
}

/// The statuses of servers that are not asked.
pub(super) fn unreachable(reports: &[NodeReport], error: &NodeError) -> Vec<NodeStatus> {
    let urls: Vec<Arc<str>> = reports.iter().map(|report| Arc::clone(&report.url)).collect();
    NodeStatus::of_unreachable(&urls, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

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
}
