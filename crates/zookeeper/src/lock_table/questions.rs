//! Questions: requests that belong to no contender of this client, such as an inspection.

use super::entry::{LockStage, Outcome};
use super::{Asker, LockTable};
use crate::message::{EnsembleError, EnsembleReply, EnsembleRequest, MultiOperation};
use crate::session::{EnsembleAnswer, Failure};
use crate::validity::Reach;
use redlatch_protocol::engine::{Token, Vote};
use redlatch_protocol::time::Time;

/// On how many connections the requests of a question are written, if each is lost. The answer
/// itself may be why: a list that is too long ends the connection on which all locks depend.
const TIMES_MAX: u32 = 3;

/// How often a question has failed.
#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    /// On how many connections it was written.
    written: u32,
    /// How many servers could not be connected to.
    unreached: usize,
}

/// Some requests, and the answers to them.
#[derive(Debug)]
pub(super) struct OpenQuestion<W> {
    pub(super) waiter: W,
    pub(super) until: Time,
    requests: Vec<EnsembleRequest>,
    failures: Failures,
    /// Which connection was the latest when they were last sent, and whether it was ready.
    sent_on: (u64, bool),
    answers: Vec<Option<EnsembleAnswer>>,
    /// The lock whose znodes are checked, and the end that it gets if they are there.
    checks: Option<(Token, Time)>,
}

impl<W> LockTable<W> {
    /// Sends requests that change nothing of this client's locks, in their order, and collects the
    /// answers.
    pub fn ask(&mut self, now: Time, requests: Vec<EnsembleRequest>, until: Time, waiter: W) {
        self.begin(now, (waiter, until), requests, Failures::default(), None);
        self.settle(now);
    }

    /// Checks that the znodes of a held lock are there. If they are, the lock gets this end, unless
    /// it has a later one. The outcome is a [`Vote`].
    pub fn check(&mut self, now: Time, token: Token, end: Time, until: Time, waiter: W) {
        let held = self.is_held(&token) && now < self.valid.get();
        let request = self
            .entries
            .get(&token)
            .and_then(|entry| entry.contender.check_of_held());
        match request.filter(|_| held) {
            Some(request) => {
                let none = Failures::default();
                self.begin(
                    now,
                    (waiter, until),
                    vec![request],
                    none,
                    Some((token, end)),
                );
            }
            None => self
                .outcomes
                .push_back((waiter, Outcome::Voted(Vote::Refused))),
        }
        self.settle(now);
    }

    /// Sends all requests of a question, which has failed so often before.
    fn begin(
        &mut self,
        now: Time,
        (waiter, until): (W, Time),
        requests: Vec<EnsembleRequest>,
        failures: Failures,
        checks: Option<(Token, Time)>,
    ) {
        let number = self.next_question;
        self.next_question += 1;
        let sent_on = (self.connections, self.session.is_ready());
        for (index, request) in requests.iter().enumerate() {
            self.session
                .send(now, Asker::Question(number, index), request.clone());
        }
        let answers = requests.iter().map(|_| None).collect();
        let question = OpenQuestion {
            waiter,
            until,
            requests,
            failures,
            sent_on,
            answers,
            checks,
        };
        self.questions.insert(number, question);
    }

    /// Takes the answer to one request of a question. If the connection was lost before, all of
    /// them are sent again on the next one, unless they delete something.
    pub(super) fn answered_question(
        &mut self,
        now: Time,
        number: u64,
        index: usize,
        answer: EnsembleAnswer,
    ) {
        let connections = self.connections;
        let Some(question) = self.questions.get_mut(&number) else {
            return;
        };
        if question.is_lost(&answer) && now < question.until {
            // A connection that was never made says nothing against asking again.
            let (before, was_ready) = question.sent_on;
            question.failures.written += u32::from(was_ready || connections > before);
            if question.failures.written < TIMES_MAX {
                let call = self.questions.remove(&number);
                let Some(OpenQuestion {
                    waiter,
                    until,
                    requests,
                    failures,
                    checks,
                    ..
                }) = call
                else {
                    return;
                };
                return self.begin(now, (waiter, until), requests, failures, checks);
            }
        }
        question.answers[index] = Some(answer);
        if question.answers.iter().all(Option::is_some) {
            self.conclude(now, number);
        }
    }

    /// Ends the questions whose time has passed.
    pub(super) fn end_questions(&mut self, now: Time) {
        let questions = self.questions.iter();
        let over = questions.filter(|(_, question)| question.until <= now);
        let over: Vec<u64> = over.map(|(number, _)| *number).collect();
        for number in over {
            self.conclude(now, number);
        }
    }

    /// A server could not be connected to. Ends the questions for which all have been tried. Not
    /// the check of a lock, which is held for as long as its session lives.
    pub(super) fn end_unreached_questions(&mut self, now: Time) {
        let servers = self.session.servers();
        let mut over = Vec::new();
        for (number, question) in &mut self.questions {
            if question.checks.is_some() {
                continue;
            }
            question.failures.unreached += 1;
            if question.failures.unreached >= servers {
                over.push(*number);
            }
        }
        for number in over {
            self.conclude(now, number);
        }
    }

    fn conclude(&mut self, now: Time, number: u64) {
        let Some(question) = self.questions.remove(&number) else {
            return;
        };
        let outcome = match question.checks {
            None => Outcome::Answered {
                server: self.session.server(),
                answers: question.answers,
            },
            Some((token, end)) => {
                let mut vote = vote(question.answers.first().and_then(Option::as_ref));
                if vote == Vote::Granted {
                    // It may have ended since the check was sent, and its znodes be deleted.
                    match self.entries.get_mut(&token).map(|entry| &mut entry.stage) {
                        Some(LockStage::Held(held)) if now < self.valid.get() => {
                            held.end = held.end.max(end);
                            self.set_alarm(token);
                        }
                        _ => vote = Vote::Refused,
                    }
                }
                Outcome::Voted(vote)
            }
        };
        self.outcomes.push_back((question.waiter, outcome));
    }
}

impl<W> OpenQuestion<W> {
    /// Is this answer missing because of a connection, and can another one bring it? A lock that is
    /// checked ends with its session.
    fn is_lost(&self, answer: &EnsembleAnswer) -> bool {
        let is_lost = match answer.reply() {
            Err(Failure::Unanswered) => true,
            Err(Failure::SessionLost) => self.checks.is_none(),
            _ => false,
        };
        is_lost && self.requests.iter().all(changes_nothing)
    }
}

fn changes_nothing(request: &EnsembleRequest) -> bool {
    match request {
        EnsembleRequest::Multi(operations) => operations
            .iter()
            .all(|operation| matches!(operation, MultiOperation::Check(_))),
        request => request.form().reach != Some(Reach::Majority),
    }
}

/// What the answer to a check says about the lock.
fn vote(answer: Option<&EnsembleAnswer>) -> Vote {
    let error = match answer.map(EnsembleAnswer::reply) {
        Some(Ok(EnsembleReply::Results(results))) => results.error(),
        Some(Err(Failure::Server(error))) => Some(*error),
        Some(Err(Failure::SessionLost)) => return Vote::Refused,
        None | Some(_) => return Vote::Failed,
    };
    match error {
        None => Vote::Granted,
        Some(EnsembleError::NoNode) => Vote::Refused,
        Some(_) => Vote::Failed,
    }
}
