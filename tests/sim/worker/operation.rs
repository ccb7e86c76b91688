//! The operations of a thread, one at a time.

use super::operator::Operator;
use crate::checker::{Kind, Name, name};
use crate::register::{self, Id, Task};
use redlatch_protocol::engine::{
    Acquire, Acquired, Command, Extend, Extended, Input, NodeSet, Operation, Release, Request, Step,
};
use redlatch_protocol::time::Time;

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there are a handful of them in a simulation"
)]
pub(super) enum Running {
    Acquire(Acquire),
    Extend(Extend),
    Release(Release),
    Ping(Option<Request>),
    Operator(Operator),
    Register(Task),
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
    pub(super) fn poll(&mut self) -> Step<Outcome> {
        fn of<T>(step: Step<T>, outcome: impl FnOnce(T) -> Outcome) -> Step<Outcome> {
            match step {
                Step::Send(request) => Step::Send(request),
                Step::Pause(until) => Step::Pause(until),
                Step::Wait(wait) => Step::Wait(wait),
                Step::Done(done) => Step::Done(outcome(done)),
            }
        }
        match self {
            Self::Acquire(acquire) => of(acquire.poll(), Outcome::Acquired),
            Self::Extend(extend) => of(extend.poll(), Outcome::Extended),
            Self::Release(release) => of(release.poll(), |_| Outcome::Released),
            Self::Operator(operator) => operator.poll(Outcome::Looked),
            Self::Register(task) => of(task.poll(), |(id, outcome)| Outcome::Register(id, outcome)),
            Self::Ping(ping) => match ping.take() {
                Some(ping) => Step::Send(ping),
                None => Step::Done(Outcome::Released),
            },
        }
    }

    pub(super) fn handle(&mut self, now: Time, input: Input) {
        match self {
            Self::Acquire(acquire) => acquire.handle(now, input),
            Self::Extend(extend) => extend.handle(now, input),
            Self::Release(release) => release.handle(now, input),
            Self::Operator(operator) => operator.handle(now, input),
            Self::Ping(_) | Self::Register(_) => {}
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
