//! A sequence of requests of several clients, and all that they get for it.

#![expect(clippy::unwrap_used, reason = "what cannot be read fails the test")]

use super::client::{Client, Greeting};
use super::request::Request;

/// The timeout of the sessions: none ends by itself, also those whose clients are gone.
const TIMEOUT_MS: i32 = 600_000;

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// The client with this number begins a session.
    Open(usize),
    /// It sends a request, and waits for the reply.
    Ask(usize, Request),
    /// It sends these bytes, and the server closes the connection.
    Break(usize, Vec<u8>),
    /// Another client goes on with the session of a client, which may still be connected.
    Resume {
        client: usize,
        of: usize,
        has_password: bool,
    },
    /// A client that has seen a later transaction than the server begins a session.
    FromFuture,
}

/// Runs the steps against the server on this port. Each line tells what a step has led to: the
/// reply, and the events of all clients.
pub(super) fn transcript(port: u16, steps: &[Step]) -> Vec<String> {
    let mut clients: Vec<Option<Client>> = Vec::new();
    let mut lines = Vec::new();
    for step in steps {
        let mut line = format!("{step:?}\n    ") + &run(port, &mut clients, step);
        for (number, slot) in clients.iter_mut().enumerate() {
            let Some(client) = slot else { continue };
            // All events so far come before the reply.
            let (mut events, reply) = ping(client);
            if is_end(step) {
                // The znodes of a session end in no order.
                events.sort_unstable();
            }
            line += &format!("\n    client {number}: {events:?} {reply}");
            if reply == "closed" {
                *slot = None;
            }
        }
        lines.push(line);
    }
    for client in clients.iter_mut().flatten() {
        client.ask(&Request::Close);
    }
    lines
}

fn is_end(step: &Step) -> bool {
    matches!(step, Step::Ask(_, Request::Close))
}

fn ping(client: &mut Client) -> (Vec<String>, String) {
    match client.send(&Request::Ping) {
        Ok(()) => client.replies(&Request::Ping),
        Err(_) => (Vec::new(), "closed".to_owned()),
    }
}

fn run(port: u16, clients: &mut Vec<Option<Client>>, step: &Step) -> String {
    match step {
        Step::Open(number) => {
            clients.resize_with(clients.len().max(number + 1), || None);
            let client = Client::connect(port, TIMEOUT_MS).expect("a new session");
            let line = format!("timeout {}", client.timeout_ms);
            clients[*number] = Some(client);
            line
        }
        Step::Ask(number, request) => match &mut clients[*number] {
            Some(client) => {
                let mut line = client.ask(request);
                if is_end(step) {
                    assert!(client.is_closed());
                    clients[*number] = None;
                    line += ", then closed";
                }
                line
            }
            None => "not connected".to_owned(),
        },
        Step::Break(number, bytes) => match clients[*number].take() {
            Some(mut client) => {
                client.send_bytes(bytes).unwrap();
                format!("closed: {}", client.is_closed())
            }
            None => "not connected".to_owned(),
        },
        Step::Resume {
            client,
            of,
            has_password,
        } => {
            let Some(former) = &clients[*of] else {
                return "not connected".to_owned();
            };
            let session = former.session;
            let mut password = former.password.clone();
            if !has_password {
                password[3] ^= 1;
            }
            let greeting = Greeting {
                session,
                password,
                ..Greeting::new(TIMEOUT_MS)
            };
            let resumed = Client::greet(port, &greeting).expect("an answer");
            let line = format!(
                "timeout {}, the same session: {}",
                resumed.timeout_ms,
                resumed.session == session
            );
            clients.resize_with(clients.len().max(client + 1), || None);
            clients[*client] = Some(resumed);
            line
        }
        Step::FromFuture => {
            let greeting = Greeting {
                last_zxid: 1 << 40,
                ..Greeting::new(TIMEOUT_MS)
            };
            format!("refused: {}", Client::greet(port, &greeting).is_err())
        }
    }
}
