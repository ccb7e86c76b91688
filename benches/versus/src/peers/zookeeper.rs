//! A node of ZooKeeper whose value is changed, over a bare socket.

use super::address;
use crate::work::Blocking;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;

/// Longer than any wait, since this client sends nothing while it waits.
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
}

/// One node that is changed if it has the version that was seen last.
pub struct Znode {
    /// The session, and that version; `None` before the node is known to be there.
    state: Mutex<(Session, Option<i32>)>,
}

impl Znode {
    pub fn new(url: &str) -> Self {
        Self { state: Mutex::new((Session::new(url), None)) }
    }
}

impl Session {
    /// Connects to the first of the servers.
    fn new(url: &str) -> Self {
        let first = address(url).split(',').next().expect("a URL has a host");
        let stream = TcpStream::connect(first).expect("the server accepts");
        stream.set_nodelay(true).expect("the option is there");
        let mut session = Session { stream, requests: 0 };
        let mut hello = vec![0; 12];
        hello.extend(SESSION_MILLIS.to_be_bytes());
        hello.extend([0; 8]);
        put_string(&mut hello, &"\0".repeat(16));
        hello.push(0);
        session.send(&hello);
        session.read();
        session
    }

    fn send(&mut self, message: &[u8]) {
        let length = i32::try_from(message.len()).expect("messages are short");
        let bytes = [&length.to_be_bytes(), message].concat();
        self.stream.write_all(&bytes).expect("the server takes it");
    }

    fn read(&mut self) -> Vec<u8> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).expect("the server answers");
        let mut message = vec![0; i32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut message).expect("the answer is complete");
        message
    }

    /// Sends a request, and returns the error code and the body of its answer.
    fn call(&mut self, kind: i32, body: &[u8]) -> (i32, Vec<u8>) {
        self.requests += 1;
        let head = [self.requests.to_be_bytes(), kind.to_be_bytes()].concat();
        self.send(&[&head, body].concat());
        let answer = self.read();
        assert_eq!(number(&answer), self.requests, "nothing is watched while a request is made");
        // In between is the number of the transaction.
        (number(&answer[12..]), answer[16..].to_vec())
    }

    /// Makes a node and returns its path, which with these flags has a number at its end.
    fn create(&mut self, path: &str, flags: i32) -> String {
        let mut body = Vec::new();
        put_string(&mut body, path);
        put_string(&mut body, "");
        // One entry: all rights for anyone.
        body.extend(1_i32.to_be_bytes());
        body.extend(31_i32.to_be_bytes());
        put_string(&mut body, "world");
        put_string(&mut body, "anyone");
        body.extend(flags.to_be_bytes());
        match self.call(CREATE, &body) {
            (DONE, answer) => take_string(&mut &answer[..]),
            (NODE_EXISTS, _) if flags == 0 => path.to_owned(),
            (error, _) => panic!("ZooKeeper makes no node: {error}"),
        }
    }

    /// The version of a node, of which the value is read too.
    fn version(&mut self, path: &str) -> i32 {
        let mut body = Vec::new();
        put_string(&mut body, path);
        body.push(0);
        let (error, answer) = self.call(GET, &body);
        assert_eq!(error, DONE, "the node is there");
        let length = usize::try_from(number(&answer)).unwrap_or(0);
        number(&answer[4 + length + VERSION_AT..])
    }

    /// Changes a node, and returns its new version, unless it has another version than this.
    fn set(&mut self, path: &str, version: i32) -> Option<i32> {
        let mut body = Vec::new();
        put_string(&mut body, path);
        body.extend((VALUE.len() as i32).to_be_bytes());
        body.extend(VALUE);
        body.extend(version.to_be_bytes());
        match self.call(SET, &body) {
            (DONE, answer) => Some(number(&answer[VERSION_AT..])),
            (BAD_VERSION, _) => None,
            (error, _) => panic!("ZooKeeper changes no node: {error}"),
        }
    }
}

impl Blocking for Znode {
    type Held<'a> = ();

    fn acquire(&self, resource: &str, _: bool) {
        let (session, seen) = &mut *self.state.lock().expect("nothing panics with it held");
        let path = format!("/value:{}", resource.replace('/', ":"));
        if seen.is_none() {
            session.create(&path, 0);
        }
        let mut version = seen.unwrap_or_default();
        *seen = loop {
            match session.set(&path, version) {
                Some(next) => break Some(next),
                None => version = session.version(&path),
            }
        };
    }

    fn release(&self, (): ()) {}
}

fn number(bytes: &[u8]) -> i32 {
    i32::from_be_bytes(bytes[..4].try_into().expect("four bytes are four bytes"))
}

fn put_string(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend(i32::try_from(text.len()).expect("texts are short").to_be_bytes());
    bytes.extend(text.as_bytes());
}

fn take_string(bytes: &mut &[u8]) -> String {
    let length = number(bytes) as usize;
    let text = String::from_utf8(bytes[4..4 + length].to_vec()).expect("names are UTF-8");
    *bytes = &bytes[4 + length..];
    text
}
