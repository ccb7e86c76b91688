//! A small blocking client with its own RESP parser, so that the crate's decoder is not tested with
//! itself. It trusts the server, and panics without a reply.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use std::time::Duration;

/// Longer than any healthy server takes on a busy machine.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// A reply, owned.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Verbatim(String),
    Null,
    Boolean(bool),
    Double(f64),
    BigNumber(String),
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Set(Vec<Value>),
    Push(Vec<Value>),
}

impl Value {
    pub fn ok() -> Self {
        Self::Simple("OK".to_owned())
    }

    pub fn bulk(bytes: impl AsRef<[u8]>) -> Self {
        Self::Bulk(bytes.as_ref().to_vec())
    }

    /// The text of a string of any kind, also of an error.
    #[track_caller]
    pub fn text(&self) -> String {
        match self {
            Self::Simple(text) | Self::Error(text) | Self::Verbatim(text) => text.clone(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("{other:?} is not a string"),
        }
    }

    #[track_caller]
    pub fn integer(&self) -> i64 {
        match self {
            Self::Integer(value) => *value,
            other => panic!("{other:?} is not an integer"),
        }
    }

    /// The value of a field of `INFO`.
    #[track_caller]
    pub fn field(&self, field: &str) -> Option<String> {
        let text = self.text();
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines
            .find(|(name, _)| *name == field)
            .map(|(_, value)| value.to_owned())
    }
}

/// The stream of a connection: TCP or a Unix socket.
pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection that sends a command and waits for its reply.
pub struct Client {
    stream: Box<dyn Stream>,
    received: Vec<u8>,
}

impl Client {
    /// Connects to a port of 127.0.0.1.
    pub fn connect(port: u16) -> std::io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        Ok(Self::over(stream))
    }

    pub fn over(stream: impl Stream + 'static) -> Self {
        Self {
            stream: Box::new(stream),
            received: Vec::new(),
        }
    }

    /// Sends one command and waits for its reply.
    #[track_caller]
    pub fn command<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Value {
        self.try_command(args)
            .unwrap_or_else(|error| panic!("no reply: {error}"))
    }

    pub fn try_command<A: AsRef<[u8]>>(&mut self, args: &[A]) -> std::io::Result<Value> {
        let bytes = self.try_raw(&encode(args))?;
        Ok(parse(&bytes).expect("a whole reply was received").0)
    }

    /// Sends bytes unchanged, and returns the bytes of one reply.
    pub fn try_raw(&mut self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        self.send(bytes)?;
        self.reply()
    }

    /// The reply to a command, behind the push messages that came before it: for a peer that
    /// forwards commands.
    pub fn forward(&mut self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        self.send(bytes)?;
        let mut all = Vec::new();
        loop {
            let next = self.reply()?;
            all.extend_from_slice(&next);
            if next.first() != Some(&b'>') {
                return Ok(all);
            }
        }
    }

    pub fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The bytes of the next reply.
    pub fn reply(&mut self) -> std::io::Result<Vec<u8>> {
        let mut chunk = [0; 16 * 1024];
        loop {
            if let Some((_, used)) = parse(&self.received) {
                return Ok(self.received.drain(..used).collect());
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.received.extend_from_slice(&chunk[..read]),
                // As when another thread's child ends while that thread starts the next one. The
                // kernel does not go on by itself with a wait that has a limit.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// A command as an array of bulk strings.
pub fn encode<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// The first reply in `bytes` and its length; `None` if it is incomplete.
pub fn parse(bytes: &[u8]) -> Option<(Value, usize)> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let line = String::from_utf8_lossy(&bytes[1..end]).into_owned();
    let number = || {
        line.parse::<i64>()
            .unwrap_or_else(|_| panic!("{line:?} is not a number"))
    };
    let used = end + 2;
    let simple = |value| Some((value, used));
    match bytes[0] {
        b'+' => simple(Value::Simple(line)),
        b'-' => simple(Value::Error(line)),
        b':' => simple(Value::Integer(number())),
        b'_' => simple(Value::Null),
        b'#' => simple(Value::Boolean(line == "t")),
        b',' => simple(Value::Double(line.parse().expect("a double"))),
        b'(' => simple(Value::BigNumber(line)),
        b'$' | b'*' if line == "-1" => simple(Value::Null),
        kind @ (b'$' | b'=' | b'!') => {
            let len = usize::try_from(number()).expect("a length");
            let body = bytes.get(used..used + len)?.to_vec();
            bytes.get(used + len..used + len + 2)?;
            let text = || String::from_utf8_lossy(&body).into_owned();
            let value = match kind {
                b'=' => Value::Verbatim(text()[4..].to_owned()),
                b'!' => Value::Error(text()),
                _ => Value::Bulk(body),
            };
            Some((value, used + len + 2))
        }
        kind @ (b'*' | b'~' | b'>' | b'%') => {
            let count = usize::try_from(number()).expect("a count");
            let (items, len) = parse_many(&bytes[used..], count * (1 + usize::from(kind == b'%')))?;
            let value = match kind {
                b'*' => Value::Array(items),
                b'~' => Value::Set(items),
                b'>' => Value::Push(items),
                _ => Value::Map(
                    items
                        .chunks(2)
                        .map(|pair| (pair[0].clone(), pair[1].clone()))
                        .collect(),
                ),
            };
            Some((value, used + len))
        }
        kind => panic!(
            "unknown type byte {kind:?} in {:?}",
            String::from_utf8_lossy(bytes)
        ),
    }
}

fn parse_many(bytes: &[u8], count: usize) -> Option<(Vec<Value>, usize)> {
    let mut items = Vec::new();
    let mut used = 0;
    for _ in 0..count {
        let (item, len) = parse(&bytes[used..])?;
        items.push(item);
        used += len;
    }
    Some((items, used))
}
