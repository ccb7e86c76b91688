//! What the rule of `node::history` relies on, on every server of this machine that has histories:
//! what `WAIT` waits for, what a server says of the reigns that it was a part of, and what a copy
//! leaves that was broken off. The marker's script runs there too.

#![expect(clippy::unwrap_used, reason = "an error fails the test")]

use std::thread;
use std::time::Duration;

use redlatch_protocol::node::history::{
    History, Marker, Reigning, Replicas, Since, Standing, Testimony, Weight, weigh,
};
use redlatch_protocol::node::script::{REIGN, REIGN_ACKNOWLEDGED};
use redlatch_protocol::resp::decode;
use support::cli::{Client, Value, encode};
use support::eventually;
use support::locks::LIMIT;
use support::redis::Server;
use support::sentinel::info;
use support::server_program::ServerProgram;
use support::servers::Servers;

use super::found;

const MARKER: &str = "redlatch:reign";

/// Quick copies, and a history that is kept without replicas.
const SETTINGS: [&str; 4] = ["--repl-diskless-sync-delay", "0", "--repl-backlog-ttl", "0"];

/// The group has two replicas.
const GROUP: Replicas = Replicas(2);

/// Tries this on the newest server of each kind that has histories, side by side.
#[track_caller]
fn on_each_server(attempt: fn(&ServerProgram)) {
    let kind = |program: &ServerProgram| (program.name().to_owned(), major(program));
    let mut programs = found::programs();
    programs.retain(|it| it.name() != "keydb" && it.agrees_with() >= (5, 0));
    // In the order of their versions.
    programs.reverse();
    programs.dedup_by_key(|program| kind(program));
    thread::scope(|scope| {
        let tried = programs.iter().map(|program| {
            let thread = scope.spawn(move || attempt(program));
            (program, thread)
        });
        for (program, thread) in tried.collect::<Vec<_>>() {
            assert!(thread.join().is_ok(), "on {program}");
        }
    });
}

fn major(program: &ServerProgram) -> u32 {
    let number = program.version().split('.').next();
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// A master and its replicas.
fn group(program: &ServerProgram, replicas: usize) -> Servers {
    let servers = Servers::of(program, 1 + replicas, &SETTINGS);
    for replica in &servers[1..] {
        follow(replica, &servers[0]);
    }
    servers
}

#[track_caller]
fn follow(replica: &Server, master: &Server) {
    let port = master.port().to_string();
    replica.command(&["REPLICAOF", "127.0.0.1", &port]);
    assert!(eventually(LIMIT, || info(replica, "master_link_status") == "up"));
}

fn promote(server: &Server) {
    assert_eq!(server.command(&["REPLICAOF", "NO", "ONE"]), Value::ok());
}

fn offset(server: &Server) -> u64 {
    info(server, "master_repl_offset").parse().unwrap()
}

/// Has a replica got all that its master has written?
fn has_all(replica: &Server, master: &Server) -> bool {
    offset(replica) == offset(master)
}

fn history(server: &Server) -> History {
    History::parse(&server.command(&["INFO"]).text()).unwrap()
}

/// What this server proves, if no lock lives for longer than a moment: its uptime must be two
/// seconds for that.
fn testimony(server: &Server, master: &Server, marker: &Marker) -> Testimony {
    let master = history(master);
    Testimony::of(
        &history(server),
        &master,
        marker,
        Duration::ZERO,
        Duration::ZERO,
    )
}

/// A connection of a client that was greeted with this nonce.
struct Connection {
    client: Client,
    run: String,
    nonce: &'static str,
}

impl Connection {
    fn to(server: &Server, nonce: &'static str) -> Self {
        let run = server.command(&["INFO", "server"]).field("run_id").unwrap();
        let client = server.client();
        Self { client, run, nonce }
    }

    fn ask_in(&mut self, step: &str, replicas: &str) -> Standing {
        let words = [
            "EVAL",
            REIGN_ACKNOWLEDGED.source,
            "1",
            MARKER,
            &self.run,
            "0",
            self.nonce,
            step,
            "",
            replicas,
            "1000",
            "7",
        ];
        let bytes = self.client.forward(&encode(&words)).unwrap();
        let (reply, _) = decode(&bytes).unwrap().unwrap();
        Standing::read(7, &reply).unwrap_or_else(|| panic!("{reply:?}"))
    }

    fn ask(&mut self, step: &str) -> Standing {
        self.ask_in(step, "2")
    }

    #[track_caller]
    fn reign(&mut self, step: &str) -> Reigning {
        match self.ask(step) {
            Standing::Reigning(it) => it,
            other => panic!("{other:?}"),
        }
    }

    /// The marker behind this step.
    #[track_caller]
    fn marker(&mut self, step: &str) -> Marker {
        let marker = self.reign(step).marker;
        Marker::parse(&marker).unwrap()
    }
}

/// Redis 8 and Valkey 8 answer for a connection that has written nothing as if all was
/// acknowledged.
fn is_wait_hasty(program: &ServerProgram) -> bool {
    ["redis", "valkey"].contains(&program.name()) && major(program) >= 8
}

#[test]
fn wait_waits_for_what_its_own_connection_has_written() {
    on_each_server(|program| {
        let servers = group(program, 1);
        let mut ann = Connection::to(&servers[0], "ann");
        let greeted = ann.marker("greet");
        assert!(eventually(LIMIT, || has_all(&servers[1], &servers[0])));
        servers[1].pause();
        servers[0].command(&["SET", "other", "1"]);

        // Reads, and writes that change nothing, wait for nothing there.
        for words in [
            vec!["GET", "other"],
            vec!["SET", "other", "2", "NX"],
            vec!["DEL", "none"],
        ] {
            let mut bob = servers[0].client();
            bob.command(&words);
            let acknowledged = bob.command(&["WAIT", "1", "50"]).integer();
            if is_wait_hasty(program) {
                assert_eq!(acknowledged, 1, "{words:?}: the trap is gone");
            }
        }

        // A vote that is refused writes nothing, and the question behind it does.
        for words in [["SET", "lock", "ann", "NX"], ["SET", "lock", "ann", "NX"]] {
            ann.client.command(&words);
            let first = ann.ask("touch");
            assert_eq!(ann.client.command(&["WAIT", "1", "50"]), Value::Integer(0));
            let second = ann.ask("check");
            let weight = weigh(GROUP, &greeted, &first, &second);
            assert_eq!(weight, Weight::TooFew { acknowledged: 0 }, "{second:?}");
        }
        let first = ann.ask("touch");
        servers[1].resume();
        let count = ann.client.command(&["WAIT", "1", "30000"]);
        assert_eq!(count, Value::Integer(1));
        let second = ann.ask("check");
        assert_eq!(
            weigh(GROUP, &greeted, &first, &second),
            Weight::Acknowledged
        );
        assert_eq!(servers[1].command(&["GET", "lock"]).text(), "ann");
    });
}

/// A question tells how far the server had written behind the votes in front of it.
#[test]
fn a_replica_that_has_passed_a_question_has_the_votes_before_it() {
    on_each_server(|program| {
        let servers = group(program, 2);
        let mut ann = Connection::to(&servers[0], "ann");
        ann.reign("greet");
        for number in 0..20 {
            let before = offset(&servers[0]);
            let key = format!("lock {number}");
            let mut bytes = encode(&["SET", &key, "ann", "NX", "PX", "60000"]);
            bytes.extend(encode(&["WAIT", "0", "1"]));
            ann.client.forward(&bytes[..]).unwrap();
            ann.client.reply().unwrap();
            let touched = ann.reign("touch");
            assert!(touched.offset > before + key.len() as u64, "{touched:?}");
            assert!(eventually(LIMIT, || {
                let passed = ann.reign("check").acknowledged;
                passed.iter().any(|replica| *replica >= touched.offset)
            }));
            let has_it = |replica: &&Server| replica.command(&["GET", &key]) != Value::Null;
            assert!(servers[1..].iter().any(|replica| has_it(&replica)), "{key}");
        }
        assert_eq!(ann.reign("check").listed, 2);
    });
}

#[test]
fn a_marker_is_of_one_mode() {
    on_each_server(|program| {
        let servers = Servers::of(program, 2, &SETTINGS);
        let mut ann = Connection::to(&servers[0], "ann");
        let mut bob = Connection::to(&servers[0], "bob");
        assert!(ann.reign("check").marker.is_empty());
        let open = ann.marker("greet");
        assert_eq!((open.since, open.former.clone()), (Since::Unknown, None));
        // It stays as it is for who has another nonce, and for who assumes another group.
        for step in ["greet", "confirm", "prove", "touch", "check"] {
            assert_eq!(bob.marker(step), open, "{step}");
            let other = bob.ask_in(step, "4");
            assert!(matches!(other, Standing::OtherMode(_)), "{other:?}");
        }
        // Versions that read a text get an error, and replace nothing.
        let words = [
            "EVAL",
            REIGN.source,
            "1",
            MARKER,
            &ann.run,
            "0",
            "cid",
            "await",
            "",
            "7",
        ];
        let refused = servers[0].command(&words).text();
        assert!(refused.contains("WRONGTYPE"), "{refused}");
        assert_eq!(ann.marker("check"), open);

        let timed = ann.marker("confirm");
        let now = ann.reign("check").now;
        // Rounded up, and the clock rounded down.
        let latest = now + Duration::from_millis(1);
        assert!(
            matches!(timed.since, Since::Clock(since) if since <= latest),
            "{timed:?}"
        );
        assert_eq!(ann.marker("confirm"), timed, "once");
        assert_eq!(ann.marker("prove").since, Since::Proven);

        // A text is of another mode, until a person says otherwise.
        let mut cid = Connection::to(&servers[1], "cid");
        servers[1].command(&["SET", MARKER, "redlatch1 a b 4 5 bob"]);
        assert_eq!(cid.ask("greet"), Standing::OtherMode(b"string".to_vec()));
        assert!(cid.reign("renew").marker.starts_with(b"redlatch2 renewed "));
        assert_eq!(cid.marker("greet").since, Since::Unknown);
        assert_eq!(cid.marker("adopt").since, Since::Unknown, "it was in use");
        servers[1].command(&["FLUSHALL"]);
        cid.marker("greet");
        cid.nonce = "dan";
        let adopted = cid.marker("adopt");
        assert_eq!((adopted.since, &*adopted.nonce), (Since::Proven, "dan"));
    });
}

/// A group whose reign is known, and a lock that all servers have.
fn group_with_lock(program: &ServerProgram) -> (Servers, Marker) {
    let servers = group(program, 2);
    let mut ann = Connection::to(&servers[0], "ann");
    ann.marker("greet");
    let marker = ann.marker("prove");
    ann.client.command(&["SET", "lock", "ann"]);
    for replica in &servers[1..] {
        assert!(eventually(LIMIT, || has_all(replica, &servers[0])));
    }
    (servers, marker)
}

/// Waits until a server has been up for long enough, and for what it proves then.
#[track_caller]
fn expect(wanted: Testimony, server: &Server, master: &Server, marker: &Marker) {
    assert!(eventually(LIMIT, || history(server).uptime > Duration::from_secs(1)));
    let said = [history(server), history(master)];
    let proven = testimony(server, master, marker);
    assert_eq!(proven, wanted, "{said:?} {marker:?}");
}

#[test]
fn a_reign_is_proven_by_servers_that_were_continued() {
    on_each_server(|program| {
        let (servers, before) = group_with_lock(program);
        let [old, new, other] = [&servers[0], &servers[1], &servers[2]];
        promote(new);
        follow(other, new);
        let mut bob = Connection::to(new, "bob");
        let marker = bob.marker("greet");
        let former = marker.former.clone().unwrap();
        assert_eq!([former.id, former.run_id], [before.id, before.run_id]);
        expect(Testimony::Own, new, new, &marker);
        expect(Testimony::Own, other, new, &marker);
        expect(Testimony::Nothing, old, new, &marker);
        // Its master, if it has nothing more.
        follow(old, new);
        expect(Testimony::Whole, old, new, &marker);
        assert_eq!(bob.marker("prove").since, Since::Proven);
    });
}

#[test]
fn a_server_that_had_more_is_no_witness() {
    on_each_server(|program| {
        let (servers, _) = group_with_lock(program);
        let [old, new, other] = [&servers[0], &servers[1], &servers[2]];
        // It asks a server that is not there.
        new.command(&["REPLICAOF", "127.0.0.1", "1"]);
        old.command(&["SET", "later", "ann"]);
        assert!(eventually(LIMIT, || has_all(other, old)));
        promote(new);
        follow(other, new);
        let marker = Connection::to(new, "bob").marker("greet");
        assert!(marker.former.is_some());
        expect(Testimony::Own, new, new, &marker);
        expect(Testimony::Nothing, other, new, &marker);
        follow(old, new);
        expect(Testimony::Nothing, old, new, &marker);
        assert_eq!(other.command(&["GET", "later"]), Value::Null);
    });
}

/// It names the reign before, has its marker, and not the lock that it had acknowledged.
#[test]
fn a_server_that_restarts_from_an_old_copy_is_no_witness() {
    on_each_server(|program| {
        let mut servers = group(program, 2);
        let mut ann = Connection::to(&servers[0], "ann");
        ann.marker("greet");
        ann.marker("prove");
        assert!(eventually(LIMIT, || has_all(&servers[1], &servers[0])));
        assert_eq!(servers[1].command(&["SAVE"]), Value::ok());
        ann.client.command(&["SET", "lock", "ann"]);
        assert!(eventually(LIMIT, || has_all(&servers[1], &servers[0])));
        servers[1].kill();
        servers[1].restart();
        promote(&servers[1]);
        let marker = Connection::to(&servers[1], "bob").marker("greet");
        assert_eq!(servers[1].command(&["GET", "lock"]), Value::Null);
        let said = history(&servers[1]);
        let no_time = Duration::from_secs(60);
        let testimony = Testimony::of(&said, &said, &marker, no_time, Duration::ZERO);
        assert_eq!(testimony, Testimony::Nothing, "{said:?}");
        if program.agrees_with() >= (7, 0) {
            // Nothing but its uptime tells it.
            let uptime = Duration::MAX;
            let old = History { uptime, ..said };
            let testimony = Testimony::of(&old, &old, &marker, no_time, Duration::ZERO);
            assert_eq!(testimony, Testimony::Own, "{old:?} {marker:?}");
        }
    });
}

/// How servers take a copy: those that know a way take it.
const WAYS: [&str; 4] = ["disabled", "on-empty-db", "swapdb", "flush-before-load"];

/// A group whose second server was copying everything when its master died. `None` where it does
/// not know this way, or a copy cannot be made slow.
fn broken_off(program: &ServerProgram, way: &str) -> Option<Servers> {
    let (mut servers, _) = group_with_lock(program);
    let [old, replica] = [&servers[0], &servers[1]];
    let set = |server: &Server, name, value| {
        server.command(&["CONFIG", "SET", name, value]) == Value::ok()
    };
    let is_known = set(replica, "repl-diskless-load", way)
        && set(old, "rdb-key-save-delay", "20000")
        && set(old, "repl-diskless-sync", "yes")
        && set(old, "repl-backlog-size", "16384");
    if !is_known {
        return None;
    }
    // More than the backlog holds is written without it.
    replica.command(&["REPLICAOF", "127.0.0.1", "1"]);
    let value = "x".repeat(2_000);
    for number in 0..200 {
        old.command(&["SET", &format!("key {number}"), &value]);
    }
    let port = old.port().to_string();
    replica.command(&["REPLICAOF", "127.0.0.1", &port]);
    assert!(eventually(LIMIT, || info(
        replica,
        "master_sync_in_progress"
    ) == "1"));
    // Some read all of it before they load it: then nothing of it is there.
    let loads = || {
        let said = replica.command(&["INFO", "persistence"]);
        let is = |name| said.field(name).is_some_and(|it| it == "1");
        is("loading") || is("async_loading")
    };
    eventually(Duration::from_secs(1), loads);
    servers[0].kill();
    Some(servers)
}

/// Whatever remains of a copy that was broken off, it is not the marker without the locks.
#[test]
fn a_copy_that_was_broken_off_leaves_no_marker_without_its_locks() {
    on_each_server(|program| {
        for way in WAYS {
            let Some(servers) = broken_off(program, way) else {
                continue;
            };
            assert!(eventually(LIMIT, || {
                servers[1].command(&["REPLICAOF", "NO", "ONE"]) == Value::ok()
            }));
            let lock = servers[1].command(&["GET", "lock"]);
            let marker = servers[1].command(&["HMGET", MARKER, "id"]);
            let is_marked = marker != Value::Array(vec![Value::Null]);
            assert_eq!(is_marked, lock != Value::Null, "{way}");
        }
    });
}

/// It is continued by the next master as long as it has kept its data, and copies everything
/// otherwise: without the locks of before, it would get the marker that says that none is missing.
#[test]
fn a_server_whose_copy_was_broken_off_gets_all_locks_from_the_next_master() {
    on_each_server(|program| {
        for way in WAYS {
            let Some(servers) = broken_off(program, way) else {
                continue;
            };
            let [replica, new] = [&servers[1], &servers[2]];
            promote(new);
            Connection::to(new, "bob").marker("greet");
            let port = new.port().to_string();
            assert!(eventually(LIMIT, || {
                replica.command(&["REPLICAOF", "127.0.0.1", &port]) == Value::ok()
            }));
            assert!(eventually(LIMIT, || info(replica, "master_link_status") == "up"));
            assert_eq!(replica.command(&["GET", "lock"]).text(), "ann", "{way}");
        }
    });
}
