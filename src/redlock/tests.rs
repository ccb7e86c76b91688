//! A call that has no thread: it waits in a mailbox, and goes on wherever it is polled.

use super::call::{Call, NodesCaller};
use super::other_data::LastLooks;
use super::*;
use crate::backend::Caller;
use crate::backend::fixture::cancellation;
use crate::clock::Time;
use crate::engine::{Drift, Node, QueueWait, Tally, Vote, Votes, Wait};
use std::future::{Future, poll_fn};
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

/// What a call has asked for, and what the nodes have said.
#[derive(Default)]
struct Mailbox {
    request: Mutex<Option<Request>>,
    outcome: Mutex<Option<RoundOutcome>>,
}

impl Caller for Arc<Mailbox> {
    async fn pause_until(&self, _: Time) -> bool {
        false
    }
}

impl NodesCaller for Arc<Mailbox> {
    fn round(&self, request: Request) -> Poll<RoundOutcome> {
        *self.request.lock().unwrap() = Some(request);
        Poll::Pending
    }

    fn decision(&self) -> impl Future<Output = RoundOutcome> {
        poll_fn(|_| {
            let outcome = self.outcome.lock().unwrap().take();
            outcome.map_or(Poll::Pending, Poll::Ready)
        })
    }

    async fn wait(&self, _: QueueWait) -> bool {
        false
    }

    fn post(&self, _: Request) {}
}

/// A call that owns all that it needs.
async fn lock(mailbox: Arc<Mailbox>) -> Result<Acquired, Error> {
    let rules = Arc::new(Rules::new(1, Drift::from_factor(0.01).unwrap()));
    let process = OwnerProcess::here();
    let cancellation = cancellation::<Redlock>();
    let ttl = Ttl::from_duration(Duration::from_secs(10)).unwrap();
    let key: Arc<[u8]> = Arc::from(&b"key"[..]);
    let spec = LockSpec {
        key: Arc::clone(&key),
        attributes: None,
        ttl,
        min_validity: Duration::ZERO,
        keep_alive: false,
        max_hold: None,
        hold_at_least: Duration::ZERO,
        wait: Wait::Forever,
        thread: None,
        call: cancellation.call(None),
    };
    let mut acquire = Acquire::new(Arc::clone(&rules), key, ttl, spec.wait);
    let mut call = Call {
        caller: &mailbox,
        spec: &spec,
        head: None,
        recorder: None,
        rules: &rules,
        owner_process: &process,
        last_looks: &LastLooks::default(),
        looked: None,
        reports: Vec::new(),
    };
    call.run(&mut acquire).await
}

#[test]
fn a_call_without_a_thread_goes_on_in_whichever_polls_it() {
    let mailbox = Arc::new(Mailbox::default());
    let mut call = Box::pin(lock(Arc::clone(&mailbox)));
    let mut context = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut context).is_pending());
    let request = mailbox.request.lock().unwrap().take();
    let token = request.and_then(|request| request.token()).unwrap();
    let polled = thread::scope(|scope| {
        let other = scope.spawn(move || {
            let mut context = Context::from_waker(Waker::noop());
            assert!(
                call.as_mut().poll(&mut context).is_pending(),
                "nobody has answered"
            );
            call
        });
        let mut call = other.join().unwrap();
        let mut votes = Votes::new(Tally::new(1));
        votes.tally.cast(Node::new(0), Vote::Granted);
        *mailbox.outcome.lock().unwrap() = Some(RoundOutcome::of(votes));
        call.as_mut().poll(&mut context)
    });
    match polled {
        Poll::Ready(Ok(Acquired::Held(held))) => assert_eq!(held.token, token),
        other => panic!("{other:?}"),
    }
}
