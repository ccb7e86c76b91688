//! etcd's lock, over its JSON gateway, so that one connection and no crate is all that it takes.

use super::address;
use crate::work::Blocking;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;

/// Longer than any run, so that nothing needs to be kept alive.
const LEASE_SECONDS: u32 = 3600;

pub struct Etcd {
    connection: Mutex<BufReader<TcpStream>>,
    lease: String,
}

impl Etcd {
    pub fn new(url: &str) -> Self {
        let stream = TcpStream::connect(address(url)).expect("the server accepts");
        stream.set_nodelay(true).expect("the option is there");
        let connection = Mutex::new(BufReader::new(stream));
        let mut etcd = Self { connection, lease: String::new() };
        etcd.lease = etcd.call("lease/grant", &format!("{{\"TTL\":{LEASE_SECONDS}}}"), "ID");
        etcd
    }

    /// Sends a request and returns this field of the answer, or nothing if it has none.
    fn call(&self, path: &str, body: &str, field: &str) -> String {
        let mut connection = self.connection.lock().expect("nothing panics with it held");
        let length = body.len();
        let request = format!(
            "POST /v3/{path} HTTP/1.1\r\nHost: etcd\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        connection.get_mut().write_all(request.as_bytes()).expect("the server takes it");
        let answer = answer(&mut connection);
        let (_, value) = answer.split_once(&format!("\"{field}\":\"")).unwrap_or_default();
        value.split('"').next().unwrap_or_default().to_owned()
    }
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
        // The name is wanted in base64. Four letters or digits are base64 as they are.
        let mut name: String = resource.chars().filter(char::is_ascii_alphanumeric).collect();
        name.extend(std::iter::repeat_n('a', (4 - name.len() % 4) % 4));
        let body = format!("{{\"name\":\"{name}\",\"lease\":\"{}\"}}", self.lease);
        let key = self.call("lock/lock", &body, "key");
        assert!(!key.is_empty(), "the lock has a key");
        key
    }

    fn release(&self, held: String) {
        self.call("lock/unlock", &format!("{{\"key\":\"{held}\"}}"), "header");
    }
}
