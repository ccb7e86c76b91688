//! A thread that runs as a future: what waits in the library is the library's own, or written here
//! as it is there, and goes on when the simulation has the answer.

use crate::backend::Caller;
use crate::clock;
use crate::redlock::NodesCaller;
use crate::step::Step;
use redlatch_protocol::engine::{QueueWait, Request, Token};
use redlatch_protocol::node::{Ended, RoundOutcome};
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
    Queue(QueueWait),
    Until(Time),
    Message,
}

/// What a thread and the simulation have to tell each other.
#[derive(Default)]
struct Mailbox {
    wish: Option<Wish>,
    /// How a round or a wait in the nodes' queue has ended.
    ended: Option<Ended>,
    /// A pause has ended. Because the call is cancelled?
    is_pause_cut: Option<bool>,
    /// Requests without an outcome.
    posts: Vec<Request>,
    is_cancelled: bool,
    /// The call's waiter in the nodes' queue.
    waiter: Option<Token>,
}

/// The thread's side of it.
#[derive(Clone, Default)]
pub(crate) struct Line(Rc<RefCell<Mailbox>>);

impl Line {
    /// Sends a request to the nodes, and waits for the outcome.
    pub(crate) async fn submit(&self, request: Request) -> RoundOutcome {
        self.0.borrow_mut().wish = Some(Wish::Round(request));
        self.decision().await
    }

    pub(crate) async fn sleep(&self, until: Time) {
        let end = || (clock::now() >= until).then_some(());
        self.wait_for(Wish::Until(until), end).await;
    }

    /// Waits for a message of another thread.
    pub(crate) fn await_message(&self) {
        self.0.borrow_mut().wish = Some(Wish::Message);
    }

    /// Is the call cancelled?
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.borrow().is_cancelled
    }

    /// Notes the call's waiter in the nodes' queue, before it waits there.
    pub(crate) fn set_waiter(&self, waiter: Option<Token>) {
        self.0.borrow_mut().waiter = waiter;
    }

    async fn wait_for<T>(&self, wish: Wish, ready: impl FnMut() -> Option<T>) -> T {
        self.0.borrow_mut().wish = Some(wish);
        until_some(ready).await
    }

    fn take_ended(&self) -> Option<Ended> {
        self.0.borrow_mut().ended.take()
    }
}

impl Caller for Line {
    async fn pause_until(&self, time: Time) -> bool {
        let end = || self.0.borrow_mut().is_pause_cut.take();
        self.wait_for(Wish::Until(time), end).await
    }
}

impl NodesCaller for Line {
    fn round(&self, request: Request) -> Poll<RoundOutcome> {
        self.0.borrow_mut().wish = Some(Wish::Round(request));
        Poll::Pending
    }

    async fn decision(&self) -> RoundOutcome {
        until_some(|| self.take_ended().and_then(Ended::into_round)).await
    }

    async fn wait(&self, wait: QueueWait) -> bool {
        let ended = self.wait_for(Wish::Queue(wait), || self.take_ended()).await;
        matches!(ended, Ended::Wait { is_called: true })
    }

    fn post(&self, request: Request) {
        self.0.borrow_mut().posts.push(request);
    }
}

async fn until_some<T>(mut ready: impl FnMut() -> Option<T>) -> T {
    poll_fn(|_| ready().map_or(Poll::Pending, Poll::Ready)).await
}

/// The simulation's side: one operation of a thread.
pub(crate) struct Task<T> {
    line: Line,
    future: Pin<Box<dyn Future<Output = T>>>,
}

impl<T> Task<T> {
    pub(crate) fn new(line: Line, future: impl Future<Output = T> + 'static) -> Self {
        Self {
            line,
            future: Box::pin(future),
        }
    }

    /// Runs it until it has to wait.
    pub(crate) fn poll(&mut self) -> Step<T> {
        let mut context = Context::from_waker(Waker::noop());
        match self.future.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => Step::Done(outcome),
            Poll::Pending => match self.line.0.borrow_mut().wish.take() {
                Some(Wish::Round(request)) => Step::Send(request),
                Some(Wish::Queue(wait)) => Step::Wait(wait),
                Some(Wish::Until(until)) => Step::Pause(until),
                Some(Wish::Message) => Step::Receive,
                None => unreachable!("it was woken before its time"),
            },
        }
    }

    /// Takes how its round, or its wait in the nodes' queue, has ended.
    pub(crate) fn answer(&mut self, ended: Ended) {
        self.line.0.borrow_mut().ended = Some(ended);
    }

    /// Its pause has ended. Because its call is cancelled?
    pub(crate) fn end_pause(&mut self, is_cut: bool) {
        self.line.0.borrow_mut().is_pause_cut = Some(is_cut);
    }

    /// Its call is cancelled.
    pub(crate) fn cancel(&mut self) {
        self.line.0.borrow_mut().is_cancelled = true;
    }

    /// The call's waiter in the nodes' queue.
    pub(crate) fn waiter(&self) -> Option<Token> {
        self.line.0.borrow().waiter
    }

    /// The requests without an outcome that it has sent since it was asked for them last.
    pub(crate) fn posts(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.line.0.borrow_mut().posts)
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Task")
    }
}
