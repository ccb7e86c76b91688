//! Ensembles of servers, and how they are configured.

use std::time::Duration;

use super::installed::Installed;
use super::links::Links;
use super::server::{Failure, START_LIMIT, Server};
use super::snapshot::Snapshot;
use super::words::Role;
use crate::eventually;

/// How often other free ports are tried.
const PORT_ATTEMPTS: usize = 5;

/// The servers of one ensemble, by their numbers from 0 on.
pub struct Ensemble {
    servers: Vec<Server>,
    links: Option<Links>,
}

/// An ensemble that is not started yet.
#[derive(Clone)]
pub struct EnsembleBuilder {
    installed: &'static Installed,
    count: usize,
    lines: Vec<String>,
    properties: Vec<String>,
    has_links: bool,
    has_tls: bool,
    snapshot: Option<Snapshot>,
}

impl EnsembleBuilder {
    pub(super) fn new(installed: &'static Installed, count: usize) -> Self {
        assert!(count > 0, "an ensemble has a server");
        let lines = [
            "4lw.commands.whitelist=*",
            "admin.enableServer=false",
            // Tests have many clients at one address.
            "maxClientCnxns=0",
        ];
        let builder = Self {
            installed,
            count,
            lines: lines.map(str::to_owned).to_vec(),
            properties: Vec::new(),
            has_links: false,
            has_tls: false,
            snapshot: None,
        };
        builder
            .tick(Duration::from_millis(500))
            .init_limit(20)
            .sync_limit(10)
    }

    /// The tick. Sessions have timeouts of 2 to 20 ticks. By default 500 ms.
    pub fn tick(self, tick: Duration) -> Self {
        self.line(&format!("tickTime={}", tick.as_millis()))
    }

    /// In how many ticks a follower must have joined its leader. By default 20.
    pub fn init_limit(self, ticks: usize) -> Self {
        self.line(&format!("initLimit={ticks}"))
    }

    /// After how many silent ticks a leader and a follower give each other up. By default 10.
    pub fn sync_limit(self, ticks: usize) -> Self {
        self.line(&format!("syncLimit={ticks}"))
    }

    /// The shortest timeout of a session, instead of two ticks.
    pub fn min_session_timeout(self, timeout: Duration) -> Self {
        self.line(&format!("minSessionTimeout={}", timeout.as_millis()))
    }

    /// A line of the configuration, `key=value`. It replaces the one with the same key.
    pub fn line(mut self, line: &str) -> Self {
        let key = |line: &str| line.split('=').next().map(str::to_owned);
        self.lines.retain(|other| key(other) != key(line));
        self.lines.push(line.to_owned());
        self
    }

    /// A system property of Java, `name=value`.
    pub fn property(mut self, property: &str) -> Self {
        self.properties.push(property.to_owned());
        self
    }

    /// The servers reach each other through [`Links`].
    pub fn with_links(mut self) -> Self {
        self.has_links = true;
        self
    }

    /// Each server also has a port for TLS, with a certificate that the tests' clients trust.
    #[cfg(target_os = "linux")]
    pub fn with_tls(mut self) -> Self {
        self.has_tls = true;
        self
    }

    /// Each server begins with this data.
    pub fn snapshot(mut self, snapshot: Snapshot) -> Self {
        self.snapshot = Some(snapshot);
        self
    }

    /// Starts all servers at the same time and waits until each of them serves.
    #[track_caller]
    pub fn start(self) -> Ensemble {
        for _ in 0..PORT_ATTEMPTS {
            if let Some(ensemble) = self.try_start() {
                return ensemble;
            }
        }
        panic!("every free port was taken by someone else");
    }

    /// `None` if another process has taken a port.
    #[track_caller]
    fn try_start(&self) -> Option<Ensemble> {
        let prepare = |_| Server::prepare(self.installed, self.has_tls, &self.properties);
        let mut servers: Vec<_> = (0..self.count).map(prepare).collect();
        let links = self.has_links.then(|| Links::between(&servers));
        for (number, server) in servers.iter().enumerate() {
            let mut lines = self.lines.clone();
            lines.extend(peer_lines(number, &servers, links.as_ref()));
            #[cfg(target_os = "linux")]
            if self.has_tls {
                lines.extend(tls_lines(server));
            }
            server.configure(number + 1, &lines);
            if let Some(snapshot) = &self.snapshot {
                snapshot.write_to(&server.data());
            }
        }
        servers.iter_mut().for_each(Server::spawn);
        for server in &mut servers {
            match server.await_ready() {
                Ok(()) => {}
                Err(Failure::PortTaken) => return None,
                Err(Failure::Other(why)) => server.give_up(&why),
            }
        }
        Some(Ensemble { servers, links })
    }
}

/// The addresses of all servers, as this one's configuration has them. A server alone has none.
fn peer_lines(number: usize, servers: &[Server], links: Option<&Links>) -> Vec<String> {
    if servers.len() == 1 {
        return Vec::new();
    }
    let line = |(other, server): (usize, &Server)| {
        let own = [0, 1].map(|index| server.peer_ports[index].number());
        let [follower, election] = links
            .and_then(|links| links.ports(number, other))
            .unwrap_or(own);
        format!("server.{}=127.0.0.1:{follower}:{election}", other + 1)
    };
    servers.iter().enumerate().map(line).collect()
}

#[cfg(target_os = "linux")]
fn tls_lines(server: &Server) -> Vec<String> {
    use crate::certificates::{Authority, Purpose};
    let identity = Authority::trusted().issue(Purpose::Server);
    let folder = server.directory();
    let keys = folder.join("server.pem");
    let trusted = folder.join("trusted.pem");
    let pair = format!("{}{}", identity.key_pem, identity.certificate_pem);
    std::fs::write(&keys, pair).expect("a temporary file can be written");
    std::fs::write(&trusted, Authority::trusted().pem()).expect("a temporary file can be written");
    vec![
        format!("secureClientPort={}", server.secure_port()),
        "secureClientPortAddress=127.0.0.1".to_owned(),
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory".to_owned(),
        "ssl.keyStore.type=PEM".to_owned(),
        format!("ssl.keyStore.location={}", keys.display()),
        "ssl.trustStore.type=PEM".to_owned(),
        format!("ssl.trustStore.location={}", trusted.display()),
        "ssl.clientAuth=none".to_owned(),
    ]
}

impl Ensemble {
    /// `zk://127.0.0.1:PORT,127.0.0.1:PORT` and the path of a root, such as `/locks`, or nothing.
    pub fn url(&self, root: &str) -> String {
        let hosts: Vec<_> = self
            .ports()
            .iter()
            .map(|port| format!("127.0.0.1:{port}"))
            .collect();
        format!("zk://{}{root}", hosts.join(","))
    }

    /// The URL of each server with the path of a root.
    pub fn urls(&self, root: &str) -> Vec<String> {
        self.servers
            .iter()
            .map(|server| format!("{}{root}", server.url()))
            .collect()
    }

    /// The ports for clients.
    pub fn ports(&self) -> Vec<u16> {
        self.servers.iter().map(Server::port).collect()
    }

    /// The links between the servers. Panics if it was built without.
    #[track_caller]
    pub fn links(&self) -> &Links {
        self.links
            .as_ref()
            .expect("this ensemble is built with links")
    }

    /// The number of the leader, or of the only server. Waits until a majority serves and one of
    /// them is the leader: one that was left may call itself so for a while.
    #[track_caller]
    pub fn leader(&self) -> usize {
        let mut found = None;
        let is_found = || {
            let roles: Vec<_> = self.servers.iter().map(Server::role).collect();
            let serving = roles.iter().flatten().count();
            let leads = |role: &Option<Role>| matches!(role, Some(Role::Leader | Role::Standalone));
            let leaders = roles.iter().filter(|role| leads(role)).count();
            found = roles.iter().position(leads);
            serving > self.servers.len() / 2 && leaders == 1
        };
        assert!(
            eventually(START_LIMIT, is_found),
            "no server has become the leader"
        );
        found.expect("it was found")
    }

    /// The numbers of the other servers.
    #[track_caller]
    pub fn followers(&self) -> Vec<usize> {
        let leader = self.leader();
        (0..self.servers.len())
            .filter(|server| *server != leader)
            .collect()
    }

    /// Waits until each server serves, and the leader counts all others as its followers: one that
    /// was stopped for a while serves until it notices that its leader has given it up.
    #[track_caller]
    pub fn await_serving(&mut self) {
        self.servers.iter_mut().for_each(Server::await_serving);
        let followers = self.servers.len() - 1;
        let is_whole =
            || followers == 0 || self.servers[self.leader()].followers() == Some(followers);
        assert!(
            eventually(START_LIMIT, is_whole),
            "not all servers follow the leader"
        );
    }
}

impl std::ops::Deref for Ensemble {
    type Target = [Server];

    fn deref(&self) -> &[Server] {
        &self.servers
    }
}

impl std::ops::DerefMut for Ensemble {
    fn deref_mut(&mut self) -> &mut [Server] {
        &mut self.servers
    }
}
