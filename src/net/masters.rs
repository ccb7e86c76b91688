//! Which server is the master of a group: others are asked that know it. Who answers is an address
//! book, and no more: the votes say in whose reign they are given.

mod agreement;
mod learned;
mod sentinels;

use super::locate::{Found, Location, no_name, resolve};
use super::probe::ProbeConnection;
use super::stream::TlsTarget;
use super::witness::Inquiries;
use crate::clock::{self, Time};
use crate::node::handshake::auth;
use crate::node::{
    MARKER, NodeError, ServerError, ServerErrorKind, WrongServer, presentable, tag_of,
};
use crate::node_url::{Address, HostPort, Login};
use crate::resp::{Decoder, ProtocolError, Reply, decode, encode_command};
use agreement::expect_one_group;
use learned::{LearnedServer, LearnedServers, text};
pub(crate) use sentinels::ask_sentinels;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How those are asked who name the master of a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct LookupAuth {
    pub(crate) login: Login,
    pub(crate) tls: Option<TlsTarget>,
    /// For each of the servers, one more for each thread that asks it.
    pub(crate) asking: Arc<[Arc<()>]>,
    /// How long the others have after the first answer. What is found must not be too old to be
    /// used.
    pub(crate) soon: Duration,
    /// The servers that are asked if none of the URL names a master.
    pub(crate) learned: Arc<LearnedServers>,
    /// User and password for the servers of the group themselves.
    pub(crate) servers: Login,
    pub(crate) inquiries: Inquiries,
}

/// The master of a group, in this epoch of the failover authority.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Master {
    place: HostPort,
    epoch: u64,
}

/// What a server has said that names a master.
#[derive(Clone, Debug)]
struct Answer {
    asked: HostPort,
    master: Master,
    /// Its name in its cluster, if it is the master itself, and tells it.
    member: Option<Vec<u8>>,
    /// Of whom it tells.
    told: Vec<LearnedServer>,
}

impl Answer {
    /// Which server is meant, for errors: the URL does not say. What the server has said may be any
    /// text.
    fn announced(&self, secret: Option<&[u8]>) -> Arc<str> {
        let Self { asked, master, .. } = self;
        let place = presentable(master.place.to_string().as_bytes(), secret);
        if master.place == *asked {
            format!("master {place}").into()
        } else {
            format!("master {place}, named by {asked}").into()
        }
    }
}

/// Looks for the master behind this address, within this time except for the resolver of the
/// operating system.
pub(super) fn find(address: &Address, auth: &LookupAuth, timeout: Duration) -> Found {
    let asked_at = clock::now();
    let (servers, about) = match address {
        Address::Sentinel { sentinels, group } => (sentinels, About::Group(group.clone())),
        Address::Cluster { seeds, slots } => (seeds, About::Slot(slots[0])),
        Address::Tcp { .. } | Address::Unix { .. } => return Err(no_name()),
    };
    let until = asked_at.after(timeout);
    let found = ask_all(servers, &about, auth, until, false).or_else(|problem| {
        // All of them may have been replaced since.
        let (others, asking): (Vec<_>, Vec<_>) = auth.learned.others(servers).into_iter().unzip();
        let auth = LookupAuth {
            asking: asking.into(),
            ..auth.clone()
        };
        ask_all(&others, &about, &auth, until, true).map_err(|_| problem)
    });
    let answer = found?;
    let announced = answer.announced(auth.login.password.as_deref());
    let Master { place, epoch } = answer.master;
    match resolve(&place.host, place.port, asked_at) {
        Ok(found) => Ok(Location {
            epoch,
            announced: Some(announced),
            ..found
        }),
        Err(NodeError::Unresolved(text)) => {
            Err(NodeError::Unresolved(format!("{announced}: {text}")))
        }
        Err(problem) => Err(problem),
    }
}

/// What a server is asked for.
#[derive(Clone, Debug)]
enum About {
    /// The master of this group.
    Group(String),
    /// The master of this slot.
    Slot(u16),
}

impl About {
    /// Writes the question, and returns how many answers it has.
    fn question(&self, out: &mut Vec<u8>) -> usize {
        match self {
            // The Sentinel that leads a failover names the new master in the second answer only,
            // until all replicas have followed. If one begins in between, that has the old epoch,
            // which is harmless; the old master with the new epoch would not be.
            Self::Group(name) => {
                for what in [&b"MASTER"[..], b"GET-MASTER-ADDR-BY-NAME"] {
                    encode_command(out, &[b"SENTINEL", what, name.as_bytes()]);
                }
                2
            }
            // Whoever is not the master of this slot names it. A server that is in no cluster
            // answers as the master does, and has no name in one.
            Self::Slot(slot) => {
                let marker = [tag_of(*slot).as_bytes(), MARKER].concat();
                encode_command(out, &[b"EXISTS", &marker]);
                encode_command(out, &[b"CLUSTER", b"MYID"]);
                2
            }
        }
    }

    /// Of whom the server that was asked at this place tells, if this user may know that.
    fn servers(&self, mut probe: ProbeConnection, asked: &HostPort) -> Vec<LearnedServer> {
        let mut question = Vec::new();
        match self {
            Self::Group(name) => {
                encode_command(&mut question, &[b"SENTINEL", b"SENTINELS", name.as_bytes()]);
            }
            Self::Slot(_) => encode_command(&mut question, &[&b"CLUSTER"[..], b"SLOTS"]),
        }
        let mut told = Vec::new();
        // It may be long, and comes in parts then: from the beginning only when it is whole.
        let mut decoder = Decoder::default();
        let _ = probe.ask(&question, |bytes| {
            let answer = decoder.decode(bytes);
            if let Ok(Some((answer, _))) = &answer {
                told = match self {
                    Self::Group(_) => learned::sentinels(answer),
                    Self::Slot(_) => learned::cluster(answer, asked),
                };
            }
            !matches!(answer, Ok(None))
        });
        told
    }

    /// What the servers of such a URL are.
    fn groups(&self) -> &'static str {
        match self {
            Self::Group(_) => "groups",
            Self::Slot(_) => "clusters",
        }
    }

    /// Completes the answer of a server by those of whom it tells, and learns of these. One that
    /// was learned itself may not be what it was.
    fn complete(
        &self,
        (answer, mut probe): (Answer, ProbeConnection),
        learned: &LearnedServers,
        is_learned: bool,
    ) -> Result<Answer, NodeError> {
        // Its answer must not come too late because it does not tell this.
        probe.halve_time_left();
        let told = self.servers(probe, &answer.asked);
        if is_learned && !learned.are_told_of(&told) {
            return Err(NodeError::NoMaster(
                "another server is there now".to_owned(),
            ));
        }
        learned.learn(told.clone());
        Ok(Answer { told, ..answer })
    }

    /// The master in the answers of the server that was asked at this place.
    fn read(&self, answers: &[Reply<'_>], asked: &HostPort) -> Option<Master> {
        let (host, port, epoch) = match (self, answers) {
            (Self::Group(_), [Reply::Array(list) | Reply::Map(list), Reply::Array(place)]) => {
                let mut words = list.iter().map(text);
                let mut place = place.iter().map(text);
                words.find(|word| *word == Some("config-epoch"))?;
                (place.next()??, place.next()??, words.next()??.parse().ok()?)
            }
            (Self::Slot(_), [Reply::Integer(_), member]) if !is_in_no_cluster(*member) => {
                return Some(Master {
                    place: asked.clone(),
                    epoch: 0,
                });
            }
            (Self::Slot(_), [Reply::Error(text), _]) => {
                let text = std::str::from_utf8(text).ok()?.strip_prefix("MOVED ")?;
                let (host, port) = text.rsplit(' ').next()?.rsplit_once(':')?;
                // What the servers do not know they leave out. `?` is another server's host name.
                let host = if host.is_empty() { &asked.host } else { host };
                (Some(host).filter(|host| *host != "?")?, port, 0)
            }
            _ => return None,
        };
        Some(Master {
            place: HostPort {
                host: host.to_owned(),
                port: port.parse().ok()?,
            },
            epoch,
        })
    }

    /// The name of a member of a cluster that has answered as the master of the slot.
    fn member(&self, answers: &[Reply<'_>]) -> Option<Vec<u8>> {
        match (self, answers) {
            (Self::Slot(_), [Reply::Integer(_), Reply::Bulk(name)]) => Some(name.to_vec()),
            _ => None,
        }
    }

    /// Why a server that has answered this names no master. This was its first error.
    fn refusal(&self, answers: &[Reply<'_>], error: Option<ServerError>) -> NodeError {
        let Some(error) = error else {
            return NodeError::NoMaster("it names none".to_owned());
        };
        let is_unknown = error.kind == ServerErrorKind::UnknownCommand;
        let wrong = match (self, answers) {
            (Self::Group(_), _) if is_unknown => WrongServer::NoSentinel,
            (Self::Group(_), _) if error.text.starts_with("ERR No such master") => {
                WrongServer::UnknownGroup
            }
            (Self::Slot(_), [Reply::Integer(_), member]) if is_in_no_cluster(*member) => {
                WrongServer::NoCluster
            }
            (Self::Slot(_), _) if is_unknown => WrongServer::Sentinel,
            _ => return NodeError::in_group(error),
        };
        NodeError::WrongServer(wrong)
    }
}

/// Is this what a server without cluster mode says about its cluster?
fn is_in_no_cluster(answer: Reply<'_>) -> bool {
    matches!(answer, Reply::Error(text) if text.starts_with(b"ERR This instance has cluster"))
}

/// If so many threads ask one server of a URL, no more do: they hang in the operating system's
/// resolver. Those that look at the nodes leave the other half to those that lock.
const ASKING_MAX: usize = 16;

/// Asks these servers at the same time. Of the first majority that answers, the highest epoch
/// counts, and of places with that the one that is named most often; or of those that answer in
/// half of the time, or soon after the first.
fn ask_all(
    servers: &[HostPort],
    about: &About,
    auth: &LookupAuth,
    until: Time,
    are_learned: bool,
) -> Result<Answer, NodeError> {
    let mut enough_at = clock::now().after(until.since(clock::now()) / 2);
    let (sender, receiver) = crossbeam_channel::unbounded();
    let idle: Vec<_> = servers
        .iter()
        .zip(&*auth.asking)
        .filter(|(_, asking)| Arc::strong_count(asking) < ASKING_MAX)
        .collect();
    for (server, asking) in &idle {
        let server = (*server).clone();
        let about = about.clone();
        let auth = auth.clone();
        let sender = sender.clone();
        let asking = Arc::clone(asking);
        let thread = thread::Builder::new().name("redlatch-locate".to_owned());
        // Without a thread there is no answer of this one.
        let _ = thread.spawn(move || {
            let answer = ask(&server, &about, &auth, enough_at)
                .and_then(|answer| about.complete(answer, &auth.learned, are_learned));
            // It fails if nobody waits any more.
            let _ = sender.send(answer.map_err(|problem| (server, problem)));
            drop(asking);
        });
    }
    drop(sender);
    let mut found: Vec<Answer> = Vec::new();
    let mut problems = Vec::new();
    // Until then or until all have answered. The operating system's resolver may take any time.
    while let Ok(answer) = receiver.recv_timeout(enough_at.since(clock::now())) {
        match answer {
            Ok(answer) => {
                enough_at = enough_at.min(clock::now().after(auth.soon));
                found.push(answer);
            }
            Err(problem) => problems.push(problem),
        }
        let is_majority = found.len() > servers.len() / 2;
        if is_majority && expect_one_group(about, servers.len(), &found).is_ok() {
            break;
        }
    }
    expect_one_group(about, servers.len(), &found)?;
    let best = found
        .iter()
        .max_by_key(|answer| (answer.master.epoch, count_naming(&found, &answer.master)))
        .cloned();
    best.ok_or_else(|| {
        let silent = if idle.is_empty() {
            "too many lookups hang"
        } else {
            "no answer"
        };
        unnamed(servers.len(), silent, &problems)
    })
}

/// How many of these name this master, in this epoch.
fn count_naming(found: &[Answer], master: &Master) -> usize {
    found.iter().filter(|it| it.master == *master).count()
}

/// Why none of so many servers has named the master. It is permanent if these say so who could
/// answer, and are a majority of all: one that is silent may know more, and a minority that is
/// configured in another way proves nothing.
fn unnamed(servers: usize, silent: &str, problems: &[(HostPort, NodeError)]) -> NodeError {
    let answers: Vec<_> = problems
        .iter()
        .map(|(_, problem)| problem)
        .filter(|problem| has_answered(problem))
        .collect();
    let are_refusals = answers.iter().all(|problem| problem.is_permanent());
    let text = format!(
        "no server of {servers} names one: {}",
        reasons(silent, problems)
    );
    match answers.first() {
        Some(_) if are_refusals && answers.len() > servers / 2 => NodeError::LookupRefused(text),
        Some(NodeError::ClusterDown(_)) => NodeError::ClusterDown(text),
        Some(NodeError::SlotMoving(_)) => NodeError::SlotMoving(text),
        _ => NodeError::NoMaster(text),
    }
}

/// Has the server answered which this has become of?
fn has_answered(problem: &NodeError) -> bool {
    !matches!(
        problem,
        NodeError::Unresolved(_)
            | NodeError::Unreachable { .. }
            | NodeError::TimedOut(_)
            | NodeError::Disconnected(_)
    )
}

/// What each of the servers has said, or why it has not.
fn reasons(silent: &str, problems: &[(HostPort, NodeError)]) -> String {
    if problems.is_empty() {
        return silent.to_owned();
    }
    let mut reasons: Vec<(String, String)> = Vec::new();
    for (place, problem) in problems {
        let why = problem.to_string();
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, places)) => *places += &format!(", {place}"),
            None => reasons.push((why, place.to_string())),
        }
    }
    let told: Vec<_> = reasons
        .iter()
        .map(|(why, places)| format!("{places}: {why}"))
        .collect();
    told.join("; ")
}

fn ask(
    server: &HostPort,
    about: &About,
    LookupAuth {
        login: Login { user, password },
        tls,
        ..
    }: &LookupAuth,
    until: Time,
) -> Result<(Answer, ProbeConnection), NodeError> {
    let mut question = Vec::new();
    let auth = auth(user.as_deref(), password.as_deref());
    if let Some(auth) = &auth {
        encode_command(&mut question, auth);
    }
    let is_behind = auth.is_some();
    let count = about.question(&mut question) + usize::from(is_behind);
    let mut probe = ProbeConnection::connect((&server.host, server.port), tls.as_ref(), until)?;
    let mut found = None;
    probe.ask(&question, |bytes| {
        // From the beginning each time: few answers come in parts.
        let answers = match decode_all(bytes, count) {
            Ok(Some(answers)) => answers,
            Ok(None) => return false,
            Err(error) => {
                found = Some(Err(NodeError::Protocol(error)));
                return true;
            }
        };
        let named = answers.get(usize::from(is_behind)..).unwrap_or_default();
        // The first error says why: many Sentinels have no password although the servers have one,
        // and answer even so.
        let error = answers.iter().find_map(|answer| match answer {
            Reply::Error(text) => Some(ServerError::parse(text, password.as_deref())),
            _ => None,
        });
        found = Some(match about.read(named, server) {
            Some(master) => Ok(Answer {
                asked: server.clone(),
                master,
                member: about.member(named),
                told: Vec::new(),
            }),
            None => Err(about.refusal(named, error)),
        });
        true
    })?;
    let Some(answer) = found.transpose()? else {
        let text = "the answer is not complete".to_owned();
        return Err(NodeError::Disconnected(text));
    };
    if leads_astray(&answer.master.place, probe.peer()) {
        return Err(NodeError::WrongServer(WrongServer::Loopback));
    }
    Ok((answer, probe))
}

/// Does a server at this address name a place that is another server on each machine?
pub(super) fn leads_astray(named: &HostPort, by: Option<IpAddr>) -> bool {
    let is_loopback = match named.host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => named.host == "localhost",
    };
    is_loopback && by.is_some_and(|address| !address.to_canonical().is_loopback())
}

/// So many replies, if they are complete.
pub(super) fn decode_all(
    mut bytes: &[u8],
    count: usize,
) -> Result<Option<Vec<Reply<'_>>>, ProtocolError> {
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        let Some((reply, used)) = decode(bytes)? else {
            return Ok(None);
        };
        bytes = &bytes[used..];
        all.push(reply);
    }
    Ok(Some(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Phase;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// The master in these answers of the server at `asked:1`.
    fn read(about: &About, bytes: &[u8]) -> Option<(String, u16, u64)> {
        let asked = HostPort {
            host: "asked".to_owned(),
            port: 1,
        };
        let answers = decode_all(bytes, about.question(&mut Vec::new()));
        let master = about.read(&answers.expect("replies").expect("all of them"), &asked)?;
        Some((master.place.host, master.place.port, master.epoch))
    }

    #[test]
    fn the_sentinel_that_leads_a_failover_names_the_new_master_with_the_new_epoch() {
        let about = About::Group("locks".to_owned());
        let fields = "*4\r\n$2\r\nip\r\n$3\r\nold\r\n$12\r\nconfig-epoch\r\n$1\r\n7\r\n";
        let named = format!("{fields}*2\r\n$3\r\nnew\r\n$4\r\n6379\r\n");
        let expected = Some(("new".to_owned(), 6379, 7));
        assert_eq!(read(&about, named.as_bytes()), expected);
        assert_eq!(
            read(&about, named.replacen("*4", "%2", 1).as_bytes()),
            expected
        );
        assert_eq!(read(&about, named.replacen('7', "x", 1).as_bytes()), None);
        assert_eq!(read(&about, format!("{fields}*-1\r\n").as_bytes()), None);
        assert_eq!(
            read(&about, b"-ERR No such master with that name\r\n*-1\r\n"),
            None
        );
    }

    #[test]
    fn a_server_without_the_slot_names_the_one_that_has_it() {
        for (answer, expected) in [
            (":0\r\n", Some(("asked", 1))),
            ("-MOVED 8192 10.0.0.1:7001\r\n", Some(("10.0.0.1", 7001))),
            ("-MOVED 8192 ::1:7001\r\n", Some(("::1", 7001))),
            ("-MOVED 8192 :7001\r\n", Some(("asked", 7001))),
            ("-MOVED 8192 ?:7001\r\n", None),
            ("-CLUSTERDOWN Hash slot not served\r\n", None),
        ] {
            let expected = expected.map(|(host, port)| (host.to_owned(), port, 0));
            let answers = format!("{answer}$2\r\nid\r\n");
            assert_eq!(
                read(&About::Slot(8192), answers.as_bytes()),
                expected,
                "{answer}"
            );
        }
    }

    #[test]
    fn a_sentinel_that_does_not_tell_of_the_others_names_the_master_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let silent = thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("it is asked");
            let place = "*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n";
            let named = format!("*2\r\n$12\r\nconfig-epoch\r\n$1\r\n7\r\n{place}");
            socket.write_all(named.as_bytes()).expect("it listens");
            // Until it gives up.
            let _ = socket.read_to_end(&mut Vec::new());
        });
        let sentinels = vec![HostPort {
            host: "127.0.0.1".to_owned(),
            port,
        }];
        let address = Address::Sentinel {
            sentinels,
            group: "locks".to_owned(),
        };
        let auth = LookupAuth {
            asking: vec![Arc::default()].into(),
            ..LookupAuth::default()
        };
        let found = find(&address, &auth, Duration::from_secs(8)).expect("it names one");
        assert_eq!(found.epoch, 7);
        silent.join().expect("no panic");
    }

    /// The one that every tutorial has: `sentinel monitor mymaster 127.0.0.1 6379 2`.
    #[test]
    fn an_address_that_is_another_server_on_each_machine_is_not_followed() {
        let is_refused = |named: &str, by: &str| {
            let place = HostPort {
                host: named.to_owned(),
                port: 6379,
            };
            leads_astray(&place, by.parse().ok())
        };
        for named in ["127.0.0.1", "127.0.1.1", "::1", "localhost"] {
            assert!(
                is_refused(named, "10.0.0.5") && is_refused(named, "fd00::5"),
                "{named}"
            );
            assert!(
                !is_refused(named, "127.0.0.1") && !is_refused(named, "::1"),
                "{named}"
            );
            assert!(!is_refused(named, "::ffff:127.0.0.1"), "{named}");
        }
        assert!(!is_refused("10.0.0.6", "10.0.0.5") && !is_refused("db.example", "10.0.0.5"));
    }

    /// Why the server that answers this names no master.
    fn refusal(about: &About, bytes: &[u8]) -> NodeError {
        let answers = decode_all(bytes, 2).expect("replies").expect("all of them");
        let Some(Reply::Error(text)) = answers
            .iter()
            .find(|answer| matches!(answer, Reply::Error(_)))
        else {
            panic!("there is an error")
        };
        about.refusal(&answers, Some(ServerError::parse(text, None)))
    }

    #[test]
    fn servers_of_another_kind_are_recognised_by_what_they_refuse() {
        let group = About::Group("locks".to_owned());
        let slot = About::Slot(8192);
        let unknown = b"-ERR unknown command 'X'\r\n-ERR unknown command 'X'\r\n";
        let wrong = NodeError::WrongServer;
        assert_eq!(refusal(&group, unknown), wrong(WrongServer::NoSentinel));
        assert_eq!(refusal(&slot, unknown), wrong(WrongServer::Sentinel));
        let other = b"-ERR No such master with that name\r\n*-1\r\n";
        assert_eq!(refusal(&group, other), wrong(WrongServer::UnknownGroup));
        let single = b":0\r\n-ERR This instance has cluster support disabled\r\n";
        assert_eq!(refusal(&slot, single), wrong(WrongServer::NoCluster));
        assert_eq!(
            read(&slot, single),
            None,
            "it would be the master of every slot"
        );
        assert!(
            read(&slot, b":0\r\n-NOPERM no\r\n").is_some(),
            "the user may not ask that"
        );
        for (answer, is_expected) in [
            (
                "CLUSTERDOWN The cluster is down",
                NodeError::ClusterDown as fn(String) -> NodeError,
            ),
            ("ASK 8192 10.0.0.1:7001", NodeError::SlotMoving),
            ("MOVED 8192 ?:7001", NodeError::NoMaster),
        ] {
            let answers = format!("-{answer}\r\n$2\r\nid\r\n");
            assert_eq!(
                refusal(&slot, answers.as_bytes()),
                is_expected(answer.to_owned())
            );
        }
    }

    #[test]
    fn a_lookup_is_refused_if_all_that_answer_refuse_and_these_are_a_majority() {
        let refused = || NodeError::WrongServer(WrongServer::UnknownGroup);
        let silent = || NodeError::TimedOut(Phase::Answering);
        let busy = || NodeError::Server(ServerError::parse(b"LOADING data", None));
        let verdict = |problems: Vec<NodeError>| {
            let at = |port| HostPort {
                host: "s".to_owned(),
                port,
            };
            let problems: Vec<_> = (1..).map(at).zip(problems).collect();
            unnamed(3, "no answer", &problems)
        };
        let is_refused = |problems| matches!(verdict(problems), NodeError::LookupRefused(_));
        assert!(is_refused(vec![refused(), refused(), refused()]));
        assert!(is_refused(vec![silent(), refused(), refused()]));
        assert!(!is_refused(vec![silent(), silent(), refused()]));
        assert!(!is_refused(vec![busy(), refused(), refused()]));
        assert!(!is_refused(vec![silent(), silent(), silent()]) && !is_refused(Vec::new()));
        let text = verdict(vec![silent(), refused(), refused()]).to_string();
        assert!(
            text.contains("s:2, s:3: the Sentinel watches no group"),
            "{text}"
        );
        assert!(
            text.contains("; s:1: timed out") || text.contains("one: s:1: timed"),
            "{text}"
        );
    }
}
