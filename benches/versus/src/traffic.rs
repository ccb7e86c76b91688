//! What servers do for their clients: scripts and bytes by `INFO`, commands by `MONITOR`.
//!
//! `INFO` costs nothing while it counts, but it counts calls of clients and of scripts alike.
//! `MONITOR` tells the two apart, since it names the client of each command and writes `lua` for a
//! script, but the server then writes every command once more. So it watches one server only, and
//! not while times are measured.

use crate::resp::{ask, field};
use crate::servers::Servers;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};

/// What all servers together have counted so far, or in a while.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Scripts, and the seconds that they took.
    pub scripts: f64,
    pub seconds: f64,
    /// Bytes that clients sent, and that they were sent.
    pub received: f64,
    pub replied: f64,
}

impl Usage {
    pub fn of(servers: &Servers) -> Self {
        let mut all = Self::default();
        for address in servers.addresses() {
            all.add_scripts(&ask(address.port(), &["INFO", "commandstats"]));
            let stats = ask(address.port(), &["INFO", "stats"]);
            all.received += field(&stats, "total_net_input_bytes") as f64;
            all.replied += field(&stats, "total_net_output_bytes") as f64;
        }
        all
    }

    /// Adds lines like `cmdstat_eval:calls=12,usec=345,usec_per_call=28.75`.
    fn add_scripts(&mut self, info: &str) {
        let is_script = |name: &str| matches!(name, "cmdstat_eval" | "cmdstat_evalsha");
        let lines = info.lines().filter_map(|line| line.split_once(':'));
        for (_, numbers) in lines.filter(|(name, _)| is_script(name)) {
            for (key, value) in numbers.split(',').filter_map(|word| word.split_once('=')) {
                let value = || value.trim().parse::<f64>().expect("INFO counts in numbers");
                match key {
                    "calls" => self.scripts += value(),
                    "usec" => self.seconds += value() / 1e6,
                    _ => {}
                }
            }
        }
    }

    pub fn since(self, before: Self) -> Self {
        Self {
            scripts: self.scripts - before.scripts,
            seconds: self.seconds - before.seconds,
            received: self.received - before.received,
            replied: self.replied - before.replied,
        }
    }
}

/// The command that ends a watch.
const END: &[u8] = b"\"ECHO\" \"no more\"\r";

/// The end of a queue's key.
const QUEUE: &[u8] = b":redlatch:queue\"";

/// What a server executed while it was watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// Commands that clients sent.
    pub sent: u64,
    /// Scripts among them, named by their digest and sent by their source.
    pub by_digest: u64,
    pub by_source: u64,
    /// Calls of scripts that entered a waiter into the nodes' queue, or renewed its place.
    pub joins: u64,
}

/// Watches one server.
pub struct Monitor(SocketAddr, JoinHandle<Commands>);

impl Monitor {
    pub fn start(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).expect("the server accepts");
        stream
            .write_all(b"MONITOR\r\n")
            .expect("the server takes it");
        let mut lines = BufReader::new(stream).split(b'\n').map_while(Result::ok);
        assert_eq!(
            lines.next().as_deref(),
            Some(&b"+OK\r"[..]),
            "the server lets itself be watched"
        );
        let count = move || {
            let mut commands = Commands::default();
            lines
                .take_while(|line| !line.ends_with(END))
                .for_each(|line| commands.count(&line));
            commands
        };
        Self(address, thread::spawn(count))
    }

    pub fn stop(self) -> Commands {
        // What was executed before this command is counted, however late the server writes it.
        ask(self.0.port(), &["ECHO", "no more"]);
        self.1.join().expect("counting does not panic")
    }
}

impl Commands {
    /// Counts a line like `+1700000000.000000 [0 127.0.0.1:1234] "GET" "key"`.
    fn count(&mut self, line: &[u8]) {
        let mut words = line.split(|&byte| byte == b' ').skip(2);
        let client = words.next();
        let command = words.next().unwrap_or_default();
        if client == Some(b"lua]") {
            let is_join = line.windows(QUEUE.len()).any(|window| window == QUEUE);
            self.joins += u64::from(is_join && command == b"\"ZADD\"");
        } else {
            self.sent += 1;
            self.by_digest += u64::from(command == b"\"EVALSHA\"");
            self.by_source += u64::from(command == b"\"EVAL\"");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_scripts_and_entries_of_a_queue_are_told_apart() {
        let mut commands = Commands::default();
        commands.count(b"+1700000000.000001 [0 127.0.0.1:1234] \"EVALSHA\" \"lua]\"");
        commands.count(b"+1700000000.000002 [0 lua] \"GET\" \"key\"");
        commands.count(b"+1700000000.000003 [0 127.0.0.1:1234] \"SET\" \"a key\" \"b\"");
        commands.count(b"+1.000001 [0 lua] \"ZADD\" \"key:redlatch:queue\" \"1\" \"w\"");
        commands.count(b"+1.000002 [0 lua] \"ZADD\" \"key:redlatch:holders\" \"1\" \":w\"");
        commands.count(b"+1.000003 [0 lua] \"ZREM\" \"key:redlatch:queue\" \"w\"");
        assert_eq!(
            commands,
            Commands {
                sent: 2,
                by_digest: 1,
                by_source: 0,
                joins: 1
            }
        );
    }

    #[test]
    fn the_time_of_scripts_is_in_their_lines() {
        let mut usage = Usage::default();
        usage.add_scripts(
            "# Commandstats\r\ncmdstat_get:calls=7,usec=9,usec_per_call=1.2\r\n\
             cmdstat_evalsha:calls=2,usec=9,usec_per_call=4.50\r\n\
             cmdstat_eval:calls=4,usec=100,usec_per_call=25.00,rejected_calls=0\r\n",
        );
        assert_eq!(usage.scripts, 6.0);
        assert!((usage.seconds - 109e-6).abs() < 1e-12);
    }
}
