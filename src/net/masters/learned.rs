//! The servers that those of a URL have told of: the other Sentinels, or the cluster's servers.
//!
//! A program may run for longer than the servers live that its URL names. If none of these names a
//! master, those that were learned are asked. Such an address may be somebody else's by then, of
//! another group with the same name: so an answer counts only if who gives it still tells of
//! servers that were told of before, by their ids, which no others have.

use crate::node_url::HostPort;
use crate::resp::Reply;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many are remembered: those that were told of last.
const SERVERS_MAX: usize = 64;

/// A server, as another one has told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LearnedServer {
    id: String,
    place: HostPort,
    /// One more for each thread that asks it.
    asking: Arc<()>,
}

#[derive(Debug, Default)]
pub(crate) struct LearnedServers(Mutex<Vec<LearnedServer>>);

impl LearnedServers {
    fn lock(&self) -> MutexGuard<'_, Vec<LearnedServer>> {
        // Each change is complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn learn(&self, mut told: Vec<LearnedServer>) {
        let mut known = self.lock();
        for new in &mut told {
            if let Some(place) = known.iter().position(|it| it.id == new.id) {
                new.asking = known.remove(place).asking;
            }
        }
        told.append(&mut known);
        told.truncate(SERVERS_MAX);
        *known = told;
    }

    /// Is whoever tells of these servers one of those that were learned?
    pub(super) fn are_told_of(&self, told: &[LearnedServer]) -> bool {
        have_one_in_common(told, &self.lock())
    }

    /// Where the servers are that are none of these, and how many threads ask each.
    pub(super) fn others(&self, servers: &[HostPort]) -> Vec<(HostPort, Arc<()>)> {
        let known = self.lock();
        let others = known.iter().filter(|it| !servers.contains(&it.place));
        others
            .map(|it| (it.place.clone(), Arc::clone(&it.asking)))
            .collect()
    }
}

/// Reads the answer to `SENTINEL SENTINELS`: the fields of each, with their names.
pub(super) fn sentinels(answer: &Reply<'_>) -> Vec<LearnedServer> {
    let Reply::Array(all) = answer else {
        return Vec::new();
    };
    all.iter().filter_map(sentinel).collect()
}

/// Reads the fields of one Sentinel.
fn sentinel(fields: Reply<'_>) -> Option<LearnedServer> {
    let (Reply::Array(fields) | Reply::Map(fields)) = fields else {
        return None;
    };
    let mut found = [None; 3];
    let mut words = fields.iter();
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        let place = ["runid", "ip", "port"]
            .iter()
            .position(|it| text(name) == Some(it));
        if let Some(place) = place {
            found[place] = text(value);
        }
    }
    let [id, host, port] = found;
    server(id?, host?, port?.parse().ok()?)
}

/// Reads the answer to `CLUSTER SLOTS` of the server at `asked`: of each range of slots the master
/// and its replicas, each by host, port and id.
pub(super) fn cluster(answer: &Reply<'_>, asked: &HostPort) -> Vec<LearnedServer> {
    let Reply::Array(ranges) = answer else {
        return Vec::new();
    };
    let mut all: Vec<LearnedServer> = Vec::new();
    for range in ranges.iter() {
        let Reply::Array(range) = range else { continue };
        for fields in range.iter().skip(2) {
            let Reply::Array(fields) = fields else {
                continue;
            };
            let mut fields = fields.iter();
            let (Some(host), Some(Reply::Integer(port)), Some(id)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            // What the servers do not know they leave out. `?` is another server's host name.
            let host = text(host)
                .filter(|host| !host.is_empty())
                .unwrap_or(&asked.host);
            let port = u16::try_from(port).ok().filter(|_| host != "?");
            let found = port
                .zip(text(id))
                .and_then(|(port, id)| server(id, host, port));
            all.extend(found.filter(|found| all.iter().all(|it| it.id != found.id)));
        }
    }
    all
}

/// Do these have a server in common?
pub(super) fn have_one_in_common(some: &[LearnedServer], others: &[LearnedServer]) -> bool {
    some.iter()
        .any(|one| others.iter().any(|other| other.id == one.id))
}

pub(super) fn server(id: &str, host: &str, port: u16) -> Option<LearnedServer> {
    let place = HostPort {
        host: host.to_owned(),
        port,
    };
    let is_whole = !id.is_empty() && !host.is_empty() && port > 0;
    is_whole.then(|| LearnedServer {
        id: id.to_owned(),
        place,
        asking: Arc::default(),
    })
}

/// A text that the server sent as one.
pub(super) fn text<'a>(element: Reply<'a>) -> Option<&'a str> {
    if let Reply::Bulk(bytes) = element {
        std::str::from_utf8(bytes).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::decode;

    fn read(bytes: &str, by: impl Fn(&Reply<'_>) -> Vec<LearnedServer>) -> Vec<LearnedServer> {
        let (reply, _) = decode(bytes.as_bytes())
            .expect("a reply")
            .expect("all of it");
        by(&reply)
    }

    fn bulk(words: &[&str]) -> String {
        let word = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
        format!(
            "*{}\r\n{}",
            words.len(),
            words.iter().map(word).collect::<String>()
        )
    }

    fn expected(servers: &[(&str, &str, u16)]) -> Vec<LearnedServer> {
        servers
            .iter()
            .filter_map(|(id, host, port)| server(id, host, *port))
            .collect()
    }

    #[test]
    fn a_sentinel_tells_of_the_others() {
        let one = bulk(&[
            "name", "x", "ip", "10.0.0.1", "port", "26379", "runid", "aa",
        ]);
        let other = bulk(&["port", "26380", "runid", "bb", "ip", "::1", "flags"]);
        let unknown = bulk(&["ip", "10.0.0.2", "port", "26379", "runid", ""]);
        let found = read(&format!("*3\r\n{one}{other}{unknown}"), sentinels);
        assert_eq!(
            found,
            expected(&[("aa", "10.0.0.1", 26379), ("bb", "::1", 26380)])
        );
        assert_eq!(
            read("-ERR No such master with that name\r\n", sentinels),
            []
        );
    }

    #[test]
    fn a_server_of_a_cluster_tells_of_all_that_have_slots() {
        let asked = HostPort {
            host: "asked".to_owned(),
            port: 1,
        };
        let node = |host: &str, port: u16, id: &str| {
            format!("*4\r\n{host}:{port}\r\n${}\r\n{id}\r\n*0\r\n", id.len())
        };
        let first = node("$8\r\n10.0.0.1\r\n", 7000, "aa");
        let unnamed = node("$-1\r\n", 7001, "bb");
        let unknown = node("$1\r\n?\r\n", 7002, "cc");
        let ranges = format!(
            "*2\r\n*5\r\n:0\r\n:99\r\n{first}{unnamed}{unknown}*3\r\n:100\r\n:199\r\n{first}"
        );
        let found = read(&ranges, |reply| cluster(reply, &asked));
        assert_eq!(
            found,
            expected(&[("aa", "10.0.0.1", 7000), ("bb", "asked", 7001)])
        );
    }

    #[test]
    fn who_tells_of_nobody_that_was_told_of_before_is_not_one_of_them() {
        let learned = LearnedServers::default();
        learned.learn(expected(&[("aa", "h1", 1), ("bb", "h2", 2)]));
        learned.learn(expected(&[("bb", "h3", 3)]));
        let place = |host: &str, port| {
            (
                HostPort {
                    host: host.to_owned(),
                    port,
                },
                Arc::default(),
            )
        };
        assert_eq!(learned.others(&[]), [place("h3", 3), place("h1", 1)]);
        assert_eq!(learned.others(&[place("h3", 3).0]), [place("h1", 1)]);
        assert!(learned.are_told_of(&expected(&[("cc", "h1", 1), ("aa", "h9", 9)])));
        assert!(!learned.are_told_of(&expected(&[("cc", "h1", 1)])));
        let many: Vec<String> = (0..100).map(|id| id.to_string()).collect();
        learned.learn(many.iter().filter_map(|id| server(id, "h", 1)).collect());
        assert_eq!(learned.others(&[]).len(), SERVERS_MAX);
    }
}
