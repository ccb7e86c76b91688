//! A node of ZooKeeper whose value is changed, over a bare socket.

use super::address;
use crate::work::{Cycle, Note};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;

/// Longer than any pause, since this client sends nothing while others have their turn.
const SESSION_MILLIS: i32 = 600_000;

const CREATE: i32 = 1;
const GET: i32 = 4;
const SET: i32 = 5;

/// What it answers.
const DONE: i32 = 0;
const BAD_VERSION: i32 = -103;
const NODE_EXISTS: i32 = -110;

/// Where a node's version is in what the server says of it.
const VERSION_AT: usize = 32;

/// As long as the values of the other peers.
const VALUE: [u8; 100] = [b'a'; 100];

struct Session {
    stream: TcpStream,
    requests: i32,
    /// The version of the node that was seen last; `None` before it is known to be there.
    seen: Option<i32>,
}

/// Changes one node if it has the version that was seen last, until that succeeds.
pub fn change(urls: &[String]) -> Cycle {
    let session = Mutex::new(Session::new(&urls[0]));
    Box::new(move |resource, _, while_held| {
        let mut session = session.lock().expect("nothing panics with it held");
        session.change(&string(&format!("/value:{}", resource.replace('/', ":"))));
        while_held(Note::default());
    })
}

impl Session {
    fn new(url: &str) -> Self {
        let stream = TcpStream::connect(address(url)).expect("the server accepts");
        stream.set_nodelay(true).expect("the option is there");
        let mut session = Session {
            stream,
            requests: 0,
            seen: None,
        };
        // Version 0, nothing seen, the timeout, no session so far, no password, and not read-only.
        let timeout = SESSION_MILLIS.to_be_bytes();
        let password = string(&"\0".repeat(16));
        session.send(&[&[0; 12][..], &timeout, &[0; 8], &password, &[0]].concat());
        session.read();
        session
    }

    /// Changes the node with this path.
    fn change(&mut self, path: &[u8]) {
        if self.seen.is_none() {
            // Without a value, with one entry that gives all rights to anyone, and to stay.
            let rights = [1_i32.to_be_bytes(), 31_i32.to_be_bytes()].concat();
            let anyone = [string("world"), string("anyone")].concat();
            let (error, _) = self.call(
                CREATE,
                &[path, &string(""), &rights, &anyone, &[0; 4]].concat(),
            );
            assert!(
                matches!(error, DONE | NODE_EXISTS),
                "ZooKeeper makes no node: {error}"
            );
        }
        let mut version = self.seen.unwrap_or_default();
        let length = i32::try_from(VALUE.len())
            .expect("values are short")
            .to_be_bytes();
        self.seen = loop {
            let body = [path, &length, &VALUE, &version.to_be_bytes()].concat();
            match self.call(SET, &body) {
                (DONE, answer) => break Some(number(&answer[VERSION_AT..])),
                (BAD_VERSION, _) => version = self.version(path),
                (error, _) => panic!("ZooKeeper changes no node: {error}"),
            }
        };
    }

    /// The version of a node, of which the value is read too.
    fn version(&mut self, path: &[u8]) -> i32 {
        let (error, answer) = self.call(GET, &[path, &[0]].concat());
        assert_eq!(error, DONE, "the node is there");
        let length = usize::try_from(number(&answer)).unwrap_or(0);
        number(&answer[4 + length + VERSION_AT..])
    }

    /// Sends a request, and returns the error code and the body of its answer.
    fn call(&mut self, kind: i32, body: &[u8]) -> (i32, Vec<u8>) {
        self.requests += 1;
        self.send(&[&self.requests.to_be_bytes(), &kind.to_be_bytes(), body].concat());
        let answer = self.read();
        assert_eq!(
            number(&answer),
            self.requests,
            "nothing is watched while a request is made"
        );
        // In between is the number of the transaction.
        (number(&answer[12..]), answer[16..].to_vec())
    }

    fn send(&mut self, message: &[u8]) {
        let length = i32::try_from(message.len()).expect("messages are short");
        let bytes = [&length.to_be_bytes(), message].concat();
        self.stream.write_all(&bytes).expect("the server takes it");
    }

    fn read(&mut self) -> Vec<u8> {
        let mut length = [0; 4];
        self.stream
            .read_exact(&mut length)
            .expect("the server answers");
        let mut message = vec![0; i32::from_be_bytes(length) as usize];
        self.stream
            .read_exact(&mut message)
            .expect("the answer is complete");
        message
    }
}

fn number(bytes: &[u8]) -> i32 {
    i32::from_be_bytes(bytes[..4].try_into().expect("four bytes are four bytes"))
}

/// A text, behind its length.
fn string(text: &str) -> Vec<u8> {
    let length = i32::try_from(text.len()).expect("texts are short");
    [&length.to_be_bytes(), text.as_bytes()].concat()
}
