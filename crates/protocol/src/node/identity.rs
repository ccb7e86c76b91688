//! The identity of a server, from its answers to the greeting.

use super::server_error::presentable;
use crate::resp::{Elements, Reply};
use std::time::Duration;

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
}

/// The used fields of a server's answer to `HELLO`.
#[derive(Default)]
pub(super) struct Introduction {
    protocol: Option<i64>,
    pub(super) connection: Option<u64>,
}

impl Introduction {
    /// Reads alternating names and values. `None` if the list has another form.
    pub(super) fn read(list: &Elements<'_>) -> Option<Self> {
        let mut introduction = Self::default();
        let mut elements = list.iter();
        while let Some(name) = elements.next() {
            let (Reply::Bulk(name) | Reply::Simple(name)) = name else { return None };
            match (name, elements.next()?) {
                (b"proto", Reply::Integer(version)) => introduction.protocol = Some(version),
                (b"id", Reply::Integer(id)) => introduction.connection = u64::try_from(id).ok(),
                (b"proto" | b"id", _) => return None,
                _ => {}
            }
        }
        Some(introduction)
    }

    /// Does the answer's type fit its protocol version? A list that is no map is RESP2, and must
    /// report that version, because it could be an answer to another command.
    pub(super) fn fits(&self, is_resp3: bool) -> bool {
        if is_resp3 { self.protocol.is_none_or(|it| it == 3) } else { self.protocol == Some(2) }
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
        }
    }

    /// The identity as it may be shown. `run_id` is only compared, so it keeps its bytes.
    pub(super) fn presentable(self, secret: Option<&[u8]>) -> Self {
        let shown = |text: Option<String>| text.map(|text| presentable(text.as_bytes(), secret));
        Self { server: shown(self.server), version: shown(self.version), ..self }
    }
}

/// The value of a field in the answer to `INFO`.
pub(super) fn info_field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = info.lines().filter_map(|line| line.trim_end().split_once(':'));
    let (_, value) = fields.find(|(key, _)| *key == name)?;
    Some(value).filter(|value| !value.is_empty() && value.len() <= 128)
}
