//! An embedded ensemble stops, restarts, pauses and ends sessions as its documentation says, and
//! replies as a ZooKeeper does.
//!
//! The real server is started by `real`, which knows one server and nothing else.

mod client;
mod client_scripts;
mod conformance;
mod random;
mod real;
mod request;
mod script;
mod znode_scripts;

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use client::{Client, Greeting};
use real::{RealServer, four_letters};
use redlatch::embedded::Ensemble;
use request::{CREATE_CONTAINER, CREATE2, EXISTS, Request, create, delete, read};
use support::eventually;

const LIMIT: Duration = Duration::from_secs(20);

fn connect(ensemble: &Ensemble, timeout_ms: i32) -> Client {
    Client::connect(ensemble.port(), timeout_ms).expect("a running server accepts")
}

/// The same session on another connection.
fn resume(ensemble: &Ensemble, client: &Client) -> Client {
    let session = client.session;
    let password = client.password.clone();
    let greeting = Greeting {
        session,
        password,
        ..Greeting::new(client.timeout_ms)
    };
    Client::greet(ensemble.port(), &greeting).expect("an answer")
}

#[test]
fn it_says_where_it_is_and_what_it_is() {
    let ensemble = Ensemble::start().unwrap();
    assert_eq!(
        ensemble.url(),
        format!("zk://127.0.0.1:{}", ensemble.port())
    );
    let mut client = connect(&ensemble, 10_000);
    client.ask(&create(CREATE2, "/a", 1));
    assert_eq!(ensemble.children("/"), ["a", "zookeeper"]);
    assert_eq!(ensemble.children("/none"), [""; 0]);
    assert_eq!(
        four_letters(ensemble.port(), b"ruok").as_deref(),
        Some("imok")
    );
    let text = four_letters(ensemble.port(), b"srvr").unwrap();
    for line in [
        "Zookeeper version: 3.8.0-redlatch",
        "Zxid: 0x2\n",
        "Mode: standalone\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn session_timeouts_are_granted_as_asked_for_or_within_the_limits() {
    let granted = |ensemble: &Ensemble| {
        [1, 100, 1_234, 60_000, 1_000_000].map(|asked| connect(ensemble, asked).timeout_ms)
    };
    let ensemble = Ensemble::start().unwrap();
    assert_eq!(granted(&ensemble), [100, 100, 1_234, 60_000, 60_000]);
    let builder = Ensemble::builder().tick(Duration::from_millis(100));
    let ensemble = builder.clone().start().unwrap();
    assert_eq!(granted(&ensemble), [200, 200, 1_234, 2_000, 2_000]);
    let limits = Duration::from_millis(1_000)..=Duration::from_millis(2_000);
    let ensemble = builder.session_timeouts(limits).start().unwrap();
    assert_eq!(granted(&ensemble), [1_000, 1_000, 1_234, 2_000, 2_000]);
}

#[test]
fn a_stopped_server_keeps_its_tree_and_its_sessions() {
    let ensemble = Ensemble::start().unwrap();
    let mut client = connect(&ensemble, 300);
    client.ask(&create(CREATE2, "/a", 1));
    ensemble.stop();
    ensemble.stop();
    assert!(client.is_closed());
    let refused = TcpStream::connect(("127.0.0.1", ensemble.port())).map_err(|it| it.kind());
    assert_eq!(refused.err(), Some(ErrorKind::ConnectionRefused));
    // No session ends while it is down, however long that is.
    std::thread::sleep(Duration::from_millis(600));
    // Neither has an effect on a server that is down.
    ensemble.pause();
    ensemble.resume();
    assert_eq!(ensemble.children("/"), ["a", "zookeeper"]);
    ensemble.restart().unwrap();
    let again = resume(&ensemble, &client);
    assert_eq!((again.session, again.timeout_ms), (client.session, 300));
    ensemble.restart().unwrap();
    let gone = || ensemble.children("/") == ["zookeeper"];
    assert!(
        eventually(LIMIT, gone),
        "the session ends when it is silent"
    );
}

#[test]
fn a_paused_server_is_silent_and_goes_on() {
    let ensemble = Ensemble::start().unwrap();
    let mut quick = connect(&ensemble, 100);
    let mut slow = connect(&ensemble, 60_000);
    quick.ask(&create(CREATE2, "/quick", 1));
    ensemble.pause();
    ensemble.pause();
    let sync = Request::Sync("/".to_owned());
    quick.send(&sync).unwrap();
    slow.send(&sync).unwrap();
    slow.set_limit(Duration::from_millis(300));
    let silence = slow.event().unwrap_err().kind();
    assert!(matches!(
        silence,
        ErrorKind::WouldBlock | ErrorKind::TimedOut
    ));
    // Its port accepts, and nobody answers.
    drop(TcpStream::connect(("127.0.0.1", ensemble.port())).unwrap());
    ensemble.resume();
    ensemble.resume();
    slow.set_limit(LIMIT);
    assert!(slow.replies(&sync).1.contains("synced"));
    // The session whose timeout has passed meanwhile has ended first.
    assert_eq!(quick.replies(&sync).1, "closed");
    assert_eq!(ensemble.children("/"), ["zookeeper"]);
    ensemble.pause();
    // Dropping a paused server does not wait for a resume.
}

#[test]
fn sessions_can_be_ended_at_once() {
    let ensemble = Ensemble::start().unwrap();
    let mut one = connect(&ensemble, 60_000);
    let mut other = connect(&ensemble, 60_000);
    one.ask(&create(CREATE2, "/a", 1));
    other.ask(&read(EXISTS, "/a", true));
    ensemble.expire_sessions();
    assert_eq!(ensemble.children("/"), ["zookeeper"]);
    assert!(one.is_closed());
    // It had a session, or not, when the znode was deleted; its connection is closed anyway.
    assert!(other.is_closed() || other.is_closed());
    let gone = resume(&ensemble, &one);
    assert_eq!(
        (gone.session, gone.timeout_ms, gone.password),
        (0, 0, vec![0; 16])
    );
    let mut new = connect(&ensemble, 60_000);
    assert!(new.ask(&create(CREATE2, "/a", 1)).contains("error 0"));
}

/// Ends what is silent, and removes empty containers: on a real server and on ours.
fn things_that_happen_by_themselves(port: u16) {
    let mut watcher = Client::connect(port, 60_000).expect("a session");
    watcher.ask(&create(CREATE_CONTAINER, "/box", 4));
    let (silent, began) = {
        let mut silent = Client::connect(port, 1_000).expect("a session");
        assert!(
            silent
                .ask(&create(CREATE2, "/box/a", 1))
                .contains("error 0")
        );
        (silent, Instant::now())
    };
    assert!(
        watcher
            .ask(&read(EXISTS, "/box/a", true))
            .contains("error 0")
    );
    assert!(
        watcher
            .event()
            .expect("its end")
            .starts_with("event 2 /box/a ")
    );
    let lived = began.elapsed();
    assert!(lived >= Duration::from_millis(900), "{lived:?}");
    drop(silent);
    // It may be gone already.
    let reply = watcher.ask(&read(EXISTS, "/box", true));
    let is_gone = reply.contains("error -101");
    let mut next = || watcher.event().expect("the sweep");
    assert!(is_gone || next().starts_with("event 2 /box "), "{reply}");
    watcher.ask(&Request::Close);
}

#[test]
fn sessions_and_containers_end_by_themselves_as_in_zookeeper() {
    let tick = Duration::from_millis(200);
    let interval = Duration::from_millis(300);
    let ensemble = Ensemble::builder()
        .tick(tick)
        .session_timeouts(2 * tick..=LIMIT)
        .container_interval(interval)
        .start()
        .unwrap();
    things_that_happen_by_themselves(ensemble.port());
    if let Some(real) = RealServer::start(tick, interval) {
        things_that_happen_by_themselves(real.port());
    }
}

#[test]
fn replies_that_a_client_does_not_read_are_not_lost() {
    const REQUESTS: usize = 300;
    let ensemble = Ensemble::start().unwrap();
    let mut client = connect(&ensemble, 60_000);
    client.ask(&create(CREATE2, "/a", 0));
    client.ask(&request::set_data("/a", &[b'x'; 60_000], -1));
    let get = read(request::GET_DATA, "/a", false);
    (0..REQUESTS).for_each(|_| client.send(&get).unwrap());
    // Other clients get replies meanwhile.
    let mut other = connect(&ensemble, 60_000);
    assert!(other.ask(&delete("/none", -1)).contains("error -101"));
    for _ in 0..REQUESTS {
        assert!(client.replies(&get).1.contains("60000 bytes"));
    }
}
