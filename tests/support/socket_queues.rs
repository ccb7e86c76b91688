//! What lies in the kernel's queues of a TCP connection over the loopback.
//!
//! The kernel is asked for one socket (`sock_diag`, which `ss` uses). Its table in `/proc/net/tcp`
//! says the same, but to read it takes the kernel milliseconds on a machine with much memory.

use std::fs;
use std::net::TcpStream;

/// Has everything been read that the peer wrote?
pub(crate) fn has_read_all(stream: &TcpStream) -> bool {
    let Some((own, other)) = ports(stream) else {
        return true;
    };
    queues(other, own).unacknowledged == 0 && queues(own, other).unread == 0
}

/// Has everything that was written reached the peer's socket?
pub(crate) fn has_delivered_all(stream: &TcpStream) -> bool {
    let Some((own, other)) = ports(stream) else {
        return true;
    };
    queues(own, other).unacknowledged == 0
}

/// The ports of an open connection.
fn ports(stream: &TcpStream) -> Option<(u16, u16)> {
    let own = stream.local_addr().ok()?;
    let other = stream.peer_addr().ok()?;
    Some((own.port(), other.port()))
}

/// Numbers of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Queues {
    /// Until they are acknowledged, the peer may be unable to read them, even on the loopback: a
    /// busy kernel delivers later.
    unacknowledged: u64,
    unread: u64,
}

/// The queues of a socket between these two ports.
fn queues(own: u16, other: u16) -> Queues {
    #[cfg(target_os = "linux")]
    if let Some(queues) = diagnosis::ask(own, other) {
        return queues;
    }
    look_up(own, other)
}

/// From the table of all sockets. Without such a table, the queues count as empty.
fn look_up(own: u16, other: u16) -> Queues {
    // As the kernel writes them, one socket a line: `0: 0100007F:1F90 0100007F:C350 01 0000:0000`.
    let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let ports = [own, other].map(|port| format!(":{port:04X} "));
    let mut lines = table
        .lines()
        .filter(|line| ports.iter().all(|port| line.contains(port)));
    let line = lines.find(|line| line.find(&ports[0]) < line.find(&ports[1]));
    let lengths = line.and_then(|line| line.split_whitespace().nth(4)?.split_once(':'));
    let number = |digits| u64::from_str_radix(digits, 16).expect("the kernel writes numbers");
    lengths.map_or(Queues::default(), |(unacknowledged, unread)| Queues {
        unacknowledged: number(unacknowledged),
        unread: number(unread),
    })
}

/// The question to the kernel, and its answer: `man 7 sock_diag`.
#[cfg(target_os = "linux")]
mod diagnosis {
    use super::Queues;
    use rustix::net::netlink::SOCK_DIAG;
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, send, socket};
    use std::net::Ipv4Addr;

    /// The type of a message that asks for sockets of one family.
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const REQUEST: u16 = 1;
    const AF_INET: u8 = 2;
    const IPPROTO_TCP: u8 = 6;
    /// Both lengths in bytes, without attributes.
    const ASKED: usize = 72;
    const ANSWERED: usize = 80;

    /// `None` if the kernel does not know the socket, or cannot be asked.
    pub(super) fn ask(own: u16, other: u16) -> Option<Queues> {
        let kernel = socket(AddressFamily::NETLINK, SocketType::RAW, Some(SOCK_DIAG)).ok()?;
        let mut asked = Vec::with_capacity(ASKED);
        // The header: length, type, flags, sequence number, sender.
        asked.extend((ASKED as u32).to_ne_bytes());
        asked.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        asked.extend(REQUEST.to_ne_bytes());
        asked.extend([0; 8]);
        // Which sockets: no extensions, in all states.
        asked.extend([AF_INET, IPPROTO_TCP, 0, 0]);
        asked.extend(u32::MAX.to_ne_bytes());
        asked.extend(own.to_be_bytes());
        asked.extend(other.to_be_bytes());
        for _ in 0..2 {
            asked.extend(Ipv4Addr::LOCALHOST.octets());
            asked.extend([0; 12]);
        }
        // On any interface, with any cookie.
        asked.extend([0; 4]);
        asked.extend([u8::MAX; 8]);
        send(&kernel, &asked, SendFlags::empty()).ok()?;
        let mut answered = [0; 1024];
        let (read, _) = recv(&kernel, &mut answered[..], RecvFlags::empty()).ok()?;
        let kind = u16::from_ne_bytes([answered[4], answered[5]]);
        if read < ANSWERED || kind != SOCK_DIAG_BY_FAMILY {
            return None;
        }
        let number = |at: usize| {
            let bytes = answered[at..at + 4].try_into().expect("four bytes");
            u64::from(u32::from_ne_bytes(bytes))
        };
        Some(Queues {
            unread: number(72),
            unacknowledged: number(76),
        })
    }
}
