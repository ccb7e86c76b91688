//! A proxy that a test controls: it holds back the bytes that a client writes on its current
//! connections and delivers them later, sends each command twice or again at the end, repeats
//! replies, and inserts bytes of the test.
//!
//! All of this happens between whole commands and replies: see `Wire`.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redlatch::LockClient;

use super::acceptor::{Acceptor, finish_sending};
use super::cli::Value;
use super::eventually;
use super::locks::{LIMIT, connected, idle};
use super::redis::Server;
use super::secret::SECRET;
use super::transport::{Front, scheme};
use super::wire::{Orders, Wire, lock};

pub struct Relay {
    acceptor: Option<Acceptor>,
    port: u16,
    front: Front,
    shared: Arc<Shared>,
}

struct Shared {
    target_port: u16,
    orders: Arc<Orders>,
    wires: Mutex<Vec<Arc<Wire>>>,
}

impl Relay {
    /// On a free port of 127.0.0.1 in front of this server. Forwards everything at first.
    #[track_caller]
    pub fn start(server: &Server) -> Self {
        Self::start_with(server, false)
    }

    /// The same, but the server gets each command twice. The second reply is dropped.
    #[track_caller]
    pub fn doubling(server: &Server) -> Self {
        Self::start_with(server, true)
    }

    #[track_caller]
    fn start_with(server: &Server, is_doubling: bool) -> Self {
        let orders = Arc::new(Orders {
            is_doubling,
            ..Orders::default()
        });
        let shared = Arc::new(Shared {
            target_port: server.port(),
            orders,
            wires: Mutex::default(),
        });
        let connecting = Arc::clone(&shared);
        let acceptor = Acceptor::start(0, move |client| connect_through(&connecting, client));
        let acceptor = acceptor.expect("the loopback has a free port");
        let port = acceptor.port();
        let front = Front::start(acceptor.port());
        Self {
            port,
            front,
            acceptor: Some(acceptor),
            shared,
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// `redis://127.0.0.1:PORT` of the relay, or `rediss` and the port of a terminator before it.
    pub fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", scheme(), self.front.port())
    }

    /// How many connections were made through it so far.
    pub fn accepted(&self) -> usize {
        lock(&self.shared.wires).len()
    }

    /// Holds back the bytes that the client writes from now on, on the current connections. Replies
    /// are forwarded, but not the end of such a connection by the server.
    pub fn hold(&self) {
        self.present()
            .iter()
            .for_each(|wire| wire.lock().held = Some(Vec::new()));
    }

    /// How many commands are held back.
    pub fn held(&self) -> usize {
        self.wires()
            .iter()
            .map(|wire| wire.lock().held.as_ref().map_or(0, Vec::len))
            .sum()
    }

    /// Has the client abandoned all held connections, and made a new one?
    pub fn is_replaced(&self) -> bool {
        let wires = self.wires();
        let is_held = |wire: &Arc<Wire>| wire.lock().held.is_some();
        let is_given_up = |wire: &Arc<Wire>| !is_held(wire) || wire.lock().has_client_left;
        wires.iter().all(is_given_up) && self.present().iter().any(|wire| !is_held(wire))
    }

    /// Delivers the held bytes. Returns when the server has run the commands, or has ended the
    /// connection before.
    #[track_caller]
    pub fn deliver(&self) {
        for wire in self.wires() {
            let mut state = wire.lock();
            let Some(held) = state.held.take() else {
                continue;
            };
            // It fails if the server has ended the connection.
            let _ = (&wire.server).write_all(&held.concat());
            if state.has_server_ended {
                finish_sending(&wire.client);
            }
            if state.has_client_left {
                finish_sending(&wire.server);
                drop(state);
                // The server reads the end of the stream after everything else.
                let is_done = || wire.lock().has_server_ended;
                assert!(
                    eventually(LIMIT, is_done),
                    "the server does not read the held bytes"
                );
            }
        }
    }

    /// Delivers all commands of all connections again, the latest connection first, and waits until
    /// the server has run them.
    #[track_caller]
    pub fn deliver_again(&self) {
        let written = |wire: &Arc<Wire>| wire.lock().written.clone();
        let commands: Vec<_> = self.wires().iter().flat_map(written).collect();
        let again = TcpStream::connect(("127.0.0.1", self.shared.target_port));
        let mut again = again.expect("a running server accepts");
        again
            .set_read_timeout(Some(LIMIT))
            .expect("a limit above zero");
        let bytes: Vec<u8> = commands.into_iter().rev().flatten().collect();
        again.write_all(&bytes).expect("the server reads");
        finish_sending(&again);
        let read = again.read_to_end(&mut Vec::new());
        read.expect("the server ends the connection when it is done");
    }

    /// Repeats each reply after `delay` from now on, or no longer.
    pub fn repeat_after(&self, delay: Option<Duration>) {
        *lock(&self.shared.orders.repeat_after) = delay;
    }

    /// Sends these bytes to the client on the current connections, as if the server had.
    pub fn say(&self, bytes: &[u8]) {
        self.present().iter().for_each(|wire| wire.say(bytes));
    }

    /// The same in two parts: one now, and the other when the client has written its next command.
    pub fn say_in_parts(&self, now: &[u8], then: &[u8]) {
        for wire in self.present() {
            wire.lock().rest = then.to_vec();
            wire.say(now);
        }
    }

    /// Closes the current connections, after the bytes that were sent.
    pub fn hang_up(&self) {
        for wire in self.present() {
            finish_sending(&wire.client);
            let _ = wire.server.shutdown(Shutdown::Both);
        }
    }

    /// Waits until each command has its reply, and all inserted bytes and repeated replies have
    /// reached the client's sockets. The client must not write meanwhile.
    #[track_caller]
    pub fn settle(&self) {
        let is_quiet = |wire: &Arc<Wire>| wire.is_quiet(&self.shared.orders);
        let is_settled = || {
            self.front.has_passed_commands()
                && self.present().iter().all(is_quiet)
                && self.front.has_passed_replies()
        };
        assert!(eventually(LIMIT, is_settled), "the relay does not settle");
        idle();
    }

    fn wires(&self) -> Vec<Arc<Wire>> {
        lock(&self.shared.wires).clone()
    }

    /// The connections that neither side has closed.
    fn present(&self) -> Vec<Arc<Wire>> {
        let mut wires = self.wires();
        wires.retain(|wire| {
            let state = wire.lock();
            !state.has_client_left && !state.has_server_ended
        });
        wires
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.acceptor = None;
        for wire in self.wires() {
            let _ = wire.client.shutdown(Shutdown::Both);
            let _ = wire.server.shutdown(Shutdown::Both);
        }
    }
}

/// Connects to the server. If that is down, the client's connection is closed by dropping it.
fn connect_through(shared: &Shared, client: TcpStream) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", shared.target_port)) else {
        return;
    };
    lock(&shared.wires).push(Wire::open(&shared.orders, client, server));
}

/// A relay before each of the servers.
pub fn relayed(servers: &[Server]) -> Vec<Relay> {
    servers.iter().map(Relay::start).collect()
}

/// Their URLs.
pub fn urls(relays: &[Relay]) -> Vec<String> {
    relays.iter().map(Relay::url).collect()
}

/// The same for a user with the rights for locking, but not to end connections.
#[track_caller]
pub fn limited_urls(servers: &[Server], relays: &[Relay]) -> Vec<String> {
    let rights = "~* +set +get +del +pexpire +pttl +evalsha +eval +script|load +info";
    let user = format!("ACL SETUSER app on >{SECRET} {rights}");
    for server in servers {
        assert_eq!(
            server.command(&user.split(' ').collect::<Vec<_>>()),
            Value::ok()
        );
    }
    let named = |relay: &Relay| relay.url().replace("://", &format!("://app:{SECRET}@"));
    relays.iter().map(named).collect()
}

/// Uses the client until it has abandoned the held connections and made new ones.
#[track_caller]
pub fn reconnect(client: &LockClient, relays: &[Relay]) {
    let is_replaced = || {
        // It need not succeed.
        drop(client.try_lock("at-work", Duration::from_secs(5)));
        relays.iter().all(Relay::is_replaced)
    };
    assert!(
        eventually(LIMIT, is_replaced),
        "the silent connections are kept"
    );
    connected(client.clone());
}
