//! etcd's lock and its keys, over its JSON gateway, so that one connection and no crate is all that
//! it takes. The gateway is a part of the server, which hands each request on to itself by gRPC: a
//! read that asks no other member shows what that costs.

use super::address;
use crate::work::{Cycle, Note};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;

/// Longer than any run, so that nothing needs to be kept alive.
const LEASE_SECONDS: u32 = 3600;

/// A value of a hundred bytes, in base64.
const VALUE_LENGTH: usize = 136;

/// One connection for all threads.
struct Gateway(Mutex<BufReader<TcpStream>>);

pub fn lock(urls: &[String]) -> Cycle {
    let gateway = Gateway::new(&urls[0]);
    let granted = gateway.call("lease/grant", &json!({ "TTL": LEASE_SECONDS }));
    let lease = granted["ID"].clone();
    Box::new(move |resource, _, while_held| {
        let wanted = json!({ "name": base64(resource), "lease": lease });
        let key = gateway.call("lock/lock", &wanted)["key"].take();
        assert!(key.is_string(), "the lock has a key");
        while_held(Note::default());
        gateway.call("lock/unlock", &json!({ "key": key }));
    })
}

/// Reads a key, as one member has it or as the leader does, who asks a majority whether it leads.
pub fn read(urls: &[String], is_local: bool) -> Cycle {
    let gateway = Gateway::new(&urls[0]);
    Box::new(move |resource, _, while_held| {
        let key = base64(resource);
        let answer = gateway.call("kv/range", &json!({ "key": key, "serializable": is_local }));
        if answer["kvs"].is_null() {
            gateway.change(&key, json!(0));
        }
        while_held(Note::default());
    })
}

/// Changes a key if it is as it was seen last.
pub fn change(urls: &[String]) -> Cycle {
    let gateway = Gateway::new(&urls[0]);
    let seen = Mutex::new(json!(0));
    Box::new(move |resource, _, while_held| {
        let mut seen = seen.lock().expect("nothing panics with it held");
        *seen = gateway.change(&base64(resource), seen.take());
        while_held(Note::default());
    })
}

/// Does this member lead?
pub fn leads(url: &str) -> bool {
    let answer = Gateway::new(url).call("maintenance/status", &json!({}));
    answer["header"]["member_id"] == answer["leader"]
}

impl Gateway {
    fn new(url: &str) -> Self {
        let stream = TcpStream::connect(address(url)).expect("the server accepts");
        stream.set_nodelay(true).expect("the option is there");
        Self(Mutex::new(BufReader::new(stream)))
    }

    /// Compares and sets until the comparison holds, from the revision that was seen to the one
    /// that this makes. What it fails with is the value that there is.
    fn change(&self, key: &str, mut seen: Value) -> Value {
        let value = "a".repeat(VALUE_LENGTH);
        loop {
            let wanted = json!({
                "compare": [{ "target": "MOD", "key": key, "mod_revision": seen }],
                "success": [{ "request_put": { "key": key, "value": value } }],
                "failure": [{ "request_range": { "key": key } }],
            });
            let mut answer = self.call("kv/txn", &wanted);
            if answer["succeeded"] == true {
                return answer["header"]["revision"].take();
            }
            seen = answer["responses"][0]["response_range"]["kvs"][0]["mod_revision"].take();
        }
    }

    /// Sends a request and returns the body of the answer.
    fn call(&self, path: &str, body: &Value) -> Value {
        let mut connection = self.0.lock().expect("nothing panics with it held");
        let body = body.to_string();
        let length = body.len();
        let request = format!(
            "POST /v3/{path} HTTP/1.1\r\nHost: etcd\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        connection
            .get_mut()
            .write_all(request.as_bytes())
            .expect("the server takes it");
        let mut line = String::new();
        let mut length = 0;
        connection.read_line(&mut line).expect("the server answers");
        assert!(
            line.starts_with("HTTP/1.1 200 "),
            "the server refuses: {line}"
        );
        while line != "\r\n" {
            line.clear();
            connection
                .read_line(&mut line)
                .expect("the answer has an end");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length is a number");
            }
        }
        let mut body = vec![0; length];
        connection
            .read_exact(&mut body)
            .expect("the answer is complete");
        serde_json::from_slice(&body).expect("the gateway answers in JSON")
    }
}

/// The name in base64. Four letters or digits are base64 as they are.
fn base64(name: &str) -> String {
    let mut name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    name.extend(std::iter::repeat_n('a', (4 - name.len() % 4) % 4));
    name
}
