//! Where a node is: its name is resolved, or other servers are asked for the master of a group.
//!
//! All of this blocks, so each lookup runs on a short-lived thread of its own. Who answers is an
//! address book, and no more: the votes say in whose reign they are given.

use super::probe::ProbeConnection;
use super::stream::TlsTarget;
use crate::clock::{self, Time};
use crate::node::handshake::auth;
use crate::node::{MARKER, NodeError, ServerError, tag_of};
use crate::node_url::{Address, Login, Place};
use crate::resp::{Elements, Reply, decode, encode_command};
use std::net::{SocketAddr, ToSocketAddrs};
use std::thread;
use std::time::Duration;

/// How those are asked who name the master of a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct LookupAuth {
    pub(crate) login: Login,
    pub(crate) tls: Option<TlsTarget>,
}

/// Where a node is at present.
#[derive(Debug)]
pub(super) struct Location {
    pub(super) addresses: Vec<SocketAddr>,
    /// The epoch of the failover authority, if it has one.
    pub(super) epoch: u64,
}

pub(super) type Found = Result<Location, NodeError>;

/// Looks up this address, within this time except for the resolver of the operating system.
pub(super) fn locate(address: &Address, auth: &LookupAuth, timeout: Duration) -> Found {
    let (servers, about) = match address {
        Address::Tcp { host, port } => return resolve(host, *port, 0),
        Address::Sentinel { sentinels, group } => (sentinels, About::Group(group.clone())),
        Address::Cluster { seeds, slots } => (seeds, About::Slot(slots[0])),
        Address::Unix { .. } => return Err(NodeError::Unresolved("it has no name".to_owned())),
    };
    let (place, epoch) = ask_all(servers, &about, auth, clock::now().after(timeout))?;
    resolve(&place.host, place.port, epoch)
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
    fn question(&self, out: &mut Vec<u8>) {
        match self {
            Self::Group(name) => encode_command(out, &[b"SENTINEL", b"MASTER", name.as_bytes()]),
            // Whoever is not the master of this slot names it.
            Self::Slot(slot) => {
                let marker = [tag_of(*slot).as_bytes(), MARKER].concat();
                encode_command(out, &[b"EXISTS", &marker]);
            }
        }
    }

    /// The place and the epoch in the reply of the server that was asked at `asked`.
    fn read(&self, reply: &Reply<'_>, asked: &Place) -> Option<(Place, u64)> {
        match (self, reply) {
            (Self::Group(_), Reply::Array(list) | Reply::Map(list)) => master_of(list),
            (Self::Slot(_), Reply::Integer(_)) => Some((asked.clone(), 0)),
            (Self::Slot(_), Reply::Error(text)) => {
                let text = std::str::from_utf8(text).ok()?.strip_prefix("MOVED ")?;
                let (host, port) = text.rsplit(' ').next()?.rsplit_once(':')?;
                // A server that does not know its own name leaves it out.
                let host = if host.is_empty() { &asked.host } else { host };
                Some((Place { host: host.to_owned(), port: port.parse().ok()? }, 0))
            }
            _ => None,
        }
    }
}

fn resolve(host: &str, port: u16, epoch: u64) -> Found {
    let addresses = (host, port).to_socket_addrs();
    let addresses = addresses.map_err(|error| NodeError::Unresolved(error.to_string()))?;
    let addresses: Vec<_> = addresses.collect();
    if addresses.is_empty() {
        return Err(NodeError::Unresolved("no address".to_owned()));
    }
    Ok(Location { addresses, epoch })
}

/// How long the others have after the first answer.
const SOON: Duration = Duration::from_secs(1);

/// Asks these servers at the same time. Of the first majority that answers, the highest epoch
/// counts, and of places with that the one that is named most often; or of those that answer in
/// half of the time, or soon after the first.
fn ask_all(
    servers: &[Place],
    about: &About,
    auth: &LookupAuth,
    until: Time,
) -> Result<(Place, u64), NodeError> {
    let mut enough_at = clock::now().after(until.since(clock::now()) / 2);
    let (sender, receiver) = crossbeam_channel::unbounded();
    for server in servers {
        let (server, about, auth) = (server.clone(), about.clone(), auth.clone());
        let sender = sender.clone();
        let ask = move || {
            // It fails if nobody waits any more.
            let _ = sender.send(ask(&server, &about, &auth, enough_at));
        };
        // Without a thread there is no answer of this one.
        let _ = thread::Builder::new().name("redlatch-locate".to_owned()).spawn(ask);
    }
    drop(sender);
    let (mut found, mut problem): (Vec<(Place, u64)>, _) = (Vec::new(), None);
    // Until then or until all have answered. The operating system's resolver may take any time.
    while let Ok(answer) = receiver.recv_timeout(enough_at.since(clock::now())) {
        match answer {
            Ok(answer) => {
                enough_at = enough_at.min(clock::now().after(SOON));
                found.push(answer);
            }
            Err(error) => problem = Some(error),
        }
        if found.len() > servers.len() / 2 {
            break;
        }
    }
    let named = |answer: &(Place, u64)| found.iter().filter(|other| *other == answer).count();
    let best = found.iter().max_by_key(|answer| (answer.1, named(answer))).cloned();
    best.ok_or_else(|| {
        let why = problem.map_or_else(|| "no answer".to_owned(), |problem| problem.to_string());
        NodeError::NoMaster(format!("no server of {} names one: {why}", servers.len()))
    })
}

fn ask(
    server: &Place,
    about: &About,
    LookupAuth { login: Login { user, password }, tls }: &LookupAuth,
    until: Time,
) -> Result<(Place, u64), NodeError> {
    let mut question = Vec::new();
    let auth = auth(user.as_deref(), password.as_deref());
    auth.iter().for_each(|auth| encode_command(&mut question, auth));
    let is_behind = auth.is_some();
    about.question(&mut question);
    let mut probe = ProbeConnection::connect((&server.host, server.port), tls.as_ref(), until)?;
    let mut found = None;
    probe.ask(&question, |bytes| {
        found = read(bytes, is_behind, about, server, password.as_deref());
        found.is_some()
    })?;
    found.unwrap_or_else(|| Err(NodeError::Disconnected("the answer is not complete".to_owned())))
}

/// The answer, as soon as it is complete: behind the one to `AUTH`, if that was sent.
fn read(
    bytes: &[u8],
    is_behind: bool,
    about: &About,
    asked: &Place,
    secret: Option<&[u8]>,
) -> Option<Result<(Place, u64), NodeError>> {
    let mut rest = bytes;
    // From the beginning each time: few answers come in parts.
    let mut next = || match decode(rest) {
        Ok(None) => None,
        Ok(Some((reply, used))) => {
            rest = &rest[used..];
            Some(Ok(reply))
        }
        Err(error) => Some(Err(NodeError::Protocol(error))),
    };
    let refused = |text: &[u8]| NodeError::Server(ServerError::parse(text, secret));
    // Many Sentinels have no password although the servers have one: they answer even so.
    let mut login = None;
    if is_behind {
        match next()? {
            Ok(Reply::Error(text)) => login = Some(refused(text)),
            Ok(_) => {}
            Err(error) => return Some(Err(error)),
        }
    }
    Some(next()?.and_then(|reply| match (about.read(&reply, asked), reply) {
        (Some(found), _) => Ok(found),
        (None, Reply::Error(text)) => Err(login.unwrap_or_else(|| refused(text))),
        (None, _) => Err(NodeError::NoMaster("it names none".to_owned())),
    }))
}

/// The address and the epoch in the answer to `SENTINEL MASTER`: names and values in turn.
fn master_of(list: &Elements<'_>) -> Option<(Place, u64)> {
    let (mut host, mut port, mut epoch) = (None, None, 0);
    let mut elements = list.iter();
    while let (Some(name), Some(value)) = (elements.next(), elements.next()) {
        let (Reply::Bulk(name), Reply::Bulk(value)) = (name, value) else { return None };
        let value = std::str::from_utf8(value).ok()?;
        match name {
            b"ip" => host = Some(value.to_owned()),
            b"port" => port = value.parse().ok(),
            b"config-epoch" => epoch = value.parse().ok()?,
            _ => {}
        }
    }
    Some((Place { host: host?, port: port? }, epoch))
}
