//! Options of TCP sockets that let the operating system find out that a peer is gone. They are set
//! once for each connection, when it is made.

use mio::net::TcpStream;
use std::time::Duration;

/// How many probes of an idle connection may be unanswered.
#[cfg(not(any(
    target_os = "openbsd",
    target_os = "haiku",
    target_os = "nto",
    target_os = "redox"
)))]
const PROBES: u32 = 3;

/// How long written bytes may stay unacknowledged before the operating system gives up the
/// connection (`TCP_USER_TIMEOUT`).
///
/// While calls are in progress, the client itself gives up a connection that leaves a request
/// unanswered. This is for the time when there is no call: the next one finds the dead connection
/// closed. It also bounds how late a command can arrive on a connection that was given up: after a
/// minute, the default of `max_ttl`, such a command is of no use any more. The operating system's
/// own limit is about 15 minutes.
#[cfg(any(target_os = "linux", target_os = "android"))]
const USER_TIMEOUT_MS: u32 = 60_000;

/// Sets the options of a socket: the peer is probed when the connection has been idle for
/// `keepalive`, or never. An option that the operating system refuses is left as it is: the
/// connection works without it.
pub(super) fn set(stream: &TcpStream, keepalive: Option<Duration>) {
    if let Some(idle) = keepalive {
        let _ = set_keepalive(stream, idle);
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, USER_TIMEOUT_MS);
}

/// The pause between two probes: with three of them, a peer that is gone is found out within less
/// than twice the idle time.
#[cfg(not(any(
    target_os = "openbsd",
    target_os = "haiku",
    target_os = "nto",
    target_os = "redox"
)))]
fn interval(idle: Duration) -> Duration {
    Duration::from_secs((idle.as_secs() / 4).max(1))
}

#[cfg(all(
    unix,
    not(any(target_os = "openbsd", target_os = "haiku", target_os = "nto", target_os = "redox"))
))]
fn set_keepalive(stream: &TcpStream, idle: Duration) -> std::io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_tcp_keepidle(stream, idle)?;
    sockopt::set_tcp_keepintvl(stream, interval(idle))?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    Ok(sockopt::set_socket_keepalive(stream, true)?)
}

/// Here the times are those of the whole system.
#[cfg(any(target_os = "openbsd", target_os = "haiku", target_os = "nto", target_os = "redox"))]
fn set_keepalive(stream: &TcpStream, _: Duration) -> std::io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_keepalive(stream, true)?)
}

#[cfg(windows)]
fn set_keepalive(stream: &TcpStream, idle: Duration) -> std::io::Result<()> {
    let keepalive = socket2::TcpKeepalive::new().with_time(idle);
    let keepalive = keepalive.with_interval(interval(idle)).with_retries(PROBES);
    socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::net::sockopt;
    use std::net::TcpListener;

    fn connected() -> (TcpListener, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let stream = std::net::TcpStream::connect(listener.local_addr().expect("it has one"));
        (listener, TcpStream::from_std(stream.expect("it listens")))
    }

    #[test]
    fn the_socket_has_the_options_that_were_set() {
        let (_listener, stream) = connected();
        let minute = Duration::from_secs(60);
        set(&stream, Some(minute));
        assert!(sockopt::socket_keepalive(&stream).expect("Linux has it"));
        assert_eq!(sockopt::tcp_keepidle(&stream), Ok(minute));
        assert_eq!(sockopt::tcp_keepintvl(&stream), Ok(Duration::from_secs(15)));
        assert_eq!(sockopt::tcp_keepcnt(&stream), Ok(PROBES));
        assert_eq!(sockopt::tcp_user_timeout(&stream), Ok(60_000));
    }

    #[test]
    fn without_probes_only_written_bytes_must_be_acknowledged() {
        let (_listener, stream) = connected();
        set(&stream, None);
        assert!(!sockopt::socket_keepalive(&stream).expect("Linux has it"));
        assert_eq!(sockopt::tcp_user_timeout(&stream), Ok(60_000));
    }

    #[test]
    fn a_short_idle_time_has_an_interval_of_a_second() {
        let (_listener, stream) = connected();
        let second = Duration::from_secs(1);
        set(&stream, Some(second));
        assert_eq!(sockopt::tcp_keepidle(&stream), Ok(second));
        assert_eq!(sockopt::tcp_keepintvl(&stream), Ok(second));
    }
}
