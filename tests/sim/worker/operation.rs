//! The operations of a thread, one at a time.

use super::operator::Operator;
use crate::checker::{Kind, Name, name};
use crate::register::{self, Id};
use crate::step::Step;
use crate::task::Task;
use redlatch_protocol::engine::{
    Acquired, Command, Extended, Extension, HeldLock, Input, NodeSet, Release, Request, Rules, Ttl,
    Verdict,
};
use redlatch_protocol::time::Time;
use std::sync::Arc;

#[derive(Debug)]
pub(super) enum Running {
    Acquire(Task<Acquired>),
    /// What is sent, and then its outcome.
    Extend {
        extension: Extension,
        rules: Arc<Rules>,
        step: Option<Step<Extended>>,
    },
    Release {
        held: HeldLock,
        keep_for: Option<Ttl>,
        began: Time,
        step: Option<Step<Verdict>>,
    },
    Ping(Option<Request>),
    Operator(Operator),
    Register(Task<(Id, register::Outcome)>),
}

/// A request to the nodes about a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) token: Name,
    pub(super) kind: Kind,
    /// Is one of several permits asked for?
    pub(super) is_permit: bool,
    pub(super) nodes: NodeSet,
    pub(super) since: u64,
    /// When its round ends, by the client's clock, if no connection is being made.
    pub(super) deadline: Time,
}

#[derive(Debug)]
pub(super) enum Outcome {
    Acquired(Acquired),
    Extended(Extended),
    Released,
    Looked,
    /// Of this call about a register.
    Register(Id, register::Outcome),
}

impl Running {
    pub(super) fn extending(extension: Extension, rules: &Arc<Rules>) -> Self {
        let step = match extension.request(rules) {
            Ok(request) => Step::Send(request),
            Err(extended) => Step::Done(extended),
        };
        Self::Extend {
            extension,
            rules: Arc::clone(rules),
            step: Some(step),
        }
    }

    pub(super) fn releasing(
        held: HeldLock,
        keep_for: Option<Ttl>,
        began: Time,
        rules: &Rules,
    ) -> Self {
        let release = Release {
            held: &held,
            keep_for,
            began,
        };
        let step = Some(Step::Send(release.request(rules)));
        Self::Release {
            held,
            keep_for,
            began,
            step,
        }
    }

    pub(super) fn poll(&mut self) -> Step<Outcome> {
        const POLLED: &str = "the votes are handled before the next poll";
        match self {
            Self::Acquire(task) => task.poll().map(Outcome::Acquired),
            Self::Extend { step, .. } => step.take().expect(POLLED).map(Outcome::Extended),
            Self::Release { step, .. } => step.take().expect(POLLED).map(|_| Outcome::Released),
            Self::Operator(operator) => operator.poll(Outcome::Looked),
            Self::Register(task) => task
                .poll()
                .map(|(id, outcome)| Outcome::Register(id, outcome)),
            Self::Ping(ping) => match ping.take() {
                Some(ping) => Step::Send(ping),
                None => Step::Done(Outcome::Released),
            },
        }
    }

    pub(super) fn handle(&mut self, now: Time, input: Input) {
        match (self, input) {
            (
                Self::Extend {
                    extension,
                    rules,
                    step,
                },
                Input::Votes(votes),
            ) => *step = Some(Step::Done(extension.clone().conclude(now, &votes, rules))),
            (
                Self::Release {
                    held,
                    keep_for,
                    began,
                    step,
                },
                Input::Votes(votes),
            ) => {
                let release = Release {
                    held,
                    keep_for: *keep_for,
                    began: *began,
                };
                *step = Some(Step::Done(release.conclude(&votes)));
            }
            (Self::Operator(operator), input) => operator.handle(now, input),
            (Self::Ping(_) | Self::Register(_) | Self::Acquire(_), _) => {}
            (Self::Extend { .. } | Self::Release { .. }, input) => {
                panic!("{input:?} in a single round")
            }
        }
    }
}

impl Asked {
    pub(super) fn of(request: &Request, now: u64) -> Option<Self> {
        let kind = match request.command {
            Command::Claim(_) => Kind::Take,
            Command::Queue(_) => Kind::Queue,
            Command::Keep(_) if request.is_answered() => Kind::Extend,
            Command::Remove(_) if request.is_answered() => Kind::Remove,
            Command::Fence(_) => Kind::Fence,
            _ => return None,
        };
        let token = name(request.lock()?.token.as_bytes());
        let is_permit = kind == Kind::Take && request.share().is_some_and(|it| it.permits() > 0);
        let Request {
            nodes, deadline, ..
        } = *request;
        Some(Self {
            token,
            kind,
            is_permit,
            nodes,
            since: now,
            deadline,
        })
    }
}
