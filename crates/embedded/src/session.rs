//! The state of one connection, and the commands that change it.

use super::command::{Call, excerpt, integer};
use super::keyspace::DATABASES;
use super::pushes::TrackingMode;
use super::reply::{CommandError, CommandResult, OwnedReply, Protocol, refuse};

#[derive(Clone, Debug)]
pub struct ConnectionState {
    /// As in `CLIENT ID`.
    pub id: i64,
    /// Set by `CLIENT SETNAME`; empty if there is none.
    pub name: Vec<u8>,
    pub database: usize,
    /// The protocol of the replies, also of the reply to the `HELLO` that changes it.
    pub protocol: Protocol,
    /// May the connection use commands other than those that authenticate it?
    pub is_authenticated: bool,
    /// Has the client sent `QUIT`? Then the connection is closed after the reply.
    pub is_closing: bool,
    pub(super) tracking: Option<TrackingMode>,
    /// The next command's keys are to be remembered: `CLIENT CACHING YES` came before.
    pub(super) caching: bool,
}

impl ConnectionState {
    pub(super) fn new(id: i64, is_authenticated: bool) -> Self {
        Self {
            id,
            name: Vec::new(),
            database: 0,
            protocol: Protocol::Resp2,
            is_authenticated,
            is_closing: false,
            tracking: None,
            caching: false,
        }
    }

    /// Are the keys that the current command reads to be remembered?
    pub(super) fn remembers_reads(&self) -> bool {
        self.tracking
            .is_some_and(|mode| mode == TrackingMode::All || self.caching)
    }
}

const USER: &[u8] = b"default";

/// `AUTH [username] password`
pub(super) fn auth(call: &mut Call<'_>) -> CommandResult {
    match call.args {
        [_, _] if call.keyspace.options.password.is_none() => refuse(
            "ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?",
        ),
        [_, password] => authenticate(call, USER, password),
        [_, user, password] => authenticate(call, user, password),
        _ => Err(CommandError::syntax()),
    }
}

/// A wrong password changes nothing: an authenticated connection stays authenticated.
fn authenticate(call: &mut Call<'_>, user: &[u8], password: &[u8]) -> CommandResult {
    let expected = call.keyspace.options.password.as_ref();
    if user != USER || expected.is_some_and(|expected| expected.0.as_bytes() != password) {
        return refuse("WRONGPASS invalid username-password pair or user is disabled.");
    }
    call.session.is_authenticated = true;
    Ok(OwnedReply::OK)
}

/// `HELLO [protocol [AUTH username password] [SETNAME name]]`
pub(super) fn hello(call: &mut Call<'_>) -> CommandResult {
    let protocol = match call.args.get(1).map(|version| integer(version)) {
        None => None,
        Some(Ok(2)) => Some(Protocol::Resp2),
        Some(Ok(3)) => Some(Protocol::Resp3),
        Some(Ok(_)) => return refuse("NOPROTO unsupported protocol version"),
        Some(Err(_)) => {
            return refuse("ERR Protocol version is not an integer or out of range");
        }
    };
    let mut credentials = None;
    let mut name = None;
    let mut rest = call.args.get(2..).unwrap_or_default();
    while let Some((option, values)) = rest.split_first() {
        rest = match (option.to_ascii_uppercase().as_slice(), values) {
            (b"AUTH", [user, password, rest @ ..]) => {
                credentials = Some((*user, *password));
                rest
            }
            (b"SETNAME", [wanted, rest @ ..]) => {
                check_name(wanted)?;
                name = Some(*wanted);
                rest
            }
            _ => {
                let option = excerpt(option, usize::MAX);
                return refuse([b"ERR Syntax error in HELLO option '", option, b"'"].concat());
            }
        };
    }
    if let Some((user, password)) = credentials {
        authenticate(call, user, password)?;
    }
    if !call.session.is_authenticated {
        return refuse(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO AUTH <user> <pass> option can be used to authenticate the client and select \
             the RESP protocol version at the same time",
        );
    }
    if let Some(name) = name {
        call.session.name = name.to_vec();
    }
    call.session.protocol = protocol.unwrap_or(call.session.protocol);
    if let Some(before) = call.keyspace.pushes.tracking.get_mut(&call.session.id) {
        *before = call.session.protocol;
    }
    let pairs = [
        ("server", OwnedReply::bulk("redis")),
        (
            "version",
            OwnedReply::bulk(call.keyspace.options.redis_version.as_str()),
        ),
        ("proto", OwnedReply::Integer(call.session.protocol as i64)),
        ("id", OwnedReply::Integer(call.session.id)),
        ("mode", OwnedReply::bulk("standalone")),
        ("role", OwnedReply::bulk("master")),
        ("modules", OwnedReply::Array(Vec::new())),
    ];
    Ok(OwnedReply::Map(
        pairs
            .map(|(name, value)| (OwnedReply::bulk(name), value))
            .into(),
    ))
}

/// `SELECT index`
pub(super) fn select(call: &mut Call<'_>) -> CommandResult {
    let index = integer(call.args[1])?;
    // Redis reads a C int here, and has a separate error for other numbers.
    i32::try_from(index).map_err(|_| {
        let min = i32::MIN;
        let max = i32::MAX;
        CommandError::new(format!(
            "ERR value is out of range, value must between {min} and {max}"
        ))
    })?;
    let index = usize::try_from(index)
        .ok()
        .filter(|index| *index < DATABASES);
    call.session.database =
        index.ok_or_else(|| CommandError::new("ERR DB index is out of range"))?;
    Ok(OwnedReply::OK)
}

/// `CLIENT SETNAME name`; an empty name removes it.
pub(super) fn client_setname(call: &mut Call<'_>) -> CommandResult {
    check_name(call.args[2])?;
    call.session.name = call.args[2].to_vec();
    Ok(OwnedReply::OK)
}

fn check_name(name: &[u8]) -> Result<(), CommandError> {
    if name.iter().all(|byte| matches!(byte, b'!'..=b'~')) {
        return Ok(());
    }
    refuse("ERR Client names cannot contain spaces, newlines or special characters.")
}

pub(super) fn client_getname(call: &mut Call<'_>) -> CommandResult {
    let name = &call.session.name;
    Ok(if name.is_empty() {
        OwnedReply::Null
    } else {
        OwnedReply::bulk(name.as_slice())
    })
}

/// `CLIENT KILL ID id`, and the older form with an address, which matches no connection here. A
/// connection cannot kill itself.
pub(super) fn client_kill(call: &mut Call<'_>) -> CommandResult {
    match call.args {
        [_, _, _] => refuse("ERR No such client"),
        [_, _, filter, id] if filter.eq_ignore_ascii_case(b"ID") => {
            let id = integer(id).ok().filter(|id| *id > 0);
            let id =
                id.ok_or_else(|| CommandError::new("ERR client-id should be greater than 0"))?;
            let is_other = id != call.session.id;
            Ok(OwnedReply::Integer(i64::from(
                is_other && call.keyspace.kill(id),
            )))
        }
        _ => Err(CommandError::syntax()),
    }
}

/// `CLIENT INFO`, and `CLIENT LIST`, which lists only the connection that sends it.
pub(super) fn describe(call: &mut Call<'_>, command: &str) -> CommandResult {
    if call.args.len() > 2 {
        return Err(CommandError::syntax());
    }
    let ConnectionState {
        id,
        name,
        database,
        protocol,
        ..
    } = &*call.session;
    let name = String::from_utf8_lossy(name);
    let version = *protocol as i64;
    Ok(OwnedReply::Text(format!(
        "id={id} name={name} db={database} cmd={command} user=default resp={version}\n"
    )))
}

pub(super) fn quit(call: &mut Call<'_>) -> CommandResult {
    call.session.is_closing = true;
    Ok(OwnedReply::OK)
}

/// `RESET`: resets everything but the connection's id.
pub(super) fn reset(call: &mut Call<'_>) -> CommandResult {
    let open = call.keyspace.options.password.is_none();
    call.keyspace.pushes.tracking.remove(&call.session.id);
    call.keyspace.pushes.channels.forget(call.session.id);
    *call.session = ConnectionState::new(call.session.id, open);
    Ok(OwnedReply::simple("RESET"))
}
