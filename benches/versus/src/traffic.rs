//! The commands that servers execute, counted in two ways, and the time that scripts take.
//!
//! `INFO` counts all calls: what clients send, and each call that a script makes. It costs nothing
//! while it counts. `MONITOR` tells the two apart, since it names the client of each command and
//! writes `lua` for a script, but the server then writes every command once more. So it watches one
//! server only, and not while times are measured.

use crate::servers::{Servers, ask, field};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
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

/// The command that ends a watch.
const END: &[u8] = b"\"ECHO\" \"no more\"\r\n";

/// The end of a queue's key.
const JOIN: &[u8] = b":redlatch:queue\"";

/// What all servers together have counted so far, or in a while.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Scripts named by their digest, and scripts sent by their source.
    pub evalsha: Calls,
    pub eval: Calls,
    /// Bytes that clients sent, and that they were sent.
    pub received: f64,
    pub replied: f64,
}

/// Executions of one command.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calls {
    pub count: f64,
    pub seconds: f64,
}

impl Usage {
    pub fn of(servers: &Servers) -> Self {
        let mut all = Self::default();
        for address in servers.addresses() {
            let info = |section| {
                ask(address.port(), &["INFO", section]).expect("a running server answers")
            };
            let commands = info("commandstats");
            all.evalsha.add(&commands, "cmdstat_evalsha:");
            all.eval.add(&commands, "cmdstat_eval:");
            let stats = info("stats");
            let bytes = |name| field(&stats, name).expect("INFO says how many bytes there were");
            all.received += bytes("total_net_input_bytes") as f64;
            all.replied += bytes("total_net_output_bytes") as f64;
        }
        all
    }

    pub fn since(servers: &Servers, before: &Self) -> Self {
        let mut all = Self::of(servers);
        for (now, before) in [(&mut all.evalsha, before.evalsha), (&mut all.eval, before.eval)] {
            now.count -= before.count;
            now.seconds -= before.seconds;
        }
        all.received -= before.received;
        all.replied -= before.replied;
        all
    }

    pub fn add(&mut self, other: &Self) {
        for (all, more) in [(&mut self.evalsha, other.evalsha), (&mut self.eval, other.eval)] {
            all.count += more.count;
            all.seconds += more.seconds;
        }
        self.received += other.received;
        self.replied += other.replied;
    }

    /// All executions of scripts.
    pub fn scripts(&self) -> Calls {
        Calls {
            count: self.evalsha.count + self.eval.count,
            seconds: self.evalsha.seconds + self.eval.seconds,
        }
    }
}

impl Calls {
    /// Adds a line like `cmdstat_eval:calls=12,usec=345,usec_per_call=28.75`, if there is one.
    fn add(&mut self, info: &str, name: &str) {
        let line = info.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let number = |name| {
            let word = line.split(',').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            word.and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0)
        };
        self.count += number("calls");
        self.seconds += number("usec") / 1e6;
    }

    /// Seconds of one call.
    pub fn mean(&self) -> f64 {
        self.seconds / self.count.max(1.0)
    }
}

/// What a server executed while it was watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// Commands that clients sent.
    pub sent: u64,
    /// Calls that scripts made.
    pub inner: u64,
    /// Those of them that entered a waiter into the nodes' queue, or renewed its place.
    pub joins: u64,
}

/// Watches one server.
pub struct Monitor {
    address: SocketAddr,
    reader: JoinHandle<Commands>,
}

impl Monitor {
    pub fn start(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).expect("the server accepts");
        stream.write_all(b"MONITOR\r\n").expect("the server takes it");
        let mut lines = BufReader::new(stream);
        let mut line = Vec::new();
        lines.read_until(b'\n', &mut line).expect("the server answers");
        assert_eq!(line, b"+OK\r\n", "the server lets itself be watched");
        let reader = thread::spawn(move || {
            let mut commands = Commands::default();
            line.clear();
            while lines.read_until(b'\n', &mut line).is_ok_and(|count| count > 0)
                && !line.ends_with(END)
            {
                commands.count(&line);
                line.clear();
            }
            commands
        });
        Self { address, reader }
    }

    pub fn stop(self) -> Commands {
        // What was executed before this command is counted, however late the server writes it.
        ask(self.address.port(), &["ECHO", "no more"]).expect("a running server answers");
        self.reader.join().expect("counting does not panic")
    }
}

impl Commands {
    /// Counts a line like `+1700000000.000000 [0 127.0.0.1:1234] "GET" "key"`.
    fn count(&mut self, line: &[u8]) {
        let mut words = line.split(|&byte| byte == b' ').skip(2);
        if words.next() == Some(b"lua]") {
            self.inner += 1;
            let is_join = line.windows(JOIN.len()).any(|window| window == JOIN);
            self.joins += u64::from(is_join && words.next() == Some(b"\"ZADD\""));
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
        assert_eq!(commands, Commands { sent: 2, inner: 1, joins: 0 });
    }

    #[test]
    fn joins_are_entries_of_a_queue() {
        let mut commands = Commands::default();
        commands.count(b"+1.000001 [0 lua] \"ZADD\" \"key:redlatch:queue\" \"1\" \"w\"\r\n");
        commands.count(b"+1.000002 [0 lua] \"ZADD\" \"key:redlatch:holders\" \"1\" \":w\"\r\n");
        commands.count(b"+1.000003 [0 lua] \"ZREM\" \"key:redlatch:queue\" \"w\"\r\n");
        assert_eq!(commands, Commands { sent: 0, inner: 3, joins: 1 });
    }

    #[test]
    fn the_time_of_a_command_is_in_its_line() {
        let info = "# Commandstats\r\ncmdstat_evalsha:calls=2,usec=9,usec_per_call=4.50\r\n\
                    cmdstat_eval:calls=4,usec=100,usec_per_call=25.00,rejected_calls=0\r\n";
        let mut calls = Calls::default();
        calls.add(info, "cmdstat_eval:");
        assert_eq!(calls.count, 4.0);
        assert!((calls.mean() - 25e-6).abs() < 1e-12);
        calls.add(info, "cmdstat_get:");
        assert_eq!(calls.count, 4.0);
    }
}
