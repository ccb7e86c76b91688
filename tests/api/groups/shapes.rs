//! Groups of each shape, and each way in which another of their servers becomes the master.

use std::time::{Duration, Instant};

use support::cli::{Client, Value, encode, parse};
use support::cluster::Cluster;
use support::eventually;
use support::locks::LIMIT;
use support::proxy::Proxy;
use support::redis::Server;
use support::sentinel::{NAME, SentinelGroup, replicated};

/// A cluster gives up a failover that people have asked for after five seconds.
const ASK_AGAIN: Duration = Duration::from_secs(6);

/// How clients find the master.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Sentinels,
    /// A cluster of one shard, which is the node.
    OneShard,
    /// A cluster of three shards, of which the first one is the only node.
    OneOfThree,
    /// A cluster of three shards, each of which is a node.
    ThreeShards,
    Name,
}

/// Why another server becomes the master, or the same one anew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Loss {
    Kill,
    /// SIGSTOP. It continues when its successor is there.
    Stop,
    /// It is shut down, saves its data, and is started again.
    Restart,
    /// People have a replica promoted, while the master goes on.
    Forced,
    /// The same, and the master first hands its writes over.
    HandedOver,
}

/// A master and two replicas, with all that leads clients to the master.
pub(super) enum Group {
    Watched(SentinelGroup),
    Sharded { cluster: Cluster, shards: usize },
    Named { servers: Vec<Server>, door: Proxy },
}

/// A field of `INFO`; none from a server that ends its connections, as it does when it is told whom
/// to follow.
pub(super) fn told(server: &Server, section: &str, name: &str) -> Option<String> {
    let mut client = Client::connect(server.port()).ok()?;
    let reply = client.try_raw(&encode(&["INFO", section])).ok()?;
    parse(&reply)?.0.field(name)
}

fn is_master(server: &Server) -> bool {
    told(server, "replication", "role").as_deref() == Some("master")
}

impl Group {
    pub(super) fn start(shape: Shape) -> Self {
        let sharded = |shards| {
            let cluster = Cluster::start(shards, 2);
            for server in &cluster.servers {
                // Otherwise all shards refuse while one has no master.
                server.command(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
                // A replica of another shard would follow a master that has one replica for a
                // moment, and no vote counts that more replicas follow than the URL says.
                server.command(&["CONFIG", "SET", "cluster-allow-replica-migration", "no"]);
            }
            Self::Sharded { cluster, shards }
        };
        match shape {
            Shape::Sentinels => Self::Watched(SentinelGroup::start(2)),
            Shape::OneShard => sharded(1),
            Shape::OneOfThree | Shape::ThreeShards => sharded(3),
            Shape::Name => {
                let servers = replicated(2);
                let door = Proxy::start(servers[0].port());
                Self::Named { servers, door }
            }
        }
    }

    pub(super) fn url(&self, shape: Shape) -> String {
        let query = match shape {
            Shape::Sentinels | Shape::ThreeShards => "?replicas=2",
            // A slot of the first shard.
            Shape::OneShard | Shape::OneOfThree => "?slots=100&replicas=2",
            Shape::Name => "?failover=true&replicas=2",
        };
        let place = match self {
            Self::Watched(group) => group.url(),
            Self::Sharded { cluster, .. } => cluster.url(),
            Self::Named { door, .. } => door.url(),
        };
        format!("{place}{query}")
    }

    /// The servers of the group; of a cluster, those of its first shard.
    pub(super) fn servers(&self) -> Vec<&Server> {
        match self {
            Self::Watched(group) => group.servers.iter().collect(),
            Self::Sharded { cluster, shards } => {
                let of_first = cluster.servers.iter().step_by(*shards);
                of_first.map(|it| &**it).collect()
            }
            Self::Named { servers, .. } => servers.iter().collect(),
        }
    }

    pub(super) fn server(&mut self, index: usize) -> &mut Server {
        match self {
            Self::Watched(group) => &mut group.servers[index],
            Self::Sharded { cluster, shards } => &mut cluster.servers[index * *shards],
            Self::Named { servers, .. } => &mut servers[index],
        }
    }

    /// The master, as clients are told. None while a cluster has none.
    pub(super) fn master(&self) -> Option<usize> {
        let servers = self.servers();
        match self {
            Self::Watched(group) => Some(group.master()),
            Self::Sharded { .. } => {
                let masters = (0..servers.len()).filter(|it| is_master(servers[*it]));
                masters.max_by_key(|it| epoch(servers[*it]))
            }
            Self::Named { door, .. } => {
                let port = door.leads_to();
                servers.iter().position(|server| server.port() == port)
            }
        }
    }

    /// Returns when clients are told of the next master, if the servers know such a way.
    #[track_caller]
    pub(super) fn replace(&mut self, before: usize, loss: Loss) -> bool {
        let has_begun = match loss {
            Loss::Kill => {
                self.server(before).kill();
                true
            }
            Loss::Stop => {
                self.server(before).pause();
                true
            }
            Loss::Restart => {
                let server = self.server(before);
                // It saves only if it is told to.
                server.command(&["CONFIG", "SET", "save", "3600 1"]);
                server.stop();
                server.restart();
                return true;
            }
            Loss::Forced | Loss::HandedOver => self.order(before, loss),
        };
        if !has_begun {
            return false;
        }
        let is_left_to_us = match self {
            Self::Watched(_) => false,
            // A majority of the masters elects the next one, and there is one.
            Self::Sharded { shards, .. } => *shards == 1,
            Self::Named { .. } => loss != Loss::HandedOver,
        };
        let is_lost = matches!(loss, Loss::Kill | Loss::Stop);
        if is_left_to_us && (is_lost || matches!(self, Self::Named { .. })) {
            self.promote(before);
        }
        let is_replaced = || self.master().is_some_and(|master| master != before);
        assert!(eventually(4 * LIMIT, is_replaced), "nobody is promoted");
        if loss == Loss::Stop {
            self.servers()[before].resume();
        }
        true
    }

    /// Has those who elect a master replace it. `false` if they know no such way.
    #[track_caller]
    fn order(&self, before: usize, loss: Loss) -> bool {
        match self {
            Self::Watched(group) if loss == Loss::Forced => group.replace_master(),
            Self::Watched(group) => {
                let words = ["SENTINEL", "FAILOVER", NAME, "COORDINATED"];
                return eventually(LIMIT, || group.sentinels[0].command(&words) == Value::ok());
            }
            Self::Sharded { .. } => {
                let takeover: &[&str] = match loss {
                    Loss::Forced => &["CLUSTER", "FAILOVER", "TAKEOVER"],
                    _ => &["CLUSTER", "FAILOVER"],
                };
                let mut asked_at: Option<Instant> = None;
                assert!(eventually(4 * LIMIT, || {
                    if asked_at.is_none_or(|at| at.elapsed() > ASK_AGAIN) {
                        self.best_replica(before).command(takeover);
                        asked_at = Some(Instant::now());
                    }
                    self.master().is_some_and(|master| master != before)
                }));
            }
            // By a promotion, as if it were lost.
            Self::Named { .. } if loss == Loss::Forced => {}
            Self::Named { servers, door } => {
                if servers[before].command(&["FAILOVER"]) != Value::ok() {
                    return false;
                }
                let promoted = || {
                    let mut others = (0..servers.len()).filter(|it| *it != before);
                    others.find(|it| is_master(&servers[*it]))
                };
                assert!(eventually(LIMIT, || promoted().is_some()));
                let promoted = promoted().expect("it is the master");
                door.lead_to(servers[promoted].port());
            }
        }
        true
    }

    /// Of the replicas, one that has most.
    fn best_replica(&self, master: usize) -> &Server {
        let servers = self.servers();
        let offset = |server: &Server| {
            let offset = told(server, "replication", "slave_repl_offset");
            offset.and_then(|offset| offset.parse::<u64>().ok())
        };
        let others = (0..servers.len()).filter(|it| *it != master);
        let best = others.max_by_key(|it| offset(servers[*it]));
        servers[best.expect("there are replicas")]
    }

    /// Promotes a replica, as who elects masters would.
    fn promote(&self, before: usize) {
        let promoted = self.best_replica(before);
        let Self::Named { servers, door } = self else {
            promoted.command(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
            return;
        };
        promoted.command(&["REPLICAOF", "NO", "ONE"]);
        let is_other = |server: &&Server| server.port() != promoted.port();
        let others = servers.iter().filter(is_other);
        for replica in others.filter(|it| it.port() != servers[before].port()) {
            follow(replica, promoted);
        }
        door.lead_to(promoted.port());
    }

    /// The server that was the master is a replica from now on, and so are all others: after
    /// `FAILOVER`, they still follow the former one.
    pub(super) fn rejoin(&mut self, former: usize, loss: Loss) {
        if loss == Loss::Kill {
            self.server(former).restart();
        }
        let is_told = matches!(self, Self::Sharded { .. });
        let master = self.master().filter(|master| *master != former);
        if let Some(master) = master.filter(|_| !is_told) {
            let servers = self.servers();
            for replica in (0..servers.len()).filter(|it| *it != master) {
                follow(servers[replica], servers[master]);
            }
        }
    }
}

fn follow(replica: &Server, master: &Server) {
    let port = master.client_port().to_string();
    replica.command(&["REPLICAOF", "127.0.0.1", &port]);
}

/// Of two masters of one shard, the later one has more.
fn epoch(server: &Server) -> u64 {
    let known = server.command(&["CLUSTER", "INFO"]);
    let epoch = known.field("cluster_my_epoch");
    epoch.and_then(|epoch| epoch.parse().ok()).unwrap_or(0)
}
