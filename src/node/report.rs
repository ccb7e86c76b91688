//! What the user is told about each node.

use super::node_error::NodeError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What one node had to say in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeReport {
    /// The node's URL, without the password.
    pub url: Arc<str>,
    /// Its answer.
    pub answer: NodeAnswer,
}

impl fmt::Display for NodeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.url, self.answer)
    }
}

/// A node's answer in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeAnswer {
    /// It did what was asked.
    Granted,
    /// It answered that it did not: the lock is another's there, or gone.
    Refused,
    /// It gave no answer that counts.
    Failed(NodeError),
    /// The round was decided before its answer came.
    Pending,
    /// It was not asked: nothing was ever written to it about this lock, so it does not hold it.
    NotAsked,
}

impl fmt::Display for NodeAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted => f.write_str("granted"),
            Self::Refused => f.write_str("refused"),
            Self::Failed(error) => error.fmt(f),
            Self::NotAsked => f.write_str("was not asked: it was never told of this lock"),
            Self::Pending => f.write_str("no reply yet (a majority had already answered)"),
        }
    }
}

/// What a node holds under a lock's key.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeySnapshot {
    /// The key's value, if there is one.
    pub value: Option<Vec<u8>>,
    /// How many milliseconds it has to live: -1 if it has no end, -2 if there is none.
    pub left: i64,
}

/// Whoever knows the token in a value can release the lock.
impl fmt::Debug for KeySnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.value.as_ref().map(Vec::len);
        f.debug_struct("KeySnapshot").field("bytes", &length).field("left", &self.left).finish()
    }
}

/// How a client stands with one of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStatus {
    /// The node's URL, without the password.
    pub url: Arc<str>,
    /// Is there a connection that can be used at once?
    pub is_connected: bool,
    /// What the server calls itself, such as `redis` or `valkey`. Like the two below it is known
    /// from the last connection, if there was one and the server tells. Escaped like the text of a
    /// [`ServerError`](crate::error::ServerError).
    pub server: Option<String>,
    /// The server's version.
    pub version: Option<String>,
    /// How long the server has been running, as it said when the connection was made, and counted
    /// on since. `None` without a connection.
    pub uptime: Option<Duration>,
    /// For how long its grants do not count yet, because it was started so recently; see
    /// [`Builder::restart_guard`](crate::Builder::restart_guard). `None` if they count, or without
    /// a connection.
    pub quarantine: Option<Duration>,
    /// How long the last answer took that a round waited for.
    pub round_trip: Option<Duration>,
    /// What went wrong last, if that was after the connection was made or there is none.
    pub last_error: Option<NodeError>,
}

impl NodeStatus {
    /// The statuses of nodes to which no request can be sent.
    pub(crate) fn of_unreachable(urls: &[Arc<str>], error: &NodeError) -> Vec<Self> {
        let status = |url: &Arc<str>| Self {
            url: Arc::clone(url),
            is_connected: false,
            server: None,
            version: None,
            uptime: None,
            quarantine: None,
            round_trip: None,
            last_error: Some(error.clone()),
        };
        urls.iter().map(status).collect()
    }
}
