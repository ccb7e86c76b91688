//! A client of the crowd: one contender after another, and what a session does for it.

use super::Mistake;
use super::directory::{Answer, DIRECTORY, Server};
use crate::random::Random;
use redlatch::internal::Time;
use redlatch::internal::zookeeper::contender::{Contender, Held, Plan, Serial, Step};
use redlatch::internal::zookeeper::message::{CreateKind, Reply, Request, ServerError};
use redlatch::internal::zookeeper::path::{Directory, Root};
use redlatch::internal::zookeeper::session::Failure;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Client {
    number: usize,
    session: i64,
    pub(super) contender: Contender,
    /// In flight, the oldest first. Those of former contenders and some deletes have no serial.
    requests: VecDeque<(Option<Serial>, Request)>,
    /// Creates of former connections that are still on their way.
    underway: Vec<Request>,
    /// The path of the lock's znode, while it holds it.
    held: Option<String>,
    is_over: bool,
    pub(super) is_leaving: bool,
    pub(super) grants: usize,
}

fn contender(waits: bool) -> Contender {
    let root = Root::new("/locks").expect("a path");
    let directory = Directory::new(&root, b"", b"a").expect("a path");
    assert_eq!(&**directory.path(), DIRECTORY);
    let mut plan = Plan::new(&root, directory);
    plan.waits = waits;
    Contender::new(plan)
}

impl Client {
    pub(super) fn new(number: usize, random: &mut Random) -> Self {
        Self {
            number,
            session: number as i64,
            contender: contender(!random.one_in(4)),
            requests: VecDeque::new(),
            underway: Vec::new(),
            held: None,
            is_over: false,
            is_leaving: false,
            grants: 0,
        }
    }

    /// The path of the znode with which it holds the lock.
    pub(super) fn path(&self) -> Option<&str> {
        self.held.as_deref()
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_over && self.requests.is_empty()
    }

    /// Does what the contender wants. Returns the lock if it was granted.
    pub(super) fn take_steps(&mut self, random: &mut Random) -> Option<Held> {
        let mut granted = None;
        while let Some(step) = self.contender.poll(Time::ZERO, Time::MAX) {
            match step {
                Step::Begin => {
                    let mut id = [0; 16];
                    id.fill_with(|| random.below(256) as u8);
                    self.contender.begin(Time::ZERO, id);
                }
                Step::Send(serial, request) => self.requests.push_back((Some(serial), request)),
                Step::Delete(serial, path) => {
                    self.requests.push_back((serial, Request::Delete(path)));
                }
                Step::Held(held) => {
                    self.held = Some(held.path.to_string());
                    self.grants += 1;
                    granted = Some(held);
                }
                Step::Contended | Step::Refused(_) | Step::Lost | Step::Left(_) => {
                    self.held = None;
                    self.is_over = true;
                }
                Step::Keep(_) | Step::Pause => {}
                other => panic!("{other:?}"),
            }
        }
        if self.is_over && !self.is_leaving {
            self.is_over = false;
            self.contender = contender(!random.one_in(4));
            for (serial, _) in &mut self.requests {
                *serial = None;
            }
            return granted.or_else(|| self.take_steps(random));
        }
        granted
    }

    /// The oldest request is carried out and answered.
    pub(super) fn exchange(&mut self, server: &mut Server, random: &mut Random) {
        let Some((serial, request)) = self.requests.pop_front() else { return };
        if matches!(request, Request::Sync(_)) && server.mistake != Mistake::SyncDoesNothing {
            // What has not come by now was refused: the session has moved.
            self.arrive(server, random);
            self.underway.clear();
        }
        let answer = server.execute(self.number, self.session, &request);
        self.hear(serial, &request, &answer);
    }

    fn hear(&mut self, serial: Option<Serial>, request: &Request, answer: &Answer) {
        let Some(serial) = serial else { return };
        match ServerError::of_code(answer.error) {
            None => {
                let reply = Reply::decode(request.kind(), &answer.body).expect("a reply");
                self.contender.answered(serial, answer.zxid, Ok(reply));
            }
            Some(error) => {
                self.contender.answered(serial, answer.zxid, Err(&Failure::Server(error)));
            }
        }
    }

    /// The server refuses the oldest request. A session sends a delete again.
    pub(super) fn throttle(&mut self) {
        let is_delete = |(_, request): &(_, Request)| matches!(request, Request::Delete(_));
        if self.requests.front().is_none_or(is_delete) {
            return;
        }
        if let Some((Some(serial), _)) = self.requests.pop_front() {
            let failure = Failure::Server(ServerError::ThrottledOperation);
            self.contender.answered(serial, 0, Err(&failure));
        }
    }

    /// Some of what is still on its way arrives.
    pub(super) fn arrive(&mut self, server: &mut Server, random: &mut Random) {
        for request in std::mem::take(&mut self.underway) {
            if random.one_in(2) {
                server.execute(self.number, self.session, &request);
            } else {
                self.underway.push(request);
            }
        }
    }

    /// The connection is lost, and there is another one at once.
    pub(super) fn cut(&mut self, server: &mut Server, random: &mut Random) {
        server.forget_watches(self.number);
        let carried_out = random.below(self.requests.len() as u64 + 1) as usize;
        let mut deletes = VecDeque::new();
        for (index, (serial, request)) in std::mem::take(&mut self.requests).into_iter().enumerate()
        {
            if index < carried_out {
                server.execute(self.number, self.session, &request);
            } else if is_join(&request) {
                self.underway.push(request.clone());
            }
            match (serial, &request) {
                (_, Request::Delete(_)) if server.mistake == Mistake::DeletesAreForgotten => {
                    if let Some(serial) = serial {
                        self.contender.answered(serial, 0, Ok(Reply::Done));
                    }
                }
                (_, Request::Delete(_)) => deletes.push_back((serial, request)),
                (Some(serial), _) => {
                    self.contender.answered(serial, 0, Err(&Failure::Unanswered));
                }
                (None, _) => {}
            }
        }
        self.requests = deletes;
        self.contender.connected();
    }

    /// The session ends, and the client is told.
    pub(super) fn expire(&mut self, server: &mut Server) {
        server.forget_watches(self.number);
        server.end_session(self.session);
        self.session += 1_000;
        self.underway.clear();
        self.contender.session_lost();
        for (serial, _) in std::mem::take(&mut self.requests) {
            if let Some(serial) = serial {
                self.contender.answered(serial, 0, Err(&Failure::SessionLost));
            }
        }
    }
}

fn is_join(request: &Request) -> bool {
    matches!(request, Request::Create(create) if create.kind == CreateKind::EphemeralSequential)
}
