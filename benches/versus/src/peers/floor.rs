//! The bound for libraries that wait for all servers: blocking sockets, N writes, then N reads of
//! exactly the bytes that must come. No parsing, no random numbers, no time-outs, no errors.

use super::address;
use crate::work::{Blocking, TTL};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;

const SCRIPT: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                      return redis.call('DEL', KEYS[1]) end return 0";

/// A value as long as redlatch's.
const TOKEN: &str = "01234567890123456789";

pub struct Floor {
    sha1: String,
    streams: Mutex<Vec<TcpStream>>,
}

impl Floor {
    pub fn new(urls: &[String]) -> Self {
        let (sha1, streams) = connect(urls);
        Self { sha1, streams: Mutex::new(streams) }
    }

    fn round(&self, command: &[u8], expected: &[u8]) {
        let streams = self.streams.lock().expect("nothing panics with it held");
        let mut reply = [0; 8];
        let reply = &mut reply[..expected.len()];
        for mut stream in streams.iter() {
            stream.write_all(command).expect("the server takes it");
        }
        for mut stream in streams.iter() {
            stream.read_exact(reply).expect("the server answers");
            assert_eq!(reply, expected, "the server executes the commands");
        }
    }
}

impl Blocking for Floor {
    type Held<'a> = String;

    fn acquire(&self, resource: &str, _: bool) -> String {
        self.round(&set(resource), b"+OK\r\n");
        resource.to_owned()
    }

    fn release(&self, held: String) {
        self.round(&delete(&self.sha1, &held), b":1\r\n");
    }
}

/// Connections to all servers, which know the script that deletes: and its digest.
pub fn connect(urls: &[String]) -> (String, Vec<TcpStream>) {
    let mut sha1 = String::new();
    let mut connect = |url: &String| {
        let mut stream = TcpStream::connect(address(url)).expect("the server accepts");
        stream.set_nodelay(true).expect("the option is there");
        stream.write_all(&command(&["SCRIPT", "LOAD", SCRIPT])).expect("the server takes it");
        let mut reply = [0; 5 + 40 + 2];
        stream.read_exact(&mut reply).expect("the server answers");
        let text = std::str::from_utf8(&reply).expect("a digest is ASCII");
        sha1 = text.strip_prefix("$40\r\n").expect("it answers a digest")[..40].to_owned();
        stream
    };
    let streams = urls.iter().map(&mut connect).collect();
    (sha1, streams)
}

pub fn set(resource: &str) -> Vec<u8> {
    command(&["SET", resource, TOKEN, "NX", "PX", &TTL.as_millis().to_string()])
}

pub fn delete(sha1: &str, resource: &str) -> Vec<u8> {
    command(&["EVALSHA", sha1, "1", resource, TOKEN])
}

pub fn command(arguments: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        let _ = write!(bytes, "${}\r\n{argument}\r\n", argument.len());
    }
    bytes
}
