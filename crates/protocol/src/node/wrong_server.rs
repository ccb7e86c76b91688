//! A URL that leads to a server of another kind than it names.
//!
//! Which kind of server a URL names decides which of its answers count. Servers without a cluster
//! behind `redis+cluster://` would each grant the same lock, because any of them may be taken for
//! the master of a slot. So each connection on which votes are given asks the server what it is.

use std::fmt;

/// What a server is, as it says at the greeting: `mode` in `HELLO`, `redis_mode` or `server_mode`
/// in `INFO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerKind {
    /// A server that is in no cluster.
    Single,
    /// A member of a cluster.
    Member,
    Sentinel,
}

impl ServerKind {
    pub(super) fn of(mode: &[u8]) -> Option<Self> {
        match mode {
            b"standalone" => Some(Self::Single),
            b"cluster" => Some(Self::Member),
            b"sentinel" => Some(Self::Sentinel),
            _ => None,
        }
    }
}

/// What a server must be to which a URL leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum NamedServer {
    /// `redis://`.
    Plain,
    /// `redis+sentinel://`, or `redis://` with `failover=true`.
    #[cfg_attr(not(feature = "groups"), allow(dead_code, reason = "none is built in"))]
    Group,
    /// `redis+cluster://`.
    Slot,
}

/// In which way the server at a URL is of another kind than the URL names. The text says what to
/// write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WrongServer {
    /// A `redis+cluster://` URL leads to a server that is in no cluster.
    NoCluster,
    /// A `redis+cluster://` URL leads to a server that does not say whether it is in a cluster.
    HidesCluster,
    /// The URL of another replicated group leads to a member of a cluster.
    Cluster,
    /// The URL of a replicated group leads to a server that is a replica, hears its master, and has
    /// been so for longer than a failover takes.
    Replica,
    /// A `redis+sentinel://` URL names a server that is not a Sentinel.
    NoSentinel,
    /// The Sentinels of the URL watch no group of its name.
    UnknownGroup,
    /// A Sentinel or a member of a cluster, on another machine, names a loopback address as the
    /// master's.
    Loopback,
    /// A URL leads to a Sentinel where a server is expected that keeps data.
    Sentinel,
}

impl WrongServer {
    /// What is wrong with a server that says this of itself at the URL of such a node. A plain URL
    /// of a member of a cluster is refused where that matters: by the member, with `MOVED`.
    pub(super) fn check(node: NamedServer, said: Option<ServerKind>) -> Option<Self> {
        match (node, said) {
            (_, Some(ServerKind::Sentinel)) => Some(Self::Sentinel),
            (NamedServer::Slot, Some(ServerKind::Single)) => Some(Self::NoCluster),
            (NamedServer::Slot, None) => Some(Self::HidesCluster),
            (NamedServer::Group, Some(ServerKind::Member)) => Some(Self::Cluster),
            (NamedServer::Slot, Some(ServerKind::Member)) => None,
            (NamedServer::Plain | NamedServer::Group, _) => None,
        }
    }
}

impl fmt::Display for WrongServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCluster => {
                "the server is in no cluster, so another one could grant the same lock: give each \
                 server without replicas a redis:// URL of its own, and a replicated group a \
                 redis+sentinel:// URL, or redis://…?failover=true"
            }
            Self::HidesCluster => {
                "neither HELLO nor INFO says whether the server is in a cluster: allow the user \
                 INFO, or name the servers without a proxy"
            }
            Self::Cluster => "the server is a member of a cluster: use a redis+cluster:// URL",
            Self::Replica => {
                "the server is a replica of a master that it hears, and has been for longer than a \
                 failover takes: name what leads to the master, or the group's Sentinels by a \
                 redis+sentinel:// URL"
            }
            Self::NoSentinel => {
                "the server is not a Sentinel: name the group's Sentinels (port 26379), or a name \
                 that leads to the master by redis://…?failover=true"
            }
            Self::UnknownGroup => {
                "the Sentinel watches no group of this name (No such master with that name): end \
                 the URL with the name that sentinel monitor gives it"
            }
            Self::Loopback => {
                "it names a loopback address as the master's, which is another server on each \
                 machine: have sentinel monitor, or the cluster's servers, announce an address \
                 that leads to it from all machines"
            }
            Self::Sentinel => {
                "the server is a Sentinel: use a redis+sentinel://host:port/GROUP URL with the \
                 name of the group that it watches"
            }
        })
    }
}

/// That the master of a group lists more replicas than the URL says, and what to write.
pub(super) fn show_crowd(
    named: u32,
    listed: usize,
    is_permanent: bool,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let unless = if is_permanent {
        ""
    } else {
        ", unless one was just replaced, and is listed until repl-timeout"
    };
    write!(
        f,
        "the master lists {listed} replicas, and the URL says replicas={named}: write \
         replicas={listed} into the URLs of all clients{unless}"
    )
}

/// That the URLs of a group's clients have different numbers of replicas, and what to write. `None`
/// of others is none, or not known.
pub(super) fn show_mode(
    named: Option<u32>,
    found: Option<u32>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let others = match (named, found) {
        (_, Some(found)) => format!("the URLs of the group's other clients have replicas={found}"),
        (None, None) => "the URLs of the group's other clients have replicas=".to_owned(),
        (Some(_), None) => {
            "the group's other clients have no replicas= in their URLs, or are older".to_owned()
        }
    };
    let own = match named {
        Some(named) => format!("this one has replicas={named}"),
        None => "this one has not".to_owned(),
    };
    write!(
        f,
        "{others}, and {own}: write the same into the URLs of all; to change it, stop all clients, \
         and run redlatch renew --yes with the new URL"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_on_a_member_of_a_cluster_only() {
        let kinds = [Some(ServerKind::Single), Some(ServerKind::Member), None];
        let checked = |node| kinds.map(|said| WrongServer::check(node, said));
        assert_eq!(
            checked(NamedServer::Slot),
            [
                Some(WrongServer::NoCluster),
                None,
                Some(WrongServer::HidesCluster)
            ]
        );
        assert_eq!(
            checked(NamedServer::Group),
            [None, Some(WrongServer::Cluster), None]
        );
        assert_eq!(checked(NamedServer::Plain), [None, None, None]);
        for node in [NamedServer::Slot, NamedServer::Group, NamedServer::Plain] {
            let problem = WrongServer::check(node, Some(ServerKind::Sentinel));
            assert_eq!(problem, Some(WrongServer::Sentinel));
        }
    }

    #[test]
    fn servers_say_their_kind_in_one_word() {
        for (mode, kind) in [
            (&b"standalone"[..], Some(ServerKind::Single)),
            (b"cluster", Some(ServerKind::Member)),
            (b"sentinel", Some(ServerKind::Sentinel)),
            (b"", None),
            (b"Cluster", None),
        ] {
            assert_eq!(ServerKind::of(mode), kind);
        }
    }
}
