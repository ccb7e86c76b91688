//! Peers of a few lines.

use super::address;
use crate::resp::{Connection, command};
use crate::work::{Cycle, Note, TTL};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;

/// A mutex: the cost of a lock within one process.
pub fn mutex(_: &[String]) -> Cycle {
    let mutex = Mutex::new(());
    Box::new(move |_, _, while_held| {
        let _guard = mutex.lock().expect("no thread panics with it held");
        while_held(Note::default());
    })
}

/// <https://crates.io/crates/redlock>, which opens a new connection for every command to every
/// server.
pub fn redlock(urls: &[String]) -> Cycle {
    let manager = redlock::RedLock::new(urls.iter().map(String::as_str).collect());
    let ttl = usize::try_from(TTL.as_millis()).expect("a minute is not too much");
    Box::new(move |resource, _, while_held| {
        let lock = manager.lock(resource.as_bytes(), ttl);
        let lock = lock
            .expect("every server answers")
            .expect("the lock is granted");
        while_held(Note::default());
        manager.unlock(&lock);
    })
}

pub const SCRIPT: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                      return redis.call('DEL', KEYS[1]) end return 0";

/// A value as long as redlatch's.
const TOKEN: &str = "01234567890123456789";

/// The bound for libraries that wait for all servers: blocking sockets, N writes, then N reads of
/// exactly the bytes that must come. No parsing, no random numbers, no time-outs, no errors.
pub fn bare_sockets(urls: &[String]) -> Cycle {
    let mut streams = Vec::new();
    let mut sha1 = String::new();
    for url in urls {
        let mut connection = Connection::new(address(url)).expect("the server accepts");
        sha1 = connection
            .ask(&["SCRIPT", "LOAD", SCRIPT])
            .expect("the server answers");
        let stream = connection.into_stream();
        stream
            .set_read_timeout(None)
            .expect("an option of every connection");
        streams.push(stream);
    }
    let streams = Mutex::new(streams);
    let ttl = TTL.as_millis().to_string();
    Box::new(move |resource, _, while_held| {
        let streams = streams.lock().expect("nothing panics with it held");
        round(
            &streams,
            &command(&["SET", resource, TOKEN, "NX", "PX", &ttl]),
            b"+OK\r\n",
        );
        while_held(Note::default());
        round(
            &streams,
            &command(&["EVALSHA", &sha1, "1", resource, TOKEN]),
            b":1\r\n",
        );
    })
}

fn round(streams: &[TcpStream], command: &[u8], expected: &[u8]) {
    let reply = &mut [0; 8][..expected.len()];
    for mut stream in streams {
        stream.write_all(command).expect("the server takes it");
    }
    for mut stream in streams {
        stream.read_exact(reply).expect("the server answers");
        assert_eq!(reply, expected, "the server executes the commands");
    }
}
