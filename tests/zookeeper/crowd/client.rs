//! A client of the crowd: one contender after another, and what a session does for it.

use super::Mistake;
use super::server::{Answer, Server};
use super::wish::{Hold, Taste, Wish};
use crate::random::Random;
use redlatch_protocol::time::Time;
use redlatch_zookeeper::contender::{Contender, ContenderStep, Serial};
use redlatch_zookeeper::message::{EnsembleError, EnsembleReply, EnsembleRequest, MultiOperation};
use redlatch_zookeeper::session::Failure;
use std::collections::{BTreeSet, VecDeque};

#[derive(Debug)]
pub(super) struct Client {
    pub(super) number: usize,
    pub(super) session: i64,
    pub(super) wish: Wish,
    pub(super) contender: Contender,
    /// In flight, the oldest first. Those of former contenders and some deletes have no serial.
    pub(super) requests: VecDeque<(Option<Serial>, EnsembleRequest)>,
    /// Requests of former connections that are still on their way.
    underway: Vec<EnsembleRequest>,
    /// What it believes that it holds.
    pub(super) hold: Option<Hold>,
    is_over: bool,
    pub(super) is_leaving: bool,
    pub(super) grants: usize,
    /// What its session keeps alive, and looks after.
    kept: BTreeSet<String>,
    taste: Taste,
    pub(super) wrong: super::mutants::Wrong,
}

impl Client {
    pub(super) fn new(number: usize, taste: Taste, random: &mut Random) -> Self {
        let wish = Wish::new(taste, random);
        Self {
            number,
            session: number as i64,
            contender: wish.contender(!random.one_in(4)),
            wish,
            requests: VecDeque::new(),
            underway: Vec::new(),
            hold: None,
            is_over: false,
            is_leaving: false,
            grants: 0,
            kept: BTreeSet::new(),
            taste,
            wrong: super::mutants::Wrong::default(),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_over && self.requests.is_empty()
    }

    /// It releases what it holds, or waits for.
    pub(super) fn give_up(&mut self) {
        self.hold = None;
        self.contender.give_up();
    }

    /// A znode was removed by force. Others may have the lock, though the client does not know.
    pub(super) fn removed(&mut self, path: &str) {
        if self
            .hold
            .as_ref()
            .is_some_and(|hold| hold.paths.iter().any(|own| own == path))
        {
            self.hold = None;
        }
    }

    /// Its session finds out whether what it keeps is still there.
    pub(super) fn beat(&mut self, server: &Server) {
        let is_missing = |path: &&String| server.tree.znode(path).is_none();
        if let Some(path) = self.kept.iter().find(is_missing).cloned() {
            self.kept.remove(&path);
            self.contender.removed(&path);
        }
    }

    /// Does what the contender wants. Returns whether a lock was granted.
    pub(super) fn take_steps(&mut self, random: &mut Random) -> Result<bool, String> {
        let mut granted = false;
        while let Some(step) = self.contender.poll(Time::ZERO, Time::MAX) {
            match step {
                ContenderStep::Begin => {
                    let mut id = [0; 16];
                    id.fill_with(|| random.below(256) as u8);
                    self.contender.begin(id);
                }
                ContenderStep::Send(serial, request) => {
                    self.requests.push_back((Some(serial), request));
                }
                ContenderStep::Delete(serial, path) => {
                    self.kept.remove(&*path);
                    self.requests
                        .push_back((serial, EnsembleRequest::Delete(path)));
                }
                ContenderStep::Held(held) => {
                    self.hold = Some(Hold::new(&self.wish, &held)?);
                    self.grants += 1;
                    granted = true;
                }
                ContenderStep::Contended
                | ContenderStep::Refused(_)
                | ContenderStep::Lost
                | ContenderStep::CleanedUp(_) => {
                    self.hold = None;
                    self.is_over = true;
                }
                ContenderStep::Keep(path) => {
                    self.kept.insert(path.to_string());
                }
                ContenderStep::Forget(path) => {
                    self.kept.remove(&*path);
                }
                ContenderStep::Pause => {}
            }
        }
        if self.is_over && !self.is_leaving {
            self.is_over = false;
            self.wish = Wish::new(self.taste, random);
            self.contender = self.wish.contender(!random.one_in(4));
            for (serial, _) in &mut self.requests {
                *serial = None;
            }
            return Ok(self.take_steps(random)? || granted);
        }
        Ok(granted)
    }

    /// The oldest request is carried out and answered.
    pub(super) fn exchange(&mut self, server: &mut Server, random: &mut Random) {
        if self.exchange_wrongly(server) {
            return;
        }
        let Some((serial, request)) = self.requests.pop_front() else {
            return;
        };
        if matches!(request, EnsembleRequest::Sync(_)) && server.mistake != Mistake::SyncDoesNothing
        {
            // What has not come by now was refused: the session has moved.
            self.arrive(server, random);
            self.underway.clear();
        }
        let answer = server.execute(self.number, self.session, &request);
        self.hear(serial, &request, &answer);
    }

    pub(super) fn hear(
        &mut self,
        serial: Option<Serial>,
        request: &EnsembleRequest,
        answer: &Answer,
    ) {
        let Some(serial) = serial else { return };
        match EnsembleError::of_code(answer.error) {
            None => {
                let reply =
                    EnsembleReply::decode(request.form().kind, &answer.body).expect("a reply");
                self.contender.answered(serial, answer.zxid, Ok(reply));
            }
            Some(error) => {
                self.contender
                    .answered(serial, answer.zxid, Err(&Failure::Server(error)));
            }
        }
    }

    /// The server refuses the oldest request. A session sends a delete again.
    pub(super) fn throttle(&mut self) {
        let is_delete =
            |(_, request): &(_, EnsembleRequest)| matches!(request, EnsembleRequest::Delete(_));
        if self.requests.front().is_none_or(is_delete) {
            return;
        }
        if let Some((Some(serial), _)) = self.requests.pop_front() {
            let failure = Failure::Server(EnsembleError::ThrottledOperation);
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
        self.wrong.early.clear();
        let carried_out = random.below(self.requests.len() as u64 + 1) as usize;
        let mut deletes = VecDeque::new();
        for (index, (serial, request)) in std::mem::take(&mut self.requests).into_iter().enumerate()
        {
            if index < carried_out {
                server.execute(self.number, self.session, &request);
                server.forget_watches(self.number);
            } else if creates(&request) {
                self.underway.push(request.clone());
            }
            match (serial, &request) {
                (_, EnsembleRequest::Delete(_))
                    if server.mistake == Mistake::DeletesAreForgotten =>
                {
                    if let Some(serial) = serial {
                        self.contender.answered(serial, 0, Ok(EnsembleReply::Done));
                    }
                }
                (_, EnsembleRequest::Delete(_)) => deletes.push_back((serial, request)),
                (Some(serial), _) => {
                    self.contender
                        .answered(serial, 0, Err(&Failure::Unanswered));
                }
                (None, _) => {}
            }
        }
        self.requests = deletes;
        if server.mistake != Mistake::ConnectionsAreNotTold {
            self.contender.connected();
        }
    }

    /// The session ends, and the client is told.
    pub(super) fn expire(&mut self, server: &mut Server) {
        server.forget_watches(self.number);
        server.end_session(self.session);
        self.session += 1_000;
        self.underway.clear();
        self.wrong.early.clear();
        self.kept.clear();
        self.hold = None;
        self.contender.session_lost();
        for (serial, _) in std::mem::take(&mut self.requests) {
            if let Some(serial) = serial {
                self.contender
                    .answered(serial, 0, Err(&Failure::SessionLost));
            }
        }
    }
}

/// Does it create what belongs to a session? Transactions count, whatever they do.
fn creates(request: &EnsembleRequest) -> bool {
    match request {
        EnsembleRequest::Create(create) => super::is_sequential(create),
        EnsembleRequest::Multi(operations) => !operations
            .iter()
            .any(|operation| matches!(operation, MultiOperation::Check(_))),
        _ => false,
    }
}
