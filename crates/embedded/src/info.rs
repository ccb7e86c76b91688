//! What a node says about itself: `INFO`, `CONFIG GET` and `TIME`, with the names of Redis.

use super::command::Call;
use super::keyspace::DATABASES;
use super::reply::{Answer, OwnedReply};

/// The sections in the order of the reply. They have only the fields that a lock client uses.
const SECTIONS: [(&str, Section); 6] = [
    ("server", server),
    ("memory", |_| "maxmemory:0\r\nmaxmemory_policy:noeviction\r\n".to_owned()),
    ("persistence", |_| "loading:0\r\naof_enabled:0\r\n".to_owned()),
    ("replication", |_| "role:master\r\nconnected_slaves:0\r\n".to_owned()),
    ("cluster", |_| "cluster_enabled:0\r\n".to_owned()),
    ("keyspace", keyspace),
];

type Section = fn(&mut Call<'_>) -> String;

/// `INFO [section ...]`
pub(super) fn info(call: &mut Call<'_>) -> Answer {
    let asked = &call.args[1..];
    let wants = |name: &str| {
        asked.is_empty()
            || asked.iter().any(|word| {
                let same = |other: &str| word.eq_ignore_ascii_case(other.as_bytes());
                same(name) || same("default") || same("all") || same("everything")
            })
    };
    let mut text = String::new();
    for (name, section) in SECTIONS.iter().filter(|(name, _)| wants(name)) {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let (first, rest) = name.split_at(1);
        text.push_str(&format!("# {}{rest}\r\n{}", first.to_ascii_uppercase(), section(call)));
    }
    Ok(OwnedReply::Text(text))
}

fn server(call: &mut Call<'_>) -> String {
    let options = &call.keyspace.options;
    let uptime = call.keyspace.uptime(call.now).as_secs();
    let fields = [
        ("redis_version", options.redis_version.clone()),
        ("redis_mode", "standalone".to_owned()),
        ("run_id", options.run_id.clone()),
        ("tcp_port", options.port.to_string()),
        ("uptime_in_seconds", uptime.to_string()),
        ("uptime_in_days", (uptime / 86_400).to_string()),
        ("executable", "redlatch (a node inside the process)".to_owned()),
    ];
    fields.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect()
}

fn keyspace(call: &mut Call<'_>) -> String {
    let now_ms = call.now_ms;
    (0..DATABASES)
        .map(|index| (index, call.keyspace.database(index, now_ms).census()))
        .filter(|(_, (keys, _))| *keys > 0)
        .map(|(index, (keys, expiring))| {
            format!("db{index}:keys={keys},expires={expiring},avg_ttl=0\r\n")
        })
        .collect()
}

/// The settings that a lock client asks for. A node keeps its data in memory only, and has no limit
/// of it.
const SETTINGS: [(&str, &str); 5] = [
    ("appendfsync", "everysec"),
    ("appendonly", "no"),
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("save", ""),
];

/// `CONFIG GET setting ...`. Of patterns, it knows those with a `*` at the end. Like Redis, it
/// spells a name as the caller did.
pub(super) fn config_get(call: &mut Call<'_>) -> Answer {
    let mut found = Vec::new();
    for asked in &call.args[2..] {
        let stem = asked.strip_suffix(b"*");
        for (name, value) in SETTINGS {
            let starts = |stem: &[u8]| {
                let start = name.as_bytes().get(..stem.len());
                start.is_some_and(|start| start.eq_ignore_ascii_case(stem))
            };
            let shown = match stem {
                Some(stem) if starts(stem) => name.as_bytes(),
                None if asked.eq_ignore_ascii_case(name.as_bytes()) => asked,
                _ => continue,
            };
            found.push((OwnedReply::bulk(shown), OwnedReply::bulk(value)));
        }
    }
    Ok(OwnedReply::Map(found))
}

/// `TIME`: seconds since 1970, and microseconds.
pub(super) fn time(call: &mut Call<'_>) -> Answer {
    let micros = call.keyspace.options.wall_micros(call.now);
    let part = |number: u64| OwnedReply::bulk(number.to_string());
    Ok(OwnedReply::Array(vec![part(micros / 1_000_000), part(micros % 1_000_000)]))
}
