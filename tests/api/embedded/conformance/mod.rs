//! Compares the model of a node with a real redis-server, reply by reply and byte by byte.
//!
//! Every command goes to a redis-server, to the model directly, and to the model behind its socket.
//! `equivalence.rs` masks values that must differ (a client's id, the fields of `INFO`); all other
//! bytes must be equal. The commands are those of a handwritten table, and random ones from a seed.

mod equivalence;
mod lua;
mod pushes;
mod random;
mod rig;
mod table;
mod versions;

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redlatch::embedded::Nodes;
use rig::{Rig, Sequence};
use support::cli::{Client, Value, encode};
use support::eventually;
use support::redis::Server;
use support::skip::skip;

#[test]
fn every_command_of_the_table_has_the_same_reply_in_resp2() {
    let rig = Rig::start(None);
    for (name, lines) in table::SEQUENCES {
        rig.sequence(name).run(lines);
    }
}

#[test]
fn every_command_of_the_table_has_the_same_reply_in_resp3() {
    support::needs!(Resp3);
    let rig = Rig::start(None);
    for (name, lines) in table::SEQUENCES {
        let mut sequence = rig.sequence(name);
        sequence.run("HELLO 3");
        sequence.run(lines);
    }
}

#[test]
fn every_command_of_the_authentication_table_has_the_same_reply() {
    support::needs!(Users);
    let rig = Rig::start(Some("secret"));
    for (name, lines) in table::WITH_PASSWORD {
        rig.sequence(name).run(lines);
    }
}

fn seed() -> u64 {
    let seed = match std::env::var("REDLATCH_SEED") {
        Ok(seed) => seed.parse().expect("REDLATCH_SEED is a number"),
        Err(_) => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("1970 is over")
            .as_nanos() as u64,
    };
    eprintln!("REDLATCH_SEED={seed}");
    seed
}

#[test]
fn random_commands_have_the_same_replies() {
    let seed = seed();
    let rig = Rig::start(None);
    for (protocol, seed) in [("2", seed), ("3", seed.wrapping_add(1))] {
        let mut sequence = rig.sequence(&format!("random commands, seed {seed}"));
        sequence.run(&format!("HELLO {protocol}"));
        let mut generator = random::Generator::new(seed);
        for _ in 0..4000 {
            let (words, wait) = generator.command();
            sequence.compare(&words);
            if wait {
                sequence.wait();
            }
        }
    }
}

#[test]
fn random_shares_leave_the_same_keys() {
    support::needs!(Shares);
    let seed = seed();
    // Most of the time they wait for keys to expire.
    thread::scope(|scope| {
        (0..3).for_each(|more| drop(scope.spawn(move || compare_shares(seed.wrapping_add(more)))));
    });
}

/// After each command, all keys of the lock are compared too.
fn compare_shares(seed: u64) {
    let rig = Rig::start(None);
    let mut sequence = rig.sequence(&format!("random shares, seed {seed}"));
    let mut generator = random::Generator::new(seed);
    let questions = random::Generator::sharing_questions();
    for _ in 0..250 * support::times() {
        let (words, wait) = generator.sharing_command();
        ["k1", "k2"]
            .iter()
            .for_each(|key| sequence.wait_out(&format!("{key}:redlatch:floor")));
        sequence.compare(&words);
        if wait {
            sequence.wait();
        }
        questions.iter().for_each(|words| sequence.ask(words));
    }
}

/// `sharing.lua` looks at 32 waiters. Some have no entry any more, and some do not wait.
#[test]
fn as_many_waiters_are_called() {
    support::needs!(Shares);
    let rig = Rig::start(None);
    for lease in ["{lease-s0}", "{lease-s2}", "{lease-s20}"] {
        let mut sequence = rig.sequence(lease);
        sequence.run("EVAL {share} 1 k a 900000 40 0 {empty} 0 0 1");
        let name = |waiter: u32| format!("w{waiter:-<19}");
        for waiter in 10..50 {
            let name = name(waiter);
            sequence.run(&format!("EVAL {{queue}} 1 k {name} 0 x {lease} 900000 2"));
        }
        let ask = |sequence: &mut Sequence| {
            sequence.run("EVAL {inspect} 1 k 3");
            for waiter in 10..50 {
                sequence.run(&format!("PTTL k:redlatch:lease:{}", name(waiter)));
            }
            sequence.run("ZRANGE k:redlatch:called 0 -1");
        };
        for waiter in [10, 42, 41, 24, 11] {
            let front = name(waiter);
            sequence.run(&format!(
                "EVAL {{share}} 1 k v{waiter} 900000 9 0 {front} 0 0 4"
            ));
            ask(&mut sequence);
            for gone in [13, 16, 40] {
                sequence.run(&format!("DEL k:redlatch:lease:{}", name(gone)));
            }
            sequence.run(&format!(
                "SET k:redlatch:lease:{} {{empty}} PX 900000",
                name(18)
            ));
        }
        for token in ["a", "v10", "v42", "v41"] {
            let last = name(49);
            sequence.run(&format!(
                "EVAL {{release_shared}} 1 k {token} 9 {last} {{empty}} 5"
            ));
            ask(&mut sequence);
        }
    }
}

/// `TTL` rounds to the nearest second, so the replies differ if one server gets the command just
/// before the middle of a second and the other just after. One equal pair of replies is enough.
#[test]
fn seconds_are_rounded_as_in_redis() {
    let server = Server::start(&[]);
    let nodes = Nodes::start(1).expect("a node");
    let mut sides = [
        server.client(),
        Client::connect(nodes.port(0)).expect("a connection"),
    ];
    for millis in [1, 400, 600, 1400, 1600, 10_400, 10_600] {
        let agree = eventually(Duration::from_secs(20), || {
            let replies = sides.each_mut().map(|side| {
                side.command(&["SET", "k", "v", "PX", &millis.to_string()]);
                side.command(&["TTL", "k"])
            });
            replies[0] == replies[1]
        });
        assert!(agree, "TTL after PX {millis} is never the same");
    }
}

/// In the model, a key exists until the end of its last millisecond (`PTTL` is 0 then). Two servers
/// are never in step to the millisecond, so this checks only the real one.
#[test]
fn in_redis_too_a_key_exists_until_the_end_of_its_last_millisecond() {
    const QUESTIONS: usize = 5_000;
    let server = Server::start(&[]);
    let mut client = server.client();
    let seen_at_zero = eventually(Duration::from_secs(20), || {
        client.command(&["SET", "k", "v", "PX", "1"]);
        client
            .send(&encode(&["PTTL", "k"]).repeat(QUESTIONS))
            .expect("the server reads");
        let replies: Vec<_> = (0..QUESTIONS)
            .map(|_| client.reply().expect("a reply"))
            .collect();
        replies.contains(&b":0\r\n".to_vec())
    });
    assert!(
        seen_at_zero,
        "no key was ever found in the millisecond in which its time ends"
    );
}

#[test]
fn an_inline_command_has_the_same_reply() {
    let server = Server::start(&[]);
    let nodes = Nodes::start(1).expect("a node");
    let mut sides = [
        server.client(),
        Client::connect(nodes.port(0)).expect("a connection"),
    ];
    let lines: [&[u8]; 6] = [
        b"PING\r\n",
        b"ping\n",
        b"\r\nSET a  b PX 100000\r\n",
        b"*0\r\nGET a\r\n",
        b"*-1\r\nGET\r\n",
        b"GET / HTTP/1.1\r\n",
    ];
    for line in lines {
        let replies = sides
            .each_mut()
            .map(|side| side.try_raw(line).expect("a reply"));
        assert_eq!(
            replies[0].escape_ascii().to_string(),
            replies[1].escape_ascii().to_string()
        );
    }
    for side in &mut sides {
        assert_eq!(side.command(&["QUIT"]), Value::ok());
        assert!(side.try_command(&["PING"]).is_err());
    }
}

/// The output of the real redis-cli for the server on `port`.
#[track_caller]
fn redis_cli(port: u16, password: Option<&str>, args: &[&str]) -> String {
    let mut command = Command::new("redis-cli");
    command.args(["-h", "127.0.0.1", "-p", &port.to_string()]);
    if let Some(password) = password {
        command.env("REDISCLI_AUTH", password);
    }
    let output = command.args(args).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("redis-cli cannot be run: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.strip_suffix('\n').unwrap_or(&text).to_owned()
}

#[test]
fn redis_cli_can_use_an_embedded_node() {
    if Command::new("redis-cli").arg("--version").output().is_err() {
        return skip("REDLATCH_REQUIRE_REDIS_CLI", "redis-cli is not on PATH");
    }
    let nodes = Nodes::builder()
        .password("secret")
        .start(1)
        .expect("a node");
    let cli = |args: &[&str]| redis_cli(nodes.port(0), Some("secret"), args);
    assert_eq!(cli(&["SET", "a", "b", "NX", "PX", "10000"]), "OK");
    assert_eq!(cli(&["SET", "a", "c", "NX", "PX", "10000"]), "");
    assert_eq!(cli(&["GET", "a"]), "b");
    assert_eq!(cli(&["PING"]), "PONG");
    assert_eq!(cli(&["-3", "HELLO"]).lines().next(), Some("server redis"));
    assert!(
        cli(&["INFO"])
            .lines()
            .any(|line| line.trim_end() == "role:master")
    );
    assert!(redis_cli(nodes.port(0), None, &["PING"]).starts_with("NOAUTH"));
}
