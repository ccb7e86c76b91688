//! The greeting: credentials, database, protocol version, and the server's identity.
//!
//! All commands of the greeting are written at once, so it costs one round trip. Each answer is
//! handled independently, so the greeting works from Redis 2.6 on:
//!
//! | command | if it fails |
//! |---|---|
//! | `AUTH` | the node is not used |
//! | `HELLO 3` | RESP2 is used, as before version 6; a missing password makes the node unusable |
//! | `SELECT` | the node is not used |
//! | `CLIENT SETNAME` | the connection has no name |
//! | `INFO server` | sent again if the error may be a stray; then version and uptime are unknown |
//! | `CLIENT KILL ID` | late commands of the former connection are carried out |
//!
//! A server that is too busy to answer `INFO` is not used until it can.
//!
//! `INFO` is the last of the commands that are written at once. So an unsolicited error is either
//! read as its answer, or shifts the answers behind it, which then do not fit. If the error were
//! accepted as the answer to `INFO`, the client would not know which run of the server gave this
//! connection its id, and could not end the connection later. When the client sends `INFO` again,
//! it reads the answer to the first one.
//!
//! `CLIENT KILL ID` is written when the others have been answered, and only if a connection to this
//! run of the server was given up with commands unanswered: see `stale_connections.rs`.
//!
//! No lock command is written before the greeting is answered: in a wrong database, or with another
//! user's rights, it would do harm.

use super::command::describe;
use super::server_error::presentable;
use super::wrong_server::ServerKind;
use super::{NodeError, ServerError, ServerErrorKind, StaleConnections};
use crate::resp::{Elements, Reply, encode_command};
use std::time::Duration;

/// The credentials and settings of a new connection.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The ACL user. The default user if there is none.
    pub user: Option<Vec<u8>>,
    pub password: Option<Vec<u8>>,
    pub database: u32,
    /// The connection's name for `CLIENT SETNAME`.
    pub client_name: Option<String>,
}

impl Credentials {
    pub fn new(
        user: Option<&[u8]>,
        password: Option<&[u8]>,
        database: u32,
        client_name: Option<&str>,
    ) -> Self {
        Self {
            user: user.map(<[u8]>::to_vec),
            password: password.map(<[u8]>::to_vec),
            database,
            client_name: client_name.map(str::to_owned),
        }
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Auth,
    Hello,
    Select,
    SetName,
    Info,
    /// Ending the connections before this one.
    End,
}

/// How often `INFO` is sent at most. A server that answers each with an unknown error does not
/// support it.
const INFO_MAX: u8 = 3;

/// The command that authenticates a connection, if it needs one. A user without a password has an
/// empty one.
pub fn auth<'a>(user: Option<&'a [u8]>, password: Option<&'a [u8]>) -> Option<Vec<&'a [u8]>> {
    match (user, password) {
        (Some(user), password) => Some(vec![b"AUTH", user, password.unwrap_or_default()]),
        (None, Some(password)) => Some(vec![b"AUTH", password]),
        (None, None) => None,
    }
}

/// A greeting that has been written and is being answered.
#[derive(Debug)]
pub struct Handshake {
    /// Those of the commands that were written at once, in their order.
    stages: Vec<Stage>,
    /// How many are answered.
    pub(super) next: usize,
    infos: u8,
    identity: Identity,
    pub(super) stale: StaleConnections,
    /// The first answer that makes the node unusable.
    pub(super) problem: Option<NodeError>,
}

impl Handshake {
    /// Appends the greeting to `out`. Connections of `stale` to this run of the server are ended.
    pub fn begin(credentials: &Credentials, stale: StaleConnections, out: &mut Vec<u8>) -> Self {
        let mut stages = Vec::new();
        let mut ask = |stage, command: &[&[u8]]| {
            encode_command(out, command);
            stages.push(stage);
        };
        let user = credentials.user.as_deref();
        let password = credentials.password.as_deref();
        if let Some(command) = auth(user, password) {
            ask(Stage::Auth, &command);
        }
        ask(Stage::Hello, &[b"HELLO", b"3"]);
        if credentials.database != 0 {
            ask(
                Stage::Select,
                &[b"SELECT", credentials.database.to_string().as_bytes()],
            );
        }
        if let Some(name) = &credentials.client_name {
            ask(Stage::SetName, &[b"CLIENT", b"SETNAME", name.as_bytes()]);
        }
        ask(Stage::Info, &[b"INFO", b"server"]);
        Self {
            stages,
            next: 0,
            infos: 1,
            identity: Identity::default(),
            stale,
            problem: None,
        }
    }

    /// Handles the next answer, and appends further commands to `out`. Returns `Ok(None)` as long
    /// as more answers are expected; then the server's identity, and the former connections to
    /// other servers, which are still to be ended.
    ///
    /// # Errors
    ///
    /// The reason why the node cannot be used.
    pub fn reply(
        &mut self,
        reply: &Reply<'_>,
        secret: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<Option<(Identity, StaleConnections)>, NodeError> {
        let stage = self.stages.get(self.next).copied().unwrap_or(Stage::End);
        self.next += 1;
        match reply {
            Reply::Error(text) => {
                let error = ServerError::parse(text, secret);
                let is_unproven = stage == Stage::Info && !error.kind.is_refusal();
                self.refused(stage, error);
                if is_unproven && self.problem.is_none() && self.infos < INFO_MAX {
                    self.infos += 1;
                    self.next -= 1;
                    encode_command(out, &[b"INFO", b"server"]);
                    return Ok(None);
                }
            }
            _ => self.granted(stage, reply, secret)?,
        }
        match stage {
            Stage::Info if self.problem.is_none() => self.stale.end(&self.identity, out),
            Stage::End => self.stale.answered(reply),
            Stage::Info => {}
            Stage::Auth | Stage::Hello | Stage::Select | Stage::SetName => return Ok(None),
        }
        if self.stale.is_ending() {
            return Ok(None);
        }
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        Ok(Some((
            std::mem::take(&mut self.identity),
            std::mem::take(&mut self.stale),
        )))
    }

    /// Did this greeting end with an invalid answer to `CLIENT KILL ID`, which this server may give
    /// every time?
    pub fn is_invalid_end_answer(&self, problem: &NodeError) -> bool {
        let is_odd = match problem {
            NodeError::UnexpectedReply(_) => true,
            NodeError::Server(error) => error.kind == ServerErrorKind::Other,
            _ => false,
        };
        is_odd && self.next >= self.stages.len()
    }

    fn refused(&mut self, stage: Stage, error: ServerError) {
        let is_busy = error.kind == ServerErrorKind::Busy;
        let is_unwanted = matches!(
            error.kind,
            ServerErrorKind::Authentication | ServerErrorKind::TooManyClients
        );
        let is_fatal = match stage {
            Stage::Auth | Stage::Select => true,
            Stage::Hello | Stage::SetName => is_unwanted,
            // A busy server will report its identity soon. A server without a known identity might
            // be counted twice, if it has two URLs. If an unsolicited error were accepted as the
            // answer to `INFO`, the former connections would not be ended and could still deliver
            // commands.
            Stage::Info if !error.kind.is_refusal() && !self.stale.is_empty() => true,
            Stage::Info => is_unwanted || is_busy,
            // Without the right to end connections, locks are as safe, but keys may be left behind.
            Stage::End => is_busy,
        };
        // The first counts: after a wrong password, everything is refused.
        if is_fatal && self.problem.is_none() {
            self.problem = Some(NodeError::Server(error));
        }
    }

    fn granted(
        &mut self,
        stage: Stage,
        reply: &Reply<'_>,
        secret: Option<&[u8]>,
    ) -> Result<(), NodeError> {
        let unexpected = || NodeError::UnexpectedReply(describe(reply, secret));
        match (stage, reply) {
            (Stage::Auth | Stage::Select | Stage::SetName, Reply::Simple(b"OK")) => Ok(()),
            (Stage::Hello, Reply::Map(list) | Reply::Array(list)) => {
                let is_resp3 = matches!(reply, Reply::Map(_));
                let introduction = Introduction::read(list)
                    .filter(|it| it.fits(is_resp3))
                    .ok_or_else(unexpected)?;
                self.identity.connection = introduction.connection;
                self.identity.kind = introduction.kind;
                self.identity.is_resp3 = is_resp3;
                Ok(())
            }
            // The number of connections that it ended. No other reply is accepted: a repeated
            // answer to the greeting must not count as the end of a connection.
            (Stage::End, Reply::Integer(0..=1)) => Ok(()),
            (Stage::Info, Reply::Bulk(text) | Reply::Verbatim { text, .. }) => {
                let Identity {
                    connection,
                    is_resp3,
                    kind,
                    ..
                } = self.identity;
                let identity = Identity::from_info(text).presentable(secret);
                let kind = identity.kind.or(kind);
                self.identity = Identity {
                    connection,
                    is_resp3,
                    kind,
                    ..identity
                };
                Ok(())
            }
            _ => Err(unexpected()),
        }
    }
}

// The identity of a server, from its answers to the greeting.

/// The identity that a server reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `redis`, `valkey`, or another name of the server.
    pub server: Option<String>,
    pub version: Option<String>,
    /// Its `run_id`, a random name that is new with each start.
    pub run_id: Option<String>,
    /// How long it had been running when it answered, or up to a second more: the time of its
    /// answer minus the time of its start, which is rounded down to whole seconds. If the server
    /// reports the time of its answer in whole seconds only, that is rounded down as well.
    pub uptime: Option<Duration>,
    /// Its id of this connection. No other connection to the same run of the server has this id.
    pub connection: Option<u64>,
    /// Does the connection speak RESP3?
    pub is_resp3: bool,
    pub kind: Option<ServerKind>,
}

/// The used fields of a server's answer to `HELLO`.
#[derive(Default)]
pub(super) struct Introduction {
    protocol: Option<i64>,
    pub(super) connection: Option<u64>,
    kind: Option<ServerKind>,
}

impl Introduction {
    /// Reads alternating names and values. `None` if the list has another form.
    pub(super) fn read(list: &Elements<'_>) -> Option<Self> {
        let mut introduction = Self::default();
        let mut elements = list.iter();
        while let Some(name) = elements.next() {
            let (Reply::Bulk(name) | Reply::Simple(name)) = name else {
                return None;
            };
            match (name, elements.next()?) {
                (b"proto", Reply::Integer(version)) => introduction.protocol = Some(version),
                (b"id", Reply::Integer(id)) => introduction.connection = u64::try_from(id).ok(),
                (b"proto" | b"id", _) => return None,
                (b"mode", Reply::Bulk(mode) | Reply::Simple(mode)) => {
                    introduction.kind = ServerKind::of(mode);
                }
                _ => {}
            }
        }
        Some(introduction)
    }

    /// Does the answer's type fit its protocol version? A list that is not a map is RESP2, and must
    /// report that version, because it could be an answer to another command.
    pub(super) fn fits(&self, is_resp3: bool) -> bool {
        if is_resp3 {
            self.protocol.is_none_or(|it| it == 3)
        } else {
            self.protocol == Some(2)
        }
    }
}

impl Identity {
    pub(super) fn from_info(info: &[u8]) -> Self {
        let info = String::from_utf8_lossy(info);
        let field = |name| info_field(&info, name).map(str::to_owned);
        let version = field("redis_version");
        // Redis and Redict send no `server_name`. Redict and Valkey answer a Redis version as well,
        // for programs that look for one.
        let redict = field("redict_version");
        let unnamed = if redict.is_some() { "redict" } else { "redis" };
        let whole = field("uptime_in_seconds").and_then(|seconds| seconds.parse().ok());
        // Since Redis 6.2. With it, all clients compute the same start time whenever they ask;
        // without it, a start time that is up to a second later.
        let time = field("server_time_usec").and_then(|micros| micros.parse::<u64>().ok());
        let fraction = Duration::from_micros(time.map_or(0, |micros| micros % 1_000_000));
        Self {
            server: field("server_name").or_else(|| version.is_some().then(|| unnamed.to_owned())),
            version: field("valkey_version").or(redict).or(version),
            run_id: field("run_id"),
            uptime: whole.map(|seconds| Duration::from_secs(seconds).saturating_add(fraction)),
            connection: None,
            is_resp3: false,
            // Valkey has the second name, unless it is to be like Redis.
            kind: field("redis_mode")
                .or(field("server_mode"))
                .and_then(|mode| ServerKind::of(mode.as_bytes())),
        }
    }

    /// The identity as it may be shown. `run_id` is only compared, so it keeps its bytes.
    pub(super) fn presentable(self, secret: Option<&[u8]>) -> Self {
        let server = self.server.map(|it| presentable(it.as_bytes(), secret));
        let version = self.version.map(|it| presentable(it.as_bytes(), secret));
        Self {
            server,
            version,
            ..self
        }
    }
}

/// The value of a field in the answer to `INFO`.
pub(super) fn info_field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = info
        .lines()
        .filter_map(|line| line.trim_end().split_once(':'));
    let (_, value) = fields.find(|(key, _)| *key == name)?;
    Some(value).filter(|value| !value.is_empty() && value.len() <= 128)
}

#[cfg(test)]
mod tests;
