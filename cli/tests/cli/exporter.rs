//! `redlatch exporter`: its metrics, and what its HTTP server bears.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::metrics_page::Metrics;
use super::program::{Running, end, guarded, redlatch};
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, take};
use support::servers::Servers;
use support::waiters::await_queued;

/// How long a test waits for an answer. The exporter gives a client five seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// An exporter of these servers, which looks every second.
pub(crate) struct Exporter {
    pub(crate) address: String,
    pub(crate) running: Running,
}

impl Exporter {
    #[track_caller]
    pub(crate) fn start(servers: &Servers, more: &[&str]) -> Self {
        Self::of(&mut redlatch(
            servers,
            &[&["exporter", "--interval", "1s"], more].concat(),
        ))
    }

    /// With the restart guard.
    #[track_caller]
    pub(crate) fn start_guarded(servers: &Servers) -> Self {
        Self::of(&mut guarded(servers, &["exporter", "--interval", "1s"]))
    }

    #[track_caller]
    fn of(command: &mut Command) -> Self {
        let mut running = Running::start(command.args(["--listen", "127.0.0.1:0"]));
        let line = running.next_line();
        let url = line.trim_end().strip_prefix("http://");
        let address = url
            .and_then(|it| it.strip_suffix("/metrics"))
            .expect("its URL")
            .to_owned();
        Self { address, running }
    }

    /// The text of its metrics.
    #[track_caller]
    pub(crate) fn page(&self) -> String {
        self.get("/metrics").1
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout can be set");
        stream
    }

    /// The answer to this request, until the connection is closed.
    #[track_caller]
    fn answer(&self, request: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_ref()).expect("it is read");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    }

    #[track_caller]
    fn get(&self, path: &str) -> (String, String) {
        let text = self.answer(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        (head.to_owned(), body.to_owned())
    }

    #[track_caller]
    pub(crate) fn metrics(&self) -> Metrics {
        let (head, body) = self.get("/metrics");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(
            head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())),
            "{head}"
        );
        Metrics::parse(&body)
    }
}

/// The value of this metric of the lock `orders:1`.
fn of_lock(seen: &Metrics, name: &str) -> Option<f64> {
    seen.value(&format!("redlatch_lock_{name}{{lock=\"orders:1\"}}"))
}

#[test]
fn nodes_are_metrics() {
    let servers = Servers::start(3);
    let seen = Exporter::start(&servers, &["--pattern", "orders:*"]).metrics();
    for url in servers.urls() {
        let of_node = |name: &str| seen.value(&format!("redlatch_node_{name}{{node=\"{url}/0\"}}"));
        assert_eq!(of_node("up"), Some(1.0), "{seen:?}");
        assert_eq!(of_node("quarantine_seconds"), Some(0.0), "{seen:?}");
        assert!(of_node("round_trip_seconds") > Some(0.0), "{seen:?}");
        assert!(of_node("memory_used_bytes") > Some(10_000.0), "{seen:?}");
        assert!(
            of_node("clock_offset_seconds").is_some_and(|it| it.abs() < 5.0),
            "{seen:?}"
        );
        assert!(of_node("warnings") >= Some(1.0), "it forgets: {seen:?}");
        assert_eq!(
            of_node("votes"),
            None,
            "the nodes keep no registers: {seen:?}"
        );
    }
    let forgets = format!(
        "redlatch_node_warning{{node=\"{}/0\",warning=\"forgets\"}}",
        servers.urls()[0]
    );
    assert_eq!(seen.value(&forgets), Some(1.0), "{seen:?}");
    assert_eq!(seen.value("redlatch_nodes_needed"), Some(2.0));
    assert_eq!(seen.value("redlatch_locks_left_out"), Some(0.0));
}

#[test]
fn the_locks_that_match_are_metrics() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let held = take(&client, "orders:1", LONG);
    let odd = take(&client, b"orders:\"\\\n\xff", LONG);
    let other = take(&client, "other", LONG);
    let waiter = Running::start(&mut redlatch(&servers, &["run", "orders:1", "--", "true"]));
    await_queued(&servers, "orders:1", 1);
    let exporter = Exporter::start(&servers, &["--pattern", "orders:*", "--pattern", "order*"]);
    let seen = exporter.metrics();
    assert_eq!(of_lock(&seen, "held"), Some(1.0), "{seen:?}");
    assert_eq!(of_lock(&seen, "holders"), Some(1.0), "{seen:?}");
    assert_eq!(of_lock(&seen, "waiters"), Some(1.0), "{seen:?}");
    assert!(
        of_lock(&seen, "longest_wait_seconds") > Some(0.0),
        "{seen:?}"
    );
    let left = of_lock(&seen, "remaining_seconds").expect("it is held");
    assert!(left > 0.0 && left <= LONG.as_secs_f64(), "{left}");
    assert_eq!(
        seen.sum("redlatch_lock_held"),
        2.0,
        "only those that match, once each: {seen:?}"
    );
    // The name as the tables show it, and then with the escapes of a label.
    let odd_series = "redlatch_lock_held{lock=\"orders:\\\"\\\\\\\\\\\\n\\\\xff\"}";
    assert_eq!(seen.value(odd_series), Some(1.0), "{seen:?}");

    let age = || of_lock(&exporter.metrics(), "holder_age_seconds");
    assert!(
        eventually(LIMIT, || age() > Some(2.0)),
        "it grows while the grant is the same"
    );
    drop(held);
    assert_eq!(waiter.end().code, 0);
    assert!(eventually(LIMIT, || of_lock(&exporter.metrics(), "held").is_none()));
    let again = take(&client, "orders:1", LONG);
    assert!(eventually(LIMIT, || age().is_some()));
    assert!(
        age() < Some(LIMIT.as_secs_f64() / 2.0),
        "another grant: {:?}",
        age()
    );
    drop((odd, other, again));
}

#[test]
fn locks_are_known_while_a_majority_answers() {
    let mut servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let held = take(&client, "orders:1", LONG);
    let exporter = Exporter::start(&servers, &["--pattern", "orders:*"]);
    let down = format!("redlatch_node_up{{node=\"{}/0\"}}", servers.urls()[0]);
    servers[0].kill();
    assert!(eventually(LIMIT, || exporter.metrics().value(&down) == Some(0.0)));
    let seen = exporter.metrics();
    assert_eq!(seen.value("redlatch_locks_known"), Some(1.0));
    assert_eq!(of_lock(&seen, "held"), Some(1.0), "{seen:?}");
    servers[1].kill();
    let is_unknown = || exporter.metrics().value("redlatch_locks_known") == Some(0.0);
    assert!(eventually(LIMIT, is_unknown), "a majority is down");
    assert_eq!(
        exporter.metrics().sum("redlatch_lock_held"),
        0.0,
        "nothing old is shown"
    );
    drop(held);
}

#[test]
fn the_number_of_series_has_a_limit() {
    let servers = Servers::start(1);
    let client = all_nodes_client(servers.urls());
    let names = (0..9)
        .map(|number| format!("lock:{number}"))
        .chain(["lock:".to_owned() + &"n".repeat(300)]);
    let held: Vec<_> = names.map(|name| take(&client, name, LONG)).collect();
    let exporter = Exporter::start(&servers, &["--pattern", "*", "--max-locks", "4"]);
    let seen = exporter.metrics();
    assert_eq!(seen.sum("redlatch_lock_held"), 4.0, "{seen:?}");
    assert_eq!(
        seen.value("redlatch_lock_held{lock=\"lock:3\"}"),
        Some(1.0),
        "the first by name"
    );
    assert_eq!(seen.value("redlatch_locks_left_out"), Some(6.0), "{seen:?}");
    let nodes_only = Exporter::start(&servers, &[]).metrics();
    assert_eq!(nodes_only.sum("redlatch_lock_held"), 0.0, "{nodes_only:?}");
    assert_eq!(
        nodes_only.value("redlatch_locks_known"),
        None,
        "{nodes_only:?}"
    );
    drop(held);
}

#[test]
fn a_scrape_asks_the_nodes_nothing() {
    let servers = Servers::start(1);
    let arguments = ["exporter", "--pattern", "*", "--interval", "1h"];
    let exporter = Exporter::of(&mut redlatch(&servers, &arguments));
    let count =
        || support::locks::calls(&servers[0], "scan") + support::locks::calls(&servers[0], "ping");
    let before = count();
    assert!(before > 0, "it has looked once");
    (0..20).for_each(|_| drop(exporter.metrics()));
    assert_eq!(count(), before);
}

#[test]
fn it_answers_what_it_knows_and_refuses_the_rest() {
    let servers = Servers::start(1);
    let exporter = Exporter::start(&servers, &[]);
    let (head, body) = exporter.get("/");
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html"),
        "{head}"
    );
    assert!(body.contains("href=\"/metrics\""), "{body}");
    let (head, _) = exporter.get("/metrics?name=value");
    assert!(
        head.contains("\r\nContent-Type: text/plain; version=0.0.4"),
        "{head}"
    );
    let open =
        "GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text;version=1.0.0\r\n\r\n";
    assert!(
        exporter
            .answer(open)
            .contains("\r\nContent-Type: application/openmetrics-text")
    );
    let head = exporter.answer("HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    let long_header = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let many_headers = format!("GET / HTTP/1.1\r\n{}\r\n", "X: x\r\n".repeat(100));
    let body = format!(
        "POST /metrics HTTP/1.1\r\nContent-Length: 100000\r\n\r\n{}",
        "b".repeat(100_000)
    );
    for (request, status) in [
        ("GET /other HTTP/1.1\r\n\r\n", "404 Not Found"),
        ("GET /metrics/ HTTP/1.1\r\n\r\n", "404 Not Found"),
        (&body, "405 Method Not Allowed"),
        ("\x16\x03\x01\x02\r\n\r\n", "400 Bad Request"),
        ("GET / HTTP/3.9\r\n\r\n", "400 Bad Request"),
        (&long_header, "431 Request Header Fields Too Large"),
        (&many_headers, "431 Request Header Fields Too Large"),
    ] {
        let answer = exporter.answer(request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{answer:?}"
        );
    }
    assert_eq!(
        exporter.metrics().sum("redlatch_node_up"),
        1.0,
        "it goes on"
    );
}

#[test]
fn slow_clients_neither_hang_it_nor_make_it_grow() {
    let servers = Servers::start(1);
    let exporter = Exporter::start(&servers, &[]);
    // Some say nothing, some send a byte now and then, and some read nothing.
    let start = Instant::now();
    let slow: Vec<TcpStream> = (0..100).map(|_| exporter.connect()).collect();
    let trickle = |mut stream: &TcpStream| while_open(|| stream.write_all(b"G"));
    thread::scope(|scope| {
        slow.iter()
            .step_by(20)
            .for_each(|stream| drop(scope.spawn(move || trickle(stream))));
        // There are limits for the number of connections and for the time of each.
        let tasks = format!("/proc/{}/task", exporter.running.0.id());
        let threads = std::fs::read_dir(&tasks).map_or(0, Iterator::count);
        assert!(threads < 50, "{threads} threads");
        for stream in &slow {
            let _ = (&mut &*stream).read_to_end(&mut Vec::new());
        }
    });
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    drop(slow);
    assert!(eventually(LIMIT, || exporter.is_answering()));
}

/// Does this every tenth of a second until it fails, as it must.
fn while_open(mut act: impl FnMut() -> std::io::Result<()>) {
    let is_closed = eventually(PATIENCE, || {
        thread::sleep(Duration::from_millis(100));
        act().is_err_and(|error| error.kind() != ErrorKind::Interrupted)
    });
    assert!(is_closed, "it is never closed");
}

impl Exporter {
    fn is_answering(&self) -> bool {
        let mut stream = self.connect();
        let mut text = String::new();
        let sent = stream.write_all(b"GET / HTTP/1.1\r\n\r\n");
        let _ = stream.shutdown(Shutdown::Write);
        sent.is_ok() && stream.read_to_string(&mut text).is_ok() && text.contains(" 200 OK\r\n")
    }
}

#[test]
fn what_it_cannot_do_is_said() {
    let servers = Servers::start(1);
    let exporter = Exporter::start(&servers, &[]);
    let taken = end(&mut redlatch(
        &servers,
        &["exporter", "--listen", &exporter.address],
    ));
    assert_eq!(taken.code, 70);
    assert!(
        taken
            .stderr
            .contains(&format!("cannot listen at {}: ", exporter.address))
    );
    let hasty = end(&mut redlatch(&servers, &["exporter", "--interval", "10ms"]));
    assert_eq!(
        (hasty.code, &*hasty.stderr),
        (2, "redlatch: --interval must be 1s or longer\n")
    );
    assert_eq!(
        end(&mut redlatch(&servers, &["exporter", "--listen", "9785"])).code,
        2
    );
}
