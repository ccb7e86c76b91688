//! What the servers of a group say about their histories: its master, and the replicas that it
//! lists. A session proves from these that a new reign lacks nothing of the one before. They are
//! asked for the time too, which an operator compares.
//!
//! Each is asked on a thread of its own, over a connection of its own, within a limit in time that
//! all share; only the resolver of the operating system may take longer. Who answers is not
//! believed: a history counts only as far as it fits the marker of the group. One that cannot be
//! asked is left out, with the reason.

use super::addresses::{Finding, Reporter};
use super::locate::locate;
use super::masters::{LookupAuth, decode_all, leads_astray};
use super::probe::ProbeConnection;
use super::{Endpoint, MARGIN};
use crate::clock::{self, Time};
use crate::node::handshake::auth;
use crate::node::history::History;
use crate::node::{
    ClockReading, NodeError, Phase, ServerClock, ServerError, WrongServer, presentable,
};
use crate::node_url::{HostPort, Login};
use crate::resp::{Reply, encode_command};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

/// How many inquiries of one group there are at most: all but the last hang in the operating
/// system's resolver. Each has a thread for a server, and so at most half of the threads that look
/// for a master.
const INQUIRIES_MAX: usize = 8;

/// How many replicas of a master are asked: as many as a URL may say that there are.
const REPLICAS_MAX: usize = 100;

/// The name of the threads.
const NAME: &str = "redlatch-witness";

/// How many inquiries of one group have threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inquiries(Arc<AtomicUsize>);

/// One of them, which its threads share.
struct Inquiry(Inquiries);

impl Inquiries {
    fn begin(&self) -> Option<Arc<Inquiry>> {
        let one_more = |running| (running < INQUIRIES_MAX).then_some(running + 1);
        let counted = self.0.fetch_update(SeqCst, SeqCst, one_more);
        counted.ok().map(|_| Arc::new(Inquiry(self.clone())))
    }
}

impl Drop for Inquiry {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, SeqCst);
    }
}

/// Where the master of a group is.
#[derive(Clone, Debug)]
pub(crate) struct MasterPlace {
    /// The name for which its certificate may have to be valid.
    pub(crate) host: String,
    pub(crate) address: SocketAddr,
}

/// What a server has said about its history, or why it has not.
#[derive(Debug)]
struct Told {
    place: HostPort,
    history: Result<History, NodeError>,
    clock: Option<ClockReading>,
}

impl Told {
    fn nothing(place: HostPort, why: NodeError) -> Self {
        Self {
            place,
            history: Err(why),
            clock: None,
        }
    }
}

/// Asks all servers of a group on threads, which report to the event loop what they hear.
pub(super) fn inquire(
    master: MasterPlace,
    auth: &LookupAuth,
    until: Time,
    reporter: Reporter,
) -> io::Result<()> {
    let Some(inquiry) = auth.inquiries.begin() else {
        return Err(ErrorKind::WouldBlock.into());
    };
    let auth = auth.clone();
    let thread = thread::Builder::new().name(NAME.to_owned());
    thread.spawn(move || {
        let mut of_master: Option<Arc<History>> = None;
        ask_all(&master, &auth, until, &inquiry, |told| {
            let Ok(server) = told.history else { return };
            // It answers first, and without it nobody else is asked.
            let master = of_master.get_or_insert_with(|| Arc::new(server.clone()));
            reporter.report(Finding::History {
                server,
                master: Arc::clone(master),
            });
        });
        reporter.report(Finding::AllAsked);
    })?;
    Ok(())
}

/// Asks all servers of a group what their clocks show, if the node is one. What is returned waits
/// until all have answered or failed, or the time is over.
pub(crate) fn ask_clocks(
    endpoint: &Endpoint,
    until: Time,
) -> Option<impl FnOnce() -> Vec<ServerClock> + use<>> {
    let inquiry = endpoint.auth.inquiries.begin()?;
    let endpoint = endpoint.clone();
    let (sender, clocks) = crossbeam_channel::unbounded();
    let thread = thread::Builder::new().name(NAME.to_owned());
    // Without a thread there is no answer.
    let _ = thread.spawn(move || {
        let Ok(found) = locate(&endpoint, until.since(clock::now())) else {
            return;
        };
        let Some(address) = found.addresses.first() else {
            return;
        };
        let master = MasterPlace {
            host: found.host,
            address: *address,
        };
        let password = endpoint.auth.servers.password.as_deref();
        ask_all(&master, &endpoint.auth, until, &inquiry, |told| {
            let place = presentable(told.place.to_string().as_bytes(), password);
            let clock = told.clock.map(|reading| ServerClock {
                place: place.into(),
                reading,
            });
            // It fails if nobody waits any more.
            let _ = clock.map(|clock| sender.send(clock));
        });
    });
    Some(move || {
        let mut all = Vec::new();
        while let Ok(clock) = clocks.recv_timeout(until.since(clock::now())) {
            all.push(clock);
        }
        all
    })
}

/// Asks the master, and then all replicas that it lists, at the same time. Each is told of as soon
/// as it has answered or failed, the master first.
fn ask_all(
    master: &MasterPlace,
    auth: &LookupAuth,
    until: Time,
    inquiry: &Arc<Inquiry>,
    mut tell: impl FnMut(Told),
) {
    let place = HostPort {
        host: master.host.clone(),
        port: master.address.port(),
    };
    let answer = match ask_master(master, auth, until) {
        Ok(answer) => answer,
        Err(problem) => return tell(Told::nothing(place, problem)),
    };
    let replicas = answer.replicas.clone();
    tell(answer.of(place));
    let (sender, answers) = crossbeam_channel::unbounded();
    for replica in &replicas {
        let place = replica.clone();
        let auth = auth.clone();
        let inquiry = Arc::clone(inquiry);
        let by = master.address.ip();
        let told = sender.clone();
        let thread = thread::Builder::new().name(NAME.to_owned());
        // Without a thread there is no answer of this one.
        let _ = thread.spawn(move || {
            let answer = match ask_replica(&place, by, &auth, until) {
                Ok(answer) => answer.of(place),
                Err(problem) => Told::nothing(place, problem),
            };
            // It fails if nobody waits any more.
            let _ = told.send(answer);
            drop(inquiry);
        });
    }
    drop(sender);
    let mut silent = replicas;
    while let Ok(told) = answers.recv_timeout(until.after(MARGIN).since(clock::now())) {
        silent.retain(|place| *place != told.place);
        tell(told);
    }
    for place in silent {
        tell(Told::nothing(place, NodeError::TimedOut(Phase::Resolving)));
    }
}

/// What a server has answered.
#[derive(Debug)]
struct ServerAnswer {
    history: Result<History, NodeError>,
    /// Where the replicas are that it lists.
    replicas: Vec<HostPort>,
    clock: Option<ClockReading>,
}

impl ServerAnswer {
    /// The same of the server at this place.
    fn of(self, place: HostPort) -> Told {
        Told {
            place,
            history: self.history,
            clock: self.clock,
        }
    }
}

fn ask_master(
    master: &MasterPlace,
    auth: &LookupAuth,
    until: Time,
) -> Result<ServerAnswer, NodeError> {
    // The others need some of the time.
    let now = clock::now();
    let half = now.after(until.since(now) / 2);
    let tls = auth.tls.as_ref();
    let probe = ProbeConnection::connect_to(&[master.address], &master.host, tls, half)?;
    ask(probe, &auth.servers)
}

fn ask_replica(
    place: &HostPort,
    named_by: IpAddr,
    auth: &LookupAuth,
    until: Time,
) -> Result<ServerAnswer, NodeError> {
    if leads_astray(place, Some(named_by)) {
        return Err(NodeError::WrongServer(WrongServer::Loopback));
    }
    let probe = ProbeConnection::connect((&place.host, place.port), auth.tls.as_ref(), until)?;
    ask(probe, &auth.servers)
}

fn ask(mut probe: ProbeConnection, login: &Login) -> Result<ServerAnswer, NodeError> {
    let password = login.password.as_deref();
    let auth = auth(login.user.as_deref(), password);
    let mut question = Vec::new();
    if let Some(auth) = &auth {
        encode_command(&mut question, auth);
    }
    // Both by one command not before Redis 7.
    for section in [&b"server"[..], b"replication"] {
        encode_command(&mut question, &[b"INFO", section]);
    }
    encode_command(&mut question, &[b"TIME"]);
    let count = QUESTIONS + usize::from(auth.is_some());
    let mut answer = None;
    let sent_at = clock::now();
    probe.ask(&question, |bytes| {
        // From the beginning each time: few answers come in parts.
        answer = decode_all(bytes, count)
            .map_err(NodeError::Protocol)
            .map(|replies| replies.map(|it| read(&it, (sent_at, clock::now()), password)))
            .transpose();
        answer.is_some()
    })?;
    answer.unwrap_or_else(|| {
        let text = "the answer is not complete".to_owned();
        Err(NodeError::Disconnected(text))
    })
}

/// Both sections of `INFO`, and the time.
const QUESTIONS: usize = 3;

/// Reads the answers, which were given between these two times: to `AUTH`, if there was one, and to
/// the questions.
fn read(replies: &[Reply<'_>], between: (Time, Time), password: Option<&[u8]>) -> ServerAnswer {
    let text_of = |reply: &Reply<'_>| match reply {
        Reply::Bulk(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    };
    let answers = &replies[replies.len().saturating_sub(QUESTIONS)..];
    let clock = answers
        .last()
        .and_then(|it| ClockReading::read(it, between));
    let info: Option<String> = answers.iter().take(2).map(text_of).collect();
    let Some(info) = info else {
        // The first error says why: behind a wrong password, all else is refused too.
        let error = replies.iter().find_map(|reply| match reply {
            Reply::Error(text) => Some(ServerError::parse(text, password)),
            _ => None,
        });
        let problem = error.map_or(NodeError::HidesReign, NodeError::Server);
        return ServerAnswer {
            history: Err(problem),
            replicas: Vec::new(),
            clock,
        };
    };
    ServerAnswer {
        history: History::parse(&info).ok_or(NodeError::HidesReign),
        replicas: info
            .lines()
            .filter_map(replica)
            .take(REPLICAS_MAX)
            .collect(),
        clock,
    }
}

/// Reads a line of `INFO replication` that has a replica:
/// `slave0:ip=10.0.0.2,port=6379,state=online,offset=14,lag=0`.
fn replica(line: &str) -> Option<HostPort> {
    let (name, fields) = line.split_once(':')?;
    let number = name.strip_prefix("slave")?;
    if number.is_empty() || number.contains(|digit: char| !digit.is_ascii_digit()) {
        return None;
    }
    let field = |name: &str| {
        let mut fields = fields.split(',');
        fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
    };
    let host = field("ip").filter(|host| !host.is_empty())?;
    let port = field("port")?.parse().ok().filter(|port| *port > 0)?;
    Some(HostPort {
        host: host.to_owned(),
        port,
    })
}

#[cfg(test)]
mod tests;
