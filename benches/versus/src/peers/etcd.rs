//! etcd's lock and its keys, over its JSON gateway, so that one connection and no crate is all that
//! it takes. The gateway is a part of the server, which hands each request on to itself by gRPC:
//! `EtcdLocalRead`, which asks no other member, shows what that costs.

use super::address;
use crate::work::Blocking;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;

/// Longer than any run, so that nothing needs to be kept alive.
const LEASE_SECONDS: u32 = 3600;

/// A value of a hundred bytes, in base64.
const VALUE_LENGTH: usize = 136;

pub struct Etcd {
    gateway: Gateway,
    lease: String,
}

/// One key: read, or changed if it is as it was seen last.
pub struct EtcdKey {
    gateway: Gateway,
    action: Action,
    /// The revision that changed the key last.
    seen: Mutex<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Asks one member for what it has.
    ReadLocal,
    /// Has the leader ask a majority whether it still leads.
    Read,
    Change,
}

struct Gateway(Mutex<BufReader<TcpStream>>);

impl Etcd {
    pub fn new(url: &str) -> Self {
        let gateway = Gateway::new(url);
        let body = format!("{{\"TTL\":{LEASE_SECONDS}}}");
        let lease = field(&gateway.call("lease/grant", &body), "ID");
        Self { gateway, lease }
    }
}

impl EtcdKey {
    pub fn new(url: &str, action: Action) -> Self {
        Self { gateway: Gateway::new(url), action, seen: Mutex::new("0".to_owned()) }
    }

    fn read(&self, key: &str) {
        let is_local = self.action == Action::ReadLocal;
        let body = format!("{{\"key\":\"{key}\",\"serializable\":{is_local}}}");
        if field(&self.gateway.call("kv/range", &body), "mod_revision").is_empty() {
            self.change(key);
        }
    }

    /// Compares and sets until the comparison holds. What it fails with is the value that there is.
    fn change(&self, key: &str) {
        let value = "a".repeat(VALUE_LENGTH);
        let compare = format!("\"compare\":[{{\"target\":\"MOD\",\"key\":\"{key}\"");
        let put = format!("\"request_put\":{{\"key\":\"{key}\",\"value\":\"{value}\"}}");
        let range = format!("\"request_range\":{{\"key\":\"{key}\"}}");
        let mut seen = self.seen.lock().expect("nothing panics with it held");
        loop {
            let body = format!(
                "{{{compare},\"mod_revision\":\"{seen}\"}}],\"success\":[{{{put}}}],\
                 \"failure\":[{{{range}}}]}}"
            );
            let answer = self.gateway.call("kv/txn", &body);
            if answer.contains("\"succeeded\":true") {
                *seen = field(&answer, "revision");
                return;
            }
            *seen = field(&answer, "mod_revision");
        }
    }
}

/// Does this member lead?
pub fn leads(url: &str) -> bool {
    let answer = Gateway::new(url).call("maintenance/status", "{}");
    field(&answer, "member_id") == field(&answer, "leader")
}

impl Gateway {
    fn new(url: &str) -> Self {
        let stream = TcpStream::connect(address(url)).expect("the server accepts");
        stream.set_nodelay(true).expect("the option is there");
        Self(Mutex::new(BufReader::new(stream)))
    }

    /// Sends a request and returns the answer.
    fn call(&self, path: &str, body: &str) -> String {
        let mut connection = self.0.lock().expect("nothing panics with it held");
        let length = body.len();
        let request = format!(
            "POST /v3/{path} HTTP/1.1\r\nHost: etcd\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        connection.get_mut().write_all(request.as_bytes()).expect("the server takes it");
        answer(&mut connection)
    }
}

/// This field of an answer, or nothing if it has none.
fn field(answer: &str, name: &str) -> String {
    let (_, value) = answer.split_once(&format!("\"{name}\":\"")).unwrap_or_default();
    value.split('"').next().unwrap_or_default().to_owned()
}

/// The name in base64. Four letters or digits are base64 as they are.
fn base64(name: &str) -> String {
    let mut name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    name.extend(std::iter::repeat_n('a', (4 - name.len() % 4) % 4));
    name
}

/// The body of the next answer.
fn answer(connection: &mut BufReader<TcpStream>) -> String {
    let mut length = 0;
    let mut line = String::new();
    connection.read_line(&mut line).expect("the server answers");
    assert!(line.starts_with("HTTP/1.1 200 "), "the server refuses: {line}");
    while line != "\r\n" {
        line.clear();
        connection.read_line(&mut line).expect("the answer has an end");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length is a number");
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).expect("the answer is complete");
    String::from_utf8(body).expect("JSON is UTF-8")
}

impl Blocking for Etcd {
    /// The key of the lock.
    type Held<'a> = String;

    fn acquire(&self, resource: &str, _: bool) -> String {
        let name = base64(resource);
        let body = format!("{{\"name\":\"{name}\",\"lease\":\"{}\"}}", self.lease);
        let key = field(&self.gateway.call("lock/lock", &body), "key");
        assert!(!key.is_empty(), "the lock has a key");
        key
    }

    fn release(&self, held: String) {
        self.gateway.call("lock/unlock", &format!("{{\"key\":\"{held}\"}}"));
    }
}

impl Blocking for EtcdKey {
    type Held<'a> = ();

    fn acquire(&self, resource: &str, _: bool) {
        let key = base64(resource);
        match self.action {
            Action::ReadLocal | Action::Read => self.read(&key),
            Action::Change => self.change(&key),
        }
    }

    fn release(&self, (): ()) {}
}
