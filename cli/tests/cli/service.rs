//! `--notify`: what systemd is told of a service of `Type=notify`. The tests are systemd here.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::program::{Running, end, redlatch};
use rustix::process::Signal;
use support::locks::{LIMIT, LONG, all_nodes_client, holders, take};
use support::program::in_memory;
use support::servers::Servers;
use support::waiters::{await_keys, await_queued};

/// The next message.
fn next(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 1000];
    socket.set_read_timeout(Some(LIMIT)).expect("a limit");
    let length = socket.recv(&mut bytes).expect("a message");
    String::from_utf8(bytes[..length].to_vec()).expect("text")
}

fn is_silent(socket: &UnixDatagram) -> bool {
    socket.set_nonblocking(true).expect("it can be set");
    let silent = socket.recv(&mut [0; 1000]).is_err();
    socket.set_nonblocking(false).expect("it can be set");
    silent
}

#[test]
fn a_service_is_ready_when_the_lock_is_held_and_not_before() {
    let servers = Servers::start(3);
    let folder = in_memory();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    let arguments = [
        "run",
        "name",
        "--notify",
        "-c",
        "echo \"[$NOTIFY_SOCKET]\"; cat",
    ];
    let mut command = redlatch(&servers, &arguments);
    let mut running = Running::start(command.env("NOTIFY_SOCKET", &path).stdin(Stdio::piped()));
    await_queued(&servers, "name", 1);
    assert_eq!(next(&socket), "STATUS=waiting for the lock name");
    assert!(is_silent(&socket));
    drop(held);
    assert_eq!(next(&socket), "READY=1\nSTATUS=holding the lock name");
    assert_eq!(holders(&servers, "name"), 3);
    running.await_line("[]");
    drop(running.0.stdin.take());
    assert_eq!(next(&socket), "STOPPING=1\nSTATUS=releasing the lock name");
    assert_eq!(running.end().code, 0);
}

/// Whoever holds a lock by `redlatch lock` is told too, also at an address without a file.
#[cfg(target_os = "linux")]
#[test]
fn a_lock_until_a_signal_is_told_at_an_abstract_address() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    let servers = Servers::start(1);
    let name = format!("redlatch-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("an address");
    let socket = UnixDatagram::bind_addr(&address).expect("a socket");
    let mut command = redlatch(
        &servers,
        &["lock", "a", "--also", "b", "--until-signal", "--notify"],
    );
    let running = Running::start(command.env("NOTIFY_SOCKET", format!("@{name}")));
    assert_eq!(next(&socket), "STATUS=waiting for the lock a, b");
    assert_eq!(next(&socket), "READY=1\nSTATUS=holding the lock a, b");
    running.signal(Signal::TERM);
    assert_eq!(next(&socket), "STOPPING=1\nSTATUS=releasing the lock a, b");
    assert_eq!(running.end().code, 0);
    await_keys(&servers, &[]);
}

#[test]
fn nothing_is_told_without_the_option_and_a_socket_that_is_gone_is_a_warning() {
    let servers = Servers::start(1);
    let folder = in_memory();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    let path = path.to_str().expect("text");
    let run = |more: &[&str], socket: &str| {
        let arguments = [&["run", "name"], more, &["-c", "echo $NOTIFY_SOCKET"]].concat();
        end(redlatch(&servers, &arguments).env("NOTIFY_SOCKET", socket))
    };
    // The command may tell systemd itself.
    assert_eq!(run(&[], path).stdout, format!("{path}\n"));
    assert!(is_silent(&socket));
    for gone in ["/nowhere/notify", "@nobody-listens", "a\u{1}"] {
        let ended = run(&["--notify"], gone);
        assert_eq!((ended.code, &*ended.stdout), (0, "\n"), "{ended:?}");
        assert!(
            ended
                .stderr
                .starts_with("redlatch: warning: --notify: NOTIFY_SOCKET: ")
        );
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
    let ended =
        end(redlatch(&servers, &["run", "name", "--notify", "true"]).env_remove("NOTIFY_SOCKET"));
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
}

/// Fills the queue of the socket at this path. Returns how many messages that took.
fn fill(path: &Path) -> usize {
    let sender = UnixDatagram::unbound().expect("a socket");
    sender.set_nonblocking(true).expect("it can be set");
    (0..)
        .take_while(|_| sender.send_to(b"full", path).is_ok())
        .count()
}

#[test]
fn a_full_queue_delays_nothing_and_what_was_not_told_is_told_later() {
    let servers = Servers::start(1);
    let folder = in_memory();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    let count = fill(&path);
    let run = |more: &[&str]| {
        let arguments = [&["run", "name"], more, &["true"]].concat();
        let start = Instant::now();
        let ended = end(redlatch(&servers, &arguments).env("NOTIFY_SOCKET", &path));
        assert_eq!(ended.code, 0, "{ended:?}");
        (start.elapsed(), ended.stderr)
    };
    let (plain, _) = run(&[]);
    let (notifying, stderr) = run(&["--notify"]);
    assert!(
        notifying < plain + Duration::from_millis(900),
        "{notifying:?} and {plain:?}"
    );
    assert_eq!(
        stderr,
        "redlatch: warning: --notify: NOTIFY_SOCKET: its queue is full\n"
    );
    let arguments = ["run", "name", "--notify", "-c", "echo ready; cat"];
    let mut command = redlatch(&servers, &arguments);
    let mut running = Running::start(command.env("NOTIFY_SOCKET", &path).stdin(Stdio::piped()));
    running.await_line("ready");
    for _ in 0..count {
        assert_eq!(next(&socket), "full");
    }
    assert_eq!(next(&socket), "STATUS=waiting for the lock name");
    assert_eq!(next(&socket), "READY=1\nSTATUS=holding the lock name");
    drop(running.0.stdin.take());
    assert_eq!(next(&socket), "STOPPING=1\nSTATUS=releasing the lock name");
    let ended = running.end();
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
}
