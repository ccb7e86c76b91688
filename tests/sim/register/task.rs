//! A thread that runs as a future: what waits for a round in the library is written here as it is
//! there, and goes on when the simulation has the answer.

use super::history::{Id, Outcome};
use crate::step::Step;
use redlatch_protocol::engine::Request;
use redlatch_protocol::node::RoundOutcome;
use redlatch_protocol::time::Time;
use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// What a thread waits for.
enum Wish {
    Round(Request),
    Until(Time),
}

/// What a thread and the simulation have to tell each other.
#[derive(Default)]
struct Mailbox {
    wish: Option<Wish>,
    answer: Option<RoundOutcome>,
    /// Requests without an outcome.
    posts: Vec<Request>,
}

/// The thread's side of it.
#[derive(Clone, Default)]
pub(super) struct Line(Rc<RefCell<Mailbox>>);

impl Line {
    /// Sends a request to the nodes, and waits for the outcome.
    pub(super) async fn submit(&self, request: Request) -> RoundOutcome {
        self.wait(Wish::Round(request), || self.0.borrow_mut().answer.take())
            .await
    }

    pub(super) fn post(&self, request: Request) {
        self.0.borrow_mut().posts.push(request);
    }

    /// Sleeps until `until`; `now` tells the time.
    pub(super) async fn sleep(&self, until: Time, now: impl Fn() -> Time) {
        self.wait(Wish::Until(until), || (now() >= until).then_some(()))
            .await;
    }

    /// Waits until another thread has left something, and has woken this one.
    pub(super) async fn receive<T>(&self, received: impl FnMut() -> Option<T>) -> T {
        self.wait(Wish::Until(Time::MAX), received).await
    }

    async fn wait<T>(&self, wish: Wish, mut ready: impl FnMut() -> Option<T>) -> T {
        self.0.borrow_mut().wish = Some(wish);
        poll_fn(|_| ready().map_or(Poll::Pending, Poll::Ready)).await
    }
}

/// The simulation's side: one operation of a thread.
pub(crate) struct Task {
    id: Id,
    line: Line,
    future: Pin<Box<dyn Future<Output = Outcome>>>,
}

impl Task {
    pub(super) fn new(id: Id, line: Line, future: impl Future<Output = Outcome> + 'static) -> Self {
        Self {
            id,
            line,
            future: Box::pin(future),
        }
    }

    /// Runs it until it has to wait.
    pub(crate) fn poll(&mut self) -> Step<(Id, Outcome)> {
        let mut context = Context::from_waker(Waker::noop());
        match self.future.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => Step::Done((self.id, outcome)),
            Poll::Pending => match self.line.0.borrow_mut().wish.take() {
                Some(Wish::Round(request)) => Step::Send(request),
                Some(Wish::Until(until)) => Step::Pause(until),
                None => unreachable!("it was woken before its time"),
            },
        }
    }

    /// Takes the outcome of its request.
    pub(crate) fn answer(&mut self, result: RoundOutcome) {
        self.line.0.borrow_mut().answer = Some(result);
    }

    /// The requests without an outcome that it has sent since it was asked for them last.
    pub(crate) fn posts(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.line.0.borrow_mut().posts)
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Task")
    }
}
