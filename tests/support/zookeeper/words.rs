//! The four-letter words: what a server tells about itself on a connection of its own.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a server may take to answer. One that is stopped accepts, and answers nothing.
const LIMIT: Duration = Duration::from_secs(2);

/// What a server is in its ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Standalone,
    Leader,
    Follower,
    Observer,
}

/// The answer to a four-letter word, such as `srvr` or `mntr`, of the server on this loopback port.
pub fn ask(port: u16, word: &str) -> io::Result<String> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(word.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The role in an answer to `srvr`; `None` if the server does not serve, as without a majority.
pub(super) fn role(srvr: &str) -> Option<Role> {
    let mode = srvr.lines().find_map(|line| line.strip_prefix("Mode: "))?;
    match mode.trim() {
        "standalone" => Some(Role::Standalone),
        "leader" => Some(Role::Leader),
        "follower" => Some(Role::Follower),
        "observer" => Some(Role::Observer),
        _ => None,
    }
}

/// The number of followers in a leader's answer to `mntr`.
pub(super) fn synced_followers(mntr: &str) -> Option<usize> {
    let count = mntr
        .lines()
        .find_map(|line| line.strip_prefix("zk_synced_followers"))?;
    count.trim().parse().ok()
}
