//! The commands that servers execute, counted in two ways.
//!
//! `INFO` counts all calls: what clients send, and each call that a script makes. It costs nothing
//! while it counts. `MONITOR` tells the two apart, since it names the client of each command and
//! writes `lua` for a script, but the server then writes every command once more. So it watches one
//! server only, and not while times are measured.

use crate::servers::{Servers, ask, field};
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};

/// The calls that each server has executed so far, those of scripts included.
pub fn calls(servers: &Servers) -> Vec<i64> {
    let count = |address: SocketAddr| {
        let info = ask(address.port(), &["INFO", "stats"]).expect("a running server answers");
        field(&info, "total_commands_processed").expect("INFO says how many commands there were")
    };
    servers.addresses().into_iter().map(count).collect()
}

/// The mean over all servers of the calls since then.
pub fn calls_since(servers: &Servers, before: &[i64]) -> f64 {
    let now = calls(servers);
    // The INFO before is counted too.
    let sum: i64 = now.iter().zip(before).map(|(now, before)| now - before - 1).sum();
    sum as f64 / before.len() as f64
}

/// What a server executed while it was watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// Commands that clients sent.
    pub sent: u64,
    /// Calls that scripts made.
    pub inner: u64,
}

/// Watches one server.
pub struct Monitor {
    stream: TcpStream,
    reader: JoinHandle<Commands>,
}

impl Monitor {
    pub fn start(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).expect("the server accepts");
        stream.write_all(b"MONITOR\r\n").expect("the server takes it");
        let mut lines = BufReader::new(stream.try_clone().expect("a socket can be shared"));
        let mut line = Vec::new();
        lines.read_until(b'\n', &mut line).expect("the server answers");
        assert_eq!(line, b"+OK\r\n", "the server lets itself be watched");
        let reader = thread::spawn(move || {
            let mut commands = Commands::default();
            line.clear();
            while lines.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                commands.count(&line);
                line.clear();
            }
            commands
        });
        Self { stream, reader }
    }

    pub fn stop(self) -> Commands {
        let _ = self.stream.shutdown(Shutdown::Both);
        self.reader.join().expect("counting does not panic")
    }
}

impl Commands {
    /// Counts a line like `+1700000000.000000 [0 127.0.0.1:1234] "GET" "key"`.
    fn count(&mut self, line: &[u8]) {
        let mut words = line.split(|&byte| byte == b' ').skip(2);
        if words.next() == Some(b"lua]") {
            self.inner += 1;
        } else {
            self.sent += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_scripts_are_told_apart() {
        let mut commands = Commands::default();
        commands.count(b"+1700000000.000001 [0 127.0.0.1:1234] \"EVALSHA\" \"lua]\"\r\n");
        commands.count(b"+1700000000.000002 [0 lua] \"GET\" \"key\"\r\n");
        commands.count(b"+1700000000.000003 [0 127.0.0.1:1234] \"SET\" \"a key\" \"b\"\r\n");
        assert_eq!(commands, Commands { sent: 2, inner: 1 });
    }
}
