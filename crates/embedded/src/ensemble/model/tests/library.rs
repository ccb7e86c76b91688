//! The library's session and contender against the model: two clients contend for a lock.

use super::*;
use redlatch_zookeeper::contender::{Cleanup, Contender, ContenderPlan, ContenderStep};
use redlatch_zookeeper::path::{Directory, Root};
use redlatch_zookeeper::session::{EnsembleSession, EnsembleSessionOptions, SessionEvent};
use std::collections::HashMap;

const DIRECTORY: &str = "/locks/a";

struct EnsembleClient {
    session: EnsembleSession<u64>,
    contender: Contender,
    connection: Option<ConnectionId>,
    serials: HashMap<u64, redlatch_zookeeper::contender::Serial>,
    /// What the contender has told.
    told: Vec<ContenderStep>,
    ids: u8,
    tickets: u64,
}

impl EnsembleClient {
    fn new(id: u8) -> Self {
        let root = Root::new("/locks").unwrap();
        let directory = Directory::new(&root, b"", b"a").unwrap();
        let mut options = EnsembleSessionOptions::new(1, 7);
        options.timeout = Duration::from_secs(1);
        Self {
            session: EnsembleSession::new(options),
            contender: Contender::new(ContenderPlan::of_set(&root, vec![directory])),
            connection: None,
            serials: HashMap::new(),
            told: Vec::new(),
            ids: id,
            tickets: 0,
        }
    }

    fn is_held(&self) -> bool {
        self.told
            .iter()
            .any(|step| matches!(step, ContenderStep::Held(_)))
    }

    /// Does what is to be done now. Returns whether something was.
    fn work(&mut self, model: &mut Model, now: Time) -> bool {
        let mut has_worked = self.take_steps(now);
        self.session.tick(now);
        if self.session.wants_connection(now) {
            self.connection = Some(model.connect());
            self.session.connecting(now);
            self.session.connected(now);
        }
        if let Some(connection) = self.connection {
            let output = self.session.output().to_vec();
            has_worked |= !output.is_empty();
            self.session.wrote(output.len());
            let mut rest = &output[..];
            while let Ok(Some((body, taken))) = redlatch_zookeeper::jute::frame(rest) {
                model.received(now, connection, body);
                rest = &rest[taken..];
            }
        }
        while let Some(outcome) = self.session.poll() {
            has_worked = true;
            self.hear(outcome);
        }
        has_worked
    }

    fn take_steps(&mut self, now: Time) -> bool {
        let mut has_worked = false;
        while let Some(step) = self.contender.poll(now, self.session.valid_until()) {
            has_worked = true;
            self.tickets += 1;
            let ticket = self.tickets;
            match step {
                ContenderStep::Begin => {
                    self.ids += 16;
                    self.contender.begin([self.ids; 16]);
                }
                ContenderStep::Send(serial, request) => {
                    self.serials.insert(ticket, serial);
                    self.session.send(now, ticket, request);
                }
                ContenderStep::Delete(serial, path) => {
                    let ticket = serial.map(|serial| {
                        self.serials.insert(ticket, serial);
                        ticket
                    });
                    self.session.delete(now, ticket, path);
                }
                ContenderStep::Keep(path) => self.session.keep(path),
                step => self.told.push(step),
            }
        }
        has_worked
    }

    fn hear(&mut self, outcome: SessionEvent<u64>) {
        match outcome {
            SessionEvent::Answer(ticket, answer) => {
                let serial = self.serials.remove(&ticket).unwrap();
                self.contender.answered(serial, answer.zxid, answer.reply());
            }
            SessionEvent::Changed { path } => self.contender.changed(&path),
            SessionEvent::Connected => self.contender.connected(),
            SessionEvent::SessionLost => self.contender.session_lost(),
            SessionEvent::Removed { path } => self.contender.removed(&path),
            SessionEvent::Ended | SessionEvent::Unreached => {}
        }
    }
}

/// All clients and the model, until nothing happens any more.
fn settle(model: &mut Model, clients: &mut [EnsembleClient], now: Time) {
    model.advance(now);
    loop {
        let mut has_worked = false;
        for client in &mut *clients {
            has_worked |= client.work(model, now);
        }
        while let Some(output) = model.poll() {
            has_worked = true;
            let (Output::Send(id, _) | Output::Close(id)) = output;
            let mut all = clients.iter_mut();
            let Some(client) = all.find(|client| client.connection == Some(id)) else {
                continue;
            };
            match output {
                Output::Send(_, bytes) => client.session.received(now, &bytes),
                Output::Close(_) => {
                    client.connection = None;
                    let problem = redlatch_zookeeper::session::Problem::Disconnected;
                    client.session.closed(now, problem);
                }
            }
        }
        if !has_worked {
            return;
        }
    }
}

/// The same for so long, in steps of 10 ms.
fn pass(model: &mut Model, clients: &mut [EnsembleClient], now: &mut u64, millis: u64) {
    for _ in 0..millis / 10 {
        *now += 10;
        settle(model, clients, at(*now));
    }
}

#[test]
fn a_contender_queues_and_gets_the_lock_when_it_is_released() {
    let mut model = model();
    let mut now = 1_000;
    let mut clients = [EnsembleClient::new(1), EnsembleClient::new(2)];
    pass(&mut model, &mut clients[..1], &mut now, 500);
    assert!(clients[0].is_held());
    pass(&mut model, &mut clients, &mut now, 3_000);
    assert_eq!(model.children(DIRECTORY).unwrap().len(), 2);
    assert_eq!(
        (clients[1].is_held(), clients[1].contender.place()),
        (false, Some(1))
    );

    clients[0].contender.give_up();
    pass(&mut model, &mut clients, &mut now, 500);
    assert_eq!(
        clients[0].told.last(),
        Some(&ContenderStep::CleanedUp(Cleanup::Deleted))
    );
    assert!(clients[1].is_held());
    assert_eq!(model.children(DIRECTORY).unwrap().len(), 1);
}

#[test]
fn a_lock_is_lost_with_its_session_and_the_next_contender_gets_it() {
    let mut model = model();
    let mut now = 1_000;
    let mut clients = [EnsembleClient::new(1), EnsembleClient::new(2)];
    pass(&mut model, &mut clients, &mut now, 1_000);
    let holder = clients.iter().position(EnsembleClient::is_held).unwrap();
    model.expire_sessions(at(now));
    assert_eq!(model.children(DIRECTORY).unwrap(), Vec::<String>::new());
    pass(&mut model, &mut clients, &mut now, 2_000);
    assert_eq!(clients[holder].told.last(), Some(&ContenderStep::Lost));
    assert!(clients[1 - holder].is_held());
}
