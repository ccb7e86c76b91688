//! A client of an ensemble over the pure session, with at most one contender: one socket, and no
//! thread of its own.

use crate::contention::Contention;
use crate::drive::drive;
use redlatch_protocol::time::Time;
use redlatch_zookeeper::contender::{ContenderPlan, Held, Serial};
use redlatch_zookeeper::jute::frame;
use redlatch_zookeeper::message::{ConnectReply, EnsembleRequest, PASSWORD_LENGTH, Secret};
use redlatch_zookeeper::session::{
    EnsembleAnswer, EnsembleSession, EnsembleSessionOptions, Problem, SessionEvent,
};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The clock of all clients.
pub(crate) fn now() -> Time {
    static START: OnceLock<Instant> = OnceLock::new();
    Time::from_millis(1_000).after(START.get_or_init(Instant::now).elapsed())
}

/// A client. Its session begins with its first request.
pub(crate) struct Client {
    pub(crate) session: EnsembleSession<u64>,
    ports: Vec<u16>,
    stream: Option<TcpStream>,
    /// What has come of the connect reply; `None` when it is complete.
    greeting: Option<Vec<u8>>,
    /// The session's number and password, by the last connect reply.
    pub(crate) identity: Option<(i64, Secret<[u8; PASSWORD_LENGTH]>)>,
    /// When a server last said something.
    pub(crate) heard_at: Time,
    tickets: u64,
    /// The requests of the contender.
    serials: BTreeMap<u64, Serial>,
    answers: BTreeMap<u64, EnsembleAnswer>,
    contention: Option<Contention>,
    /// How often a session was lost.
    pub(crate) sessions_lost: usize,
    pub(crate) changed: Vec<String>,
    pub(crate) removed: Vec<String>,
    pub(crate) has_ended: bool,
}

impl Client {
    /// Of the servers at these ports, with the default timeout of 10 s.
    pub(crate) fn new(ports: &[u16]) -> Self {
        Self::with_options(ports, |_| {})
    }

    pub(crate) fn with_timeout(ports: &[u16], timeout: Duration) -> Self {
        Self::with_options(ports, |options| options.timeout = timeout)
    }

    pub(crate) fn with_options(
        ports: &[u16],
        change: impl FnOnce(&mut EnsembleSessionOptions),
    ) -> Self {
        static SEEDS: AtomicU64 = AtomicU64::new(1);
        let mut options =
            EnsembleSessionOptions::new(ports.len(), SEEDS.fetch_add(1, Ordering::Relaxed));
        change(&mut options);
        Self {
            session: EnsembleSession::new(options),
            ports: ports.to_vec(),
            stream: None,
            greeting: None,
            identity: None,
            heard_at: Time::ZERO,
            tickets: 0,
            serials: BTreeMap::new(),
            answers: BTreeMap::new(),
            contention: None,
            sessions_lost: 0,
            changed: Vec::new(),
            removed: Vec::new(),
            has_ended: false,
        }
    }

    /// Sends a request, whose answer [`ask`](Self::ask) or [`take`](Self::take) returns.
    pub(crate) fn send(&mut self, request: EnsembleRequest) -> u64 {
        let ticket = self.next_ticket();
        self.session.send(now(), ticket, request);
        ticket
    }

    pub(crate) fn take(&mut self, ticket: u64) -> Option<EnsembleAnswer> {
        self.answers.remove(&ticket)
    }

    /// Sends a request and waits for the answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, request: EnsembleRequest) -> EnsembleAnswer {
        let ticket = self.send(request);
        drive(&mut [self], "an answer", |clients| {
            clients[0].answers.contains_key(&ticket)
        });
        self.take(ticket).expect("it was waited for")
    }

    /// Begins to contend for a lock.
    pub(crate) fn contend(&mut self, plan: ContenderPlan) {
        self.contention = Some(Contention::new(plan));
    }

    /// What has become of its contender.
    #[track_caller]
    pub(crate) fn contention(&self) -> &Contention {
        self.contention.as_ref().expect("it contends")
    }

    /// The same, if it contends.
    pub(crate) fn contends(&self) -> Option<&Contention> {
        self.contention.as_ref()
    }

    /// The lock, while it is held.
    pub(crate) fn held(&self) -> Option<&Held> {
        self.contention.as_ref()?.held.as_ref()
    }

    /// Releases the lock or gives up waiting, without waiting for the outcome.
    pub(crate) fn give_up(&mut self) {
        let contention = self.contention.as_mut().expect("it contends");
        contention.give_up();
    }

    /// Waits for the lock.
    #[track_caller]
    pub(crate) fn acquire(&mut self, plan: ContenderPlan) -> Held {
        self.contend(plan);
        drive(&mut [self], "the lock", |clients| {
            clients[0].held().is_some()
        });
        self.held().cloned().expect("it was waited for")
    }

    /// Releases the lock, and waits for the outcome.
    #[track_caller]
    pub(crate) fn release(&mut self) {
        self.give_up();
        drive(&mut [self], "the release", |clients| {
            clients[0].contention().left.is_some()
        });
    }

    /// Ends the session, and waits for it.
    #[track_caller]
    pub(crate) fn end(&mut self) {
        self.session.end(now());
        drive(&mut [self], "the end", |clients| clients[0].has_ended);
    }

    pub(crate) fn next_ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// Does what can be done without waiting. Returns whether bytes were moved.
    pub(crate) fn turn(&mut self) -> bool {
        self.connect();
        let has_read = self.read();
        if self
            .session
            .next_deadline()
            .is_some_and(|deadline| now() >= deadline)
        {
            self.session.tick(now());
        }
        self.take_outcomes();
        self.take_steps();
        let has_written = self.write();
        has_read || has_written
    }

    fn connect(&mut self) {
        if self.session.is_down() {
            self.stream = None;
        }
        if !self.session.wants_connection(now()) {
            return;
        }
        self.session.connecting(now());
        let stream = TcpStream::connect(("127.0.0.1", self.ports[self.session.server()]));
        let Ok(stream) = stream else {
            return self.session.closed(now(), Problem::Disconnected);
        };
        stream.set_nodelay(true).expect("an option of every stream");
        stream
            .set_nonblocking(true)
            .expect("an option of every stream");
        self.stream = Some(stream);
        self.greeting = Some(Vec::new());
        self.session.connected(now());
    }

    fn read(&mut self) -> bool {
        let mut has_read = false;
        let mut chunk = [0; 16 * 1024];
        while let Some(stream) = &mut self.stream {
            match stream.read(&mut chunk) {
                Ok(count @ 1..) => {
                    has_read = true;
                    self.heard_at = now();
                    self.greeted(&chunk[..count]);
                    self.session.received(now(), &chunk[..count]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Ok(_) | Err(_) => {
                    self.session.closed(now(), Problem::Disconnected);
                    self.stream = None;
                }
            }
        }
        has_read
    }

    /// Keeps the session's password, which the session tells nobody.
    fn greeted(&mut self, bytes: &[u8]) {
        let Some(greeting) = &mut self.greeting else {
            return;
        };
        greeting.extend(bytes);
        if let Ok(Some((body, _))) = frame(greeting) {
            let reply = ConnectReply::decode(body).expect("a server's connect reply");
            self.identity = Some((reply.session, reply.password));
            self.greeting = None;
        }
    }

    fn write(&mut self) -> bool {
        let mut has_written = false;
        while let (Some(stream), false) = (&mut self.stream, self.session.output().is_empty()) {
            match stream.write(self.session.output()) {
                Ok(count) => {
                    has_written = true;
                    self.session.wrote(count);
                }
                // An error is told again by the next read.
                Err(_) => break,
            }
        }
        has_written
    }

    fn take_outcomes(&mut self) {
        while let Some(outcome) = self.session.poll() {
            let contention = self.contention.as_mut();
            match outcome {
                SessionEvent::Answer(ticket, answer) => self.take_answer(ticket, answer),
                SessionEvent::Changed { path } => {
                    contention
                        .into_iter()
                        .for_each(|it| it.contender.changed(&path));
                    self.changed.push(path.into());
                }
                SessionEvent::Connected => {
                    contention
                        .into_iter()
                        .for_each(|it| it.contender.connected());
                }
                SessionEvent::Removed { path } => {
                    contention
                        .into_iter()
                        .for_each(|it| it.contender.removed(&path));
                    self.removed.push(path.to_string());
                }
                SessionEvent::SessionLost => {
                    contention
                        .into_iter()
                        .for_each(|it| it.contender.session_lost());
                    self.sessions_lost += 1;
                }
                SessionEvent::Ended => self.has_ended = true,
                SessionEvent::Unreached => {}
            }
        }
    }

    fn take_answer(&mut self, ticket: u64, answer: EnsembleAnswer) {
        match (self.serials.remove(&ticket), &mut self.contention) {
            (Some(serial), Some(contention)) => contention.answered(serial, &answer),
            // Of a contender that is gone.
            (Some(_), None) => {}
            (None, _) => {
                self.answers.insert(ticket, answer);
            }
        }
    }

    fn take_steps(&mut self) {
        let Some(mut contention) = self.contention.take() else {
            return;
        };
        contention.take_steps(self);
        self.contention = Some(contention);
    }

    /// Sends a request of its contender.
    pub(crate) fn send_for(&mut self, serial: Serial, request: EnsembleRequest) {
        let ticket = self.send(request);
        self.serials.insert(ticket, serial);
    }

    /// Deletes a znode of its contender.
    pub(crate) fn delete_for(&mut self, serial: Option<Serial>, path: std::sync::Arc<str>) {
        let ticket = serial.map(|serial| {
            let ticket = self.next_ticket();
            self.serials.insert(ticket, serial);
            ticket
        });
        self.session.delete(now(), ticket, path);
    }
}
