//! The time of the pure layers, without sockets: decoding, encoding, the engine, and rounds over
//! five sessions in memory. Each measured result is also checked.
//!
//! `cargo bench --bench micro`. Without `--bench`, as in `cargo test --benches`, each runs once.

use redlatch_protocol::engine::{
    Acquire, Acquired, Claim, Command, Drift, Entropy, Input, Node, Removal, Request, Rules, Step,
    Tally, Ttl, Vote, Votes, Wait,
};
use redlatch_protocol::node::command::{Form, encode};
use redlatch_protocol::node::{Conversation, Order, Phase, Rounds, Session, SessionOptions};
use redlatch_protocol::resp::{Reply, decode};
use redlatch_protocol::time::Time;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const NODES: usize = 5;

/// How often each is measured, and for how long each time.
const TURNS: usize = 15;
const TURN: Duration = Duration::from_millis(20);

/// A server's reply to HELLO 3.
const HELLO: &[u8] = b"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n\
    $5\r\nproto\r\n:3\r\n$2\r\nid\r\n:12\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n\
    $6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n";

fn main() {
    let bench = Bench {
        is_real: std::env::args().any(|argument| argument == "--bench"),
    };
    decoding(&bench);
    encoding(&bench);
    acquiring(&bench);
    rounds(&bench);
}

fn decoding(bench: &Bench) {
    type Case = (&'static str, &'static [u8], fn(&Reply<'_>) -> bool);
    let replies: [Case; 4] = [
        ("decode +OK", b"+OK\r\n", |reply| {
            matches!(reply, Reply::Simple(b"OK"))
        }),
        ("decode $-1", b"$-1\r\n", |reply| {
            matches!(reply, Reply::Null)
        }),
        ("decode :1", b":1\r\n", |reply| {
            matches!(reply, Reply::Integer(1))
        }),
        ("decode a HELLO map", HELLO, |reply| {
            matches!(reply, Reply::Map(_))
        }),
    ];
    for (name, bytes, is_right) in replies {
        bench.run(name, || {
            let (reply, used) = decode(black_box(bytes))
                .expect("it is RESP")
                .expect("it is whole");
            assert!(is_right(&reply) && used == bytes.len());
        });
    }
}

fn encoding(bench: &Bench) {
    let request = acquisition(&rules(), &key());
    let mut out = Vec::new();
    bench.run("encode SET", || {
        out.clear();
        encode(black_box(&request), Form::Digest, 12_345, None, &mut out);
        assert!(out.starts_with(b"*6\r\n$3\r\nSET\r\n") && out.ends_with(b"$5\r\n10000\r\n"));
    });
    let Command::Claim(Claim { lock, ttl, .. }) = request.command.clone() else {
        panic!("an attempt begins with that")
    };
    let mut release = request;
    let keep_for = None;
    let waiter = None;
    release.command = Command::Remove(Removal {
        lock,
        ttl,
        keep_for,
        waiter,
        is_awaited: true,
    });
    bench.run("encode EVALSHA", || {
        out.clear();
        encode(black_box(&release), Form::Digest, 12_345, None, &mut out);
        assert!(out.starts_with(b"*6\r\n$7\r\nEVALSHA\r\n$40\r\n"));
    });
}

/// A whole acquisition, with three of five votes.
fn acquiring(bench: &Bench) {
    let rules = rules();
    let key = key();
    let mut tally = Tally::new(NODES);
    (0..3).for_each(|index| assert!(tally.cast(Node::new(index), Vote::Granted)));
    let votes = Votes::new(tally);
    bench.run("engine, acquire", || {
        let (mut acquire, _) = begin(&rules, &key);
        acquire.handle(
            Time::from_millis(1_001),
            Input::Votes(black_box(votes.clone())),
        );
        assert!(matches!(acquire.poll(), Step::Done(Acquired::Held(_))));
    });
}

/// A request to five nodes and their replies, through commands, sessions and rounds.
fn rounds(bench: &Bench) {
    let mut rounds = Rounds::new((0..NODES).map(ready).collect(), false);
    let mut request = acquisition(&rules(), &key());
    let mut now = request.started;
    bench.run("rounds, open and 5 answers", || {
        // The time must advance, or the round would end before it began.
        now = now.after(Duration::from_nanos(1));
        request.deadline = now.after(Duration::from_millis(50));
        rounds.open(now, Order::Round(request.clone()), ());
        for index in 0..NODES {
            let session = rounds.session(Node::new(index));
            let length = session.output().len();
            assert!(length > 0);
            session.wrote(length);
            rounds.received(now, Node::new(index), black_box(b"+OK\r\n"));
        }
        let ((), ended) = rounds.poll().expect("a majority has answered");
        let result = ended.into_round().expect("it was a round");
        assert_eq!(result.votes.tally.granted.len(), 3);
        assert!(rounds.poll().is_none());
    });
}

/// A session with a node that has answered the greeting.
fn ready(index: usize) -> Session {
    let now = Time::from_millis(1_000);
    let mut session = Session::new(SessionOptions::new(&format!("redis://{index}"), 1));
    session.connecting(now, Phase::Connecting);
    session.connected(now);
    let count = session.output().len();
    session.wrote(count);
    session.received(now, HELLO);
    let info = format!("redis_version:7.0.15\r\nrun_id:{index:040}\r\nuptime_in_seconds:1\r\n");
    session.received(now, format!("${}\r\n{info}\r\n", info.len()).as_bytes());
    session
}

fn rules() -> Arc<Rules> {
    let drift = Drift::from_factor(0.01).expect("one per cent is allowed");
    Arc::new(Rules::new(NODES, drift))
}

fn key() -> Arc<[u8]> {
    Arc::from(*b"orders:42")
}

/// An acquisition whose request is about to be sent.
fn begin(rules: &Arc<Rules>, key: &Arc<[u8]>) -> (Acquire, Request) {
    let ttl = Ttl::from_duration(Duration::from_secs(10)).expect("ten seconds are a ttl");
    let mut acquire = Acquire::new(Arc::clone(rules), Arc::clone(key), ttl, Wait::No);
    assert!(matches!(acquire.poll(), Step::Pause(_)));
    let draw = Entropy::from_bytes([7; Entropy::LEN]);
    acquire.handle(Time::from_millis(1_000), Input::Attempt(draw));
    let Step::Send(request) = acquire.poll() else {
        panic!("an attempt begins with a request")
    };
    (acquire, request)
}

fn acquisition(rules: &Arc<Rules>, key: &Arc<[u8]>) -> Request {
    begin(rules, key).1
}

/// The measurement.
struct Bench {
    is_real: bool,
}

impl Bench {
    /// Prints the time of one call: the median of several measurements, and the shortest.
    #[expect(clippy::print_stdout, reason = "it prints the figures")]
    fn run(&self, name: &str, mut call: impl FnMut()) {
        call();
        if !self.is_real {
            return;
        }
        let mut times = Vec::with_capacity(TURNS);
        for _ in 0..TURNS {
            let mut calls = 0_u32;
            let start = Instant::now();
            while start.elapsed() < TURN {
                // A hundred calls at a time, so that reading the clock has little effect.
                (0..100).for_each(|_| call());
                calls += 100;
            }
            times.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(calls));
        }
        times.sort_by(f64::total_cmp);
        let median = times[TURNS / 2];
        let shortest = times[0];
        println!("{name:<28} {median:>8.1} ns   (at best {shortest:.1} ns)");
    }
}
