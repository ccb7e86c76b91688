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

/// What to set on each TCP socket. `None` leaves an option as the operating system has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketOptions {
    /// How long a connection is idle before the peer is probed.
    pub(crate) keepalive: Option<Duration>,
    /// How long written bytes may stay unacknowledged.
    pub(crate) user_timeout: Option<Duration>,
}

impl SocketOptions {
    /// Sets the options. One that the operating system refuses is left as it is: the connection
    /// works without it.
    pub(super) fn set_on(&self, stream: &TcpStream) {
        if let Some(idle) = self.keepalive {
            let _ = set_keepalive(stream, idle);
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(limit) = self.user_timeout {
            let millis = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
            let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, millis);
        }
    }
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
        let (minute, half) = (Duration::from_secs(60), Duration::from_secs(30));
        SocketOptions { keepalive: Some(minute), user_timeout: Some(half) }.set_on(&stream);
        assert!(sockopt::socket_keepalive(&stream).expect("Linux has it"));
        assert_eq!(sockopt::tcp_keepidle(&stream), Ok(minute));
        assert_eq!(sockopt::tcp_keepintvl(&stream), Ok(Duration::from_secs(15)));
        assert_eq!(sockopt::tcp_keepcnt(&stream), Ok(PROBES));
        assert_eq!(sockopt::tcp_user_timeout(&stream), Ok(30_000));
    }

    #[test]
    fn options_that_are_not_wanted_stay_as_they_are() {
        let (_listener, stream) = connected();
        let timeout = sockopt::tcp_user_timeout(&stream);
        SocketOptions::default().set_on(&stream);
        assert!(!sockopt::socket_keepalive(&stream).expect("Linux has it"));
        assert_eq!(sockopt::tcp_user_timeout(&stream), timeout);
    }

    #[test]
    fn a_short_idle_time_has_an_interval_of_a_second() {
        let (_listener, stream) = connected();
        let second = Duration::from_secs(1);
        SocketOptions { keepalive: Some(second), user_timeout: None }.set_on(&stream);
        assert_eq!(sockopt::tcp_keepidle(&stream), Ok(second));
        assert_eq!(sockopt::tcp_keepintvl(&stream), Ok(second));
    }
}
