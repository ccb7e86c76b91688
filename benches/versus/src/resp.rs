//! The protocol of Redis, as far as this program speaks it itself.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// A connection to a server.
pub struct Connection(BufReader<TcpStream>);

impl Connection {
    pub fn new(server: impl ToSocketAddrs) -> io::Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a command and returns the answer as text, without its header if it is a string.
    pub fn ask(&mut self, words: &[&str]) -> io::Result<String> {
        self.0.get_mut().write_all(&command(words))?;
        let mut header = String::new();
        self.0.read_line(&mut header)?;
        let header = header.trim_end();
        match header.strip_prefix('$').map(str::parse::<usize>) {
            Some(Ok(length)) => {
                let mut body = vec![0; length + 2];
                self.0.read_exact(&mut body)?;
                body.truncate(length);
                Ok(String::from_utf8_lossy(&body).into_owned())
            }
            _ => Ok(header.to_owned()),
        }
    }

    /// The stream, which nothing was read from that was not answered.
    pub fn into_stream(self) -> TcpStream {
        self.0.into_inner()
    }
}

/// One command on a connection of its own, to a server that runs.
pub fn ask(port: u16, words: &[&str]) -> String {
    let answer = Connection::new(("127.0.0.1", port)).and_then(|mut server| server.ask(words));
    answer.expect("a running server answers")
}

/// A number from the answer of INFO.
pub fn field(info: &str, name: &str) -> u64 {
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.trim().parse().ok())
        .expect("INFO has this number")
}

/// The bytes of a command.
pub fn command(words: &[&str]) -> Vec<u8> {
    let mut text = format!("*{}\r\n", words.len());
    words
        .iter()
        .for_each(|word| text += &format!("${}\r\n{word}\r\n", word.len()));
    text.into_bytes()
}
