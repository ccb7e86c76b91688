//! A client that sends one request after the other, and writes down what it gets.

#![expect(clippy::unwrap_used, reason = "what cannot be read fails the test")]

use super::request::Request;
use redlatch_zookeeper::jute::{FrameWriter, Reader};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long a server may take to answer.
const LIMIT: Duration = Duration::from_secs(30);

pub(super) struct Client {
    stream: TcpStream,
    pub(super) session: i64,
    pub(super) password: Vec<u8>,
    pub(super) timeout_ms: i32,
    xid: i32,
}

/// What a client asks for at first.
#[derive(Clone, Debug)]
pub(super) struct Greeting {
    pub(super) last_zxid: i64,
    pub(super) timeout_ms: i32,
    pub(super) session: i64,
    pub(super) password: Vec<u8>,
}

impl Greeting {
    pub(super) fn new(timeout_ms: i32) -> Self {
        Self {
            last_zxid: 0,
            timeout_ms,
            session: 0,
            password: vec![0; 16],
        }
    }
}

impl Client {
    pub(super) fn connect(port: u16, timeout_ms: i32) -> io::Result<Self> {
        Self::greet(port, &Greeting::new(timeout_ms))
    }

    /// An error if the server closes the connection instead of an answer.
    pub(super) fn greet(port: u16, greeting: &Greeting) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let mut frame = FrameWriter::begin(&mut bytes);
        frame
            .int(0)
            .long(greeting.last_zxid)
            .int(greeting.timeout_ms)
            .long(greeting.session);
        frame.buffer(&greeting.password).boolean(false);
        frame.finish().unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.write_all(&bytes)?;
        let reply = read_frame(&mut stream)?;
        let mut reader = Reader::new(&reply);
        assert_eq!(reader.int().unwrap(), 0, "the version of the protocol");
        let timeout_ms = reader.int().unwrap();
        let session = reader.long().unwrap();
        let password = reader.buffer().unwrap().unwrap().to_vec();
        assert_eq!((password.len(), reader.boolean()), (16, Ok(false)));
        reader.finish().unwrap();
        Ok(Self {
            stream,
            session,
            password,
            timeout_ms,
            xid: 0,
        })
    }

    pub(super) fn send(&mut self, request: &Request) -> io::Result<()> {
        self.xid += 1;
        self.stream.write_all(&request.encode(self.xid))
    }

    pub(super) fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.stream.set_read_timeout(Some(limit)).unwrap();
    }

    /// The next event; an error if there is none in time.
    pub(super) fn event(&mut self) -> io::Result<String> {
        let frame = read_frame(&mut self.stream)?;
        Ok(event(&frame).unwrap_or_else(|| panic!("no event: {frame:?}")))
    }

    /// The events up to the reply to this request, and the reply.
    pub(super) fn replies(&mut self, request: &Request) -> (Vec<String>, String) {
        let mut events = Vec::new();
        loop {
            let frame = match read_frame(&mut self.stream) {
                Ok(frame) => frame,
                Err(error) => return (events, closed(&error)),
            };
            match event(&frame) {
                Some(event) => events.push(event),
                None => return (events, self.describe(request, &frame)),
            }
        }
    }

    fn describe(&self, request: &Request, frame: &[u8]) -> String {
        let mut reader = Reader::new(frame);
        let xid = reader.int().unwrap();
        let zxid = reader.long().unwrap();
        let error = reader.int().unwrap();
        let body = match error {
            0 => {
                let described = request.describe(reader.rest(), self.session);
                described.unwrap_or_else(|error| format!("{error}: {:?}", reader.rest()))
            }
            _ => format!("{} bytes", reader.rest().len()),
        };
        format!("xid {xid} zxid {zxid} error {error}: {body}")
    }

    /// The reply to a request, behind the events before it.
    pub(super) fn ask(&mut self, request: &Request) -> String {
        let sent = self.send(request);
        let (events, reply) = self.replies(request);
        // A server may have closed the connection before all was sent.
        assert!(sent.is_ok() || reply.starts_with("closed"), "{sent:?}");
        events
            .into_iter()
            .chain([reply])
            .collect::<Vec<_>>()
            .join("; ")
    }

    pub(super) fn is_closed(&mut self) -> bool {
        read_frame(&mut self.stream).is_err_and(|error| !closed(&error).is_empty())
    }
}

/// Panics if the connection is not closed, but silent.
fn closed(error: &io::Error) -> String {
    let is_silent = matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    );
    assert!(!is_silent, "no answer: {error}");
    "closed".to_owned()
}

fn event(frame: &[u8]) -> Option<String> {
    let mut reader = Reader::new(frame);
    if reader.int().unwrap() != -1 {
        return None;
    }
    let zxid = reader.long().unwrap();
    let error = reader.int().unwrap();
    let kind = reader.int().unwrap();
    let state = reader.int().unwrap();
    let path = reader.text().unwrap().to_owned();
    reader.finish().unwrap();
    Some(format!(
        "event {kind} {path} (zxid {zxid}, error {error}, state {state})"
    ))
}

fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame)?;
    Ok(frame)
}
