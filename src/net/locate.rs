//! Where a node is: its name is resolved, or other servers are asked for the master of a group.
//!
//! All of this blocks, so each lookup runs on a short-lived thread of its own. Who answers is an
//! address book, and no more: the votes say in whose reign they are given.

use super::learned::{self, LearnedServer, LearnedServers};
use super::probe::ProbeConnection;
use super::stream::TlsTarget;
use crate::clock::{self, Time};
use crate::node::handshake::auth;
use crate::node::{MARKER, NodeError, ServerError, tag_of};
use crate::node_url::{Address, Login, Place};
use crate::resp::{Decoder, ProtocolError, Reply, decode, encode_command};
use crossbeam_channel::Sender;
use std::net::{SocketAddr, ToSocketAddrs};
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
}

/// Where a node is at present.
#[derive(Debug)]
pub(super) struct Location {
    pub(super) host: String,
    pub(super) addresses: Vec<SocketAddr>,
    /// The epoch of the failover authority, if it has one.
    pub(super) epoch: u64,
    pub(super) asked_at: Time,
}

/// The master of a group, in this epoch of the failover authority.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Master {
    place: Place,
    epoch: u64,
}

pub(super) type Found = Result<Location, NodeError>;

/// Looks up this address, within this time except for the resolver of the operating system.
pub(super) fn locate(address: &Address, auth: &LookupAuth, timeout: Duration) -> Found {
    let asked_at = clock::now();
    let (servers, about) = match address {
        Address::Tcp { host, port } => return resolve(host, *port, 0, asked_at),
        Address::Sentinel { sentinels, group } => (sentinels, About::Group(group.clone())),
        Address::Cluster { seeds, slots } => (seeds, About::Slot(slots[0])),
        Address::Unix { .. } => return Err(NodeError::Unresolved("it has no name".to_owned())),
    };
    let until = asked_at.after(timeout);
    let found = ask_all(servers, &about, auth, until, false).or_else(|problem| {
        // All of them may have been replaced since.
        let (others, asking): (Vec<_>, Vec<_>) = auth.learned.others(servers).into_iter().unzip();
        let auth = LookupAuth { asking: asking.into(), ..auth.clone() };
        ask_all(&others, &about, &auth, until, true).map_err(|_| problem)
    });
    let Master { place, epoch } = found?;
    resolve(&place.host, place.port, epoch, asked_at)
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
            // Whoever is not the master of this slot names it.
            Self::Slot(slot) => {
                let marker = [tag_of(*slot).as_bytes(), MARKER].concat();
                encode_command(out, &[b"EXISTS", &marker]);
                1
            }
        }
    }

    /// Of whom the server that was asked at this place tells, if this user may know that.
    fn servers(&self, mut probe: ProbeConnection, asked: &Place) -> Vec<LearnedServer> {
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

    /// Sends the answer of a server, and learns of whom it tells: before that if it was learned
    /// itself, since it may not be what it was.
    fn tell(
        &self,
        answer: Result<(Master, ProbeConnection), NodeError>,
        asked: &Place,
        learned: &LearnedServers,
        is_learned: bool,
        sender: Sender<Result<Master, NodeError>>,
    ) {
        let (master, probe) = match answer {
            Ok(answer) => answer,
            Err(problem) => {
                // It fails if nobody waits any more.
                let _ = sender.send(Err(problem));
                return;
            }
        };
        if !is_learned {
            let _ = sender.send(Ok(master));
            // Who waits for all answers has this one.
            drop(sender);
            return learned.learn(self.servers(probe, asked));
        }
        let told = self.servers(probe, asked);
        let answer = match learned.are_told_of(&told) {
            true => Ok(master),
            false => Err(NodeError::NoMaster("another server is there now".to_owned())),
        };
        if answer.is_ok() {
            learned.learn(told);
        }
        let _ = sender.send(answer);
    }

    /// The master in the answers of the server that was asked at this place.
    fn read(&self, answers: &[Reply<'_>], asked: &Place) -> Option<Master> {
        let (host, port, epoch) = match (self, answers) {
            (Self::Group(_), [Reply::Array(list) | Reply::Map(list), Reply::Array(place)]) => {
                let (mut words, mut place) = (list.iter().map(text), place.iter().map(text));
                words.find(|word| *word == Some("config-epoch"))?;
                (place.next()??, place.next()??, words.next()??.parse().ok()?)
            }
            (Self::Slot(_), [Reply::Integer(_)]) => {
                return Some(Master { place: asked.clone(), epoch: 0 });
            }
            (Self::Slot(_), [Reply::Error(text)]) => {
                let text = std::str::from_utf8(text).ok()?.strip_prefix("MOVED ")?;
                let (host, port) = text.rsplit(' ').next()?.rsplit_once(':')?;
                // What the servers do not know they leave out. `?` is another server's host name.
                let host = if host.is_empty() { &asked.host } else { host };
                (Some(host).filter(|host| *host != "?")?, port, 0)
            }
            _ => return None,
        };
        Some(Master { place: Place { host: host.to_owned(), port: port.parse().ok()? }, epoch })
    }
}

fn text<'a>(element: Reply<'a>) -> Option<&'a str> {
    if let Reply::Bulk(bytes) = element { std::str::from_utf8(bytes).ok() } else { None }
}

fn resolve(host: &str, port: u16, epoch: u64, asked_at: Time) -> Found {
    let addresses = (host, port).to_socket_addrs();
    let addresses = addresses.map_err(|error| NodeError::Unresolved(error.to_string()))?;
    let addresses: Vec<_> = addresses.collect();
    if addresses.is_empty() {
        return Err(NodeError::Unresolved("no address".to_owned()));
    }
    Ok(Location { host: host.to_owned(), addresses, epoch, asked_at })
}

/// If so many threads ask one server of a URL, no more do: they hang in the operating system's
/// resolver. Those that look at the nodes leave the other half to those that lock.
pub(super) const ASKING_MAX: usize = 16;

/// Asks these servers at the same time. Of the first majority that answers, the highest epoch
/// counts, and of places with that the one that is named most often; or of those that answer in
/// half of the time, or soon after the first.
fn ask_all(
    servers: &[Place],
    about: &About,
    auth: &LookupAuth,
    until: Time,
    are_learned: bool,
) -> Result<Master, NodeError> {
    let mut enough_at = clock::now().after(until.since(clock::now()) / 2);
    let (sender, receiver) = crossbeam_channel::unbounded();
    let idle = servers.iter().zip(&*auth.asking);
    let idle: Vec<_> = idle.filter(|(_, it)| Arc::strong_count(it) < ASKING_MAX).collect();
    for (server, asking) in &idle {
        let (server, about, auth) = ((*server).clone(), about.clone(), auth.clone());
        let (sender, asking) = (sender.clone(), Arc::clone(asking));
        let ask = move || {
            let answer = ask(&server, &about, &auth, enough_at);
            about.tell(answer, &server, &auth.learned, are_learned, sender);
            drop(asking);
        };
        // Without a thread there is no answer of this one.
        let _ = thread::Builder::new().name("redlatch-locate".to_owned()).spawn(ask);
    }
    drop(sender);
    let (mut found, mut problem): (Vec<Master>, _) = (Vec::new(), None);
    // Until then or until all have answered. The operating system's resolver may take any time.
    while let Ok(answer) = receiver.recv_timeout(enough_at.since(clock::now())) {
        match answer {
            Ok(answer) => {
                enough_at = enough_at.min(clock::now().after(auth.soon));
                found.push(answer);
            }
            Err(error) => problem = Some(error),
        }
        if found.len() > servers.len() / 2 {
            break;
        }
    }
    let named = |master: &Master| found.iter().filter(|other| *other == master).count();
    let best = found.iter().max_by_key(|master| (master.epoch, named(master))).cloned();
    best.ok_or_else(|| {
        let silent = if idle.is_empty() { "too many lookups hang" } else { "no answer" };
        let why = problem.map_or_else(|| silent.to_owned(), |problem| problem.to_string());
        NodeError::NoMaster(format!("no server of {} names one: {why}", servers.len()))
    })
}

fn ask(
    server: &Place,
    about: &About,
    LookupAuth { login: Login { user, password }, tls, .. }: &LookupAuth,
    until: Time,
) -> Result<(Master, ProbeConnection), NodeError> {
    let mut question = Vec::new();
    let auth = auth(user.as_deref(), password.as_deref());
    auth.iter().for_each(|auth| encode_command(&mut question, auth));
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
        found = Some(about.read(named, server).ok_or_else(|| {
            let none = || NodeError::NoMaster("it names none".to_owned());
            error.map_or_else(none, NodeError::Server)
        }));
        true
    })?;
    let incomplete = || NodeError::Disconnected("the answer is not complete".to_owned());
    let master = found.unwrap_or_else(|| Err(incomplete()))?;
    Ok((master, probe))
}

/// So many replies, if they are complete.
pub(super) fn decode_all(
    mut bytes: &[u8],
    count: usize,
) -> Result<Option<Vec<Reply<'_>>>, ProtocolError> {
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        let Some((reply, used)) = decode(bytes)? else { return Ok(None) };
        bytes = &bytes[used..];
        all.push(reply);
    }
    Ok(Some(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The master in these answers of the server at `asked:1`.
    fn read(about: &About, bytes: &[u8]) -> Option<(String, u16, u64)> {
        let asked = Place { host: "asked".to_owned(), port: 1 };
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
        assert_eq!(read(&about, named.replacen("*4", "%2", 1).as_bytes()), expected);
        assert_eq!(read(&about, named.replacen('7', "x", 1).as_bytes()), None);
        assert_eq!(read(&about, format!("{fields}*-1\r\n").as_bytes()), None);
        assert_eq!(read(&about, b"-ERR No such master with that name\r\n*-1\r\n"), None);
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
            assert_eq!(read(&About::Slot(8192), answer.as_bytes()), expected, "{answer}");
        }
    }
}
