//! Shared by the tests of the engine: votes as text, and an acquisition run at literal times.

use super::*;
use std::sync::Arc;

/// How the tests name the kinds of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Acquire,
    Handoff,
    Turn,
    Extend,
    Restore,
    Release,
    Undo,
    Fence,
    Ping,
    #[cfg(feature = "diagnostics")]
    Ask,
    Queue,
    Listen,
    #[cfg(feature = "groups")]
    Reign,
    Custom,
}

impl Request {
    pub(crate) fn verb(&self) -> Verb {
        match &self.command {
            Command::Claim(Claim {
                before: Before::Nothing,
                ..
            }) => Verb::Acquire,
            Command::Claim(Claim {
                before: Before::Predecessor(_),
                ..
            }) => Verb::Handoff,
            Command::Claim(Claim {
                before: Before::Turn(_),
                ..
            }) => Verb::Turn,
            Command::Keep(Keep {
                restores: false, ..
            }) => Verb::Extend,
            Command::Keep(Keep { restores: true, .. }) => Verb::Restore,
            Command::Remove(Removal {
                is_awaited: true, ..
            }) => Verb::Release,
            Command::Remove(Removal {
                is_awaited: false, ..
            }) => Verb::Undo,
            Command::Fence(_) => Verb::Fence,
            Command::Ping(_) => Verb::Ping,
            #[cfg(feature = "diagnostics")]
            Command::Ask(_) => Verb::Ask,
            Command::Queue(_) => Verb::Queue,
            Command::Listen(_) => Verb::Listen,
            #[cfg(feature = "groups")]
            Command::Reign(_) => Verb::Reign,
            Command::Custom(_) => Verb::Custom,
        }
    }

    pub(crate) fn claim_mut(&mut self) -> &mut Claim {
        match &mut self.command {
            Command::Claim(claim) => claim,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn predecessor_mut(&mut self) -> &mut Predecessor {
        match &mut self.claim_mut().before {
            Before::Predecessor(before) => before,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn removal_mut(&mut self) -> &mut Removal {
        match &mut self.command {
            Command::Remove(removal) => removal,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn entry_mut(&mut self) -> &mut QueueEntry {
        match &mut self.command {
            Command::Queue(entry) => entry,
            other => panic!("{other:?}"),
        }
    }
}

/// Five nodes and the defaults.
pub(super) fn rules(nodes: usize) -> Arc<Rules> {
    Arc::new(Rules::new(nodes, Drift::from_factor(0.01).unwrap()))
}

/// Entropy with fixed bytes in place of random ones.
pub(super) fn draw(number: u64) -> Entropy {
    let mut bytes = [0; Entropy::LEN];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[20..].copy_from_slice(&number.to_le_bytes());
    Entropy::from_bytes(bytes)
}

/// `y` granted, `n` refused, `f` failed, `-` not in yet. Written to all of them.
pub(super) fn votes_of(votes: &str) -> Votes {
    let mut tally = Tally::new(votes.len());
    for (index, vote) in votes.bytes().enumerate() {
        match vote {
            b'y' => assert!(tally.cast(Node::new(index), Vote::Granted)),
            b'n' => assert!(tally.cast(Node::new(index), Vote::Refused)),
            b'f' => assert!(tally.cast(Node::new(index), Vote::Failed)),
            _ => {}
        }
    }
    Votes {
        sent: NodeSet::all(votes.len()),
        ..Votes::new(tally)
    }
}

/// The votes for a fenced lock, with the counter in each node's answer; zero for none.
pub(super) fn fenced_votes(votes: &str, counters: [u64; 5]) -> Votes {
    let mut votes = votes_of(votes);
    for (index, counter) in counters
        .into_iter()
        .enumerate()
        .filter(|(_, counter)| *counter > 0)
    {
        let node = Node::new(index);
        votes
            .counters
            .note(node, counter, votes.tally.granted.contains(node));
    }
    votes
}

/// A lock of five nodes taken at `since` for `ttl`, both in milliseconds.
pub(super) fn held_lock(since: u64, ttl: u64) -> HeldLock {
    let ttl = Ttl::from_duration(Duration::from_millis(ttl)).unwrap();
    let since = Time::from_millis(since);
    HeldLock {
        key: Arc::from(&b"key"[..]),
        token: draw(9).token,
        attributes: None,
        fence: None,
        valid_until: since.after(Drift::from_factor(0.01).unwrap().validity(ttl)),
        since,
        ttl,
        ttl_longest: ttl,
        nodes: NodeSet::all(5),
        waiter: None,
        is_awaited: false,
        session: None,
    }
}

/// The token of the lock in a request.
pub(super) fn token_of(request: &Request) -> Token {
    request.lock().expect("it is about a lock").token
}

/// Runs an acquisition step by step in a test. Times are in milliseconds.
pub(super) struct Script {
    operation: Acquire,
}

impl Script {
    pub(super) fn new(operation: Acquire) -> Self {
        Self { operation }
    }

    /// The state machine, for what only it has.
    pub(super) fn operation(&mut self) -> &mut Acquire {
        &mut self.operation
    }

    pub(super) fn attempt(&mut self, now: u64, draw: Entropy) -> Request {
        self.attempt_at(Time::from_millis(now), draw)
    }

    pub(super) fn attempt_at(&mut self, now: Time, draw: Entropy) -> Request {
        self.wake_at(now, draw).request()
    }

    /// Ends a pause. The next step is the caller's to look at.
    pub(super) fn wake_at(&mut self, now: Time, draw: Entropy) -> &mut Self {
        assert!(self.wait() <= now);
        self.operation.handle(now, Input::Attempt(draw));
        self
    }

    /// Begins an attempt after the deadline.
    pub(super) fn oversleep(&mut self, now: u64, draw: Entropy) {
        self.operation
            .handle(Time::from_millis(now), Input::Attempt(draw));
    }

    /// Ends a wait in the nodes' queue: a majority reserves the lock.
    pub(super) fn called(&mut self, now: u64, draw: Entropy) -> &mut Self {
        self.called_at(Time::from_millis(now), draw)
    }

    pub(super) fn called_at(&mut self, now: Time, draw: Entropy) -> &mut Self {
        self.queue_wait();
        self.operation.handle(now, Input::Attempt(draw));
        self
    }

    /// The turn of a waiter that is called now and from now on, and when it begins.
    pub(super) fn turn(&mut self, now: Time, draw: Entropy) -> (Time, Request) {
        match self.called_at(now, draw).poll() {
            Step::Send(request) => (now, request),
            Step::Pause(until) => {
                self.operation.handle(until, Input::Attempt(draw));
                (until, self.called_at(until, draw).request())
            }
            other => panic!("{other:?} instead of a turn"),
        }
    }

    /// Ends a wait in the nodes' queue: there is something to ask, or its time has come.
    pub(super) fn not_called(&mut self, now: u64) -> &mut Self {
        self.not_called_at(Time::from_millis(now))
    }

    pub(super) fn not_called_at(&mut self, now: Time) -> &mut Self {
        self.operation.handle(now, Input::NotCalled);
        self
    }

    /// The nodes' votes.
    pub(super) fn answer(&mut self, now: u64, votes: Votes) -> &mut Self {
        self.answer_at(Time::from_millis(now), votes)
    }

    pub(super) fn answer_at(&mut self, now: Time, votes: Votes) -> &mut Self {
        self.operation.handle(now, Input::Votes(votes));
        self
    }

    pub(super) fn request(&mut self) -> Request {
        match self.poll() {
            Step::Send(request) => request,
            other => panic!("{other:?} instead of a request"),
        }
    }

    /// The wait in the nodes' queue.
    pub(super) fn queue_wait(&mut self) -> QueueWait {
        match self.poll() {
            Step::Wait(wait) => wait,
            other => panic!("{other:?} instead of a wait"),
        }
    }

    pub(super) fn cancel(&mut self, now: u64) -> &mut Self {
        self.operation
            .handle(Time::from_millis(now), Input::Cancelled);
        self
    }

    fn poll(&mut self) -> Step {
        self.operation.poll()
    }

    pub(super) fn undo(&mut self) -> Request {
        let request = self.request();
        assert_eq!(request.verb(), Verb::Undo);
        request
    }

    pub(super) fn wait(&mut self) -> Time {
        self.wait_or_done().expect("it should wait")
    }

    pub(super) fn done(&mut self) -> Acquired {
        self.wait_or_done().expect_err("it should be over")
    }

    #[expect(
        clippy::result_large_err,
        reason = "it is called a few times in a test"
    )]
    pub(super) fn wait_or_done(&mut self) -> Result<Time, Acquired> {
        match self.poll() {
            Step::Pause(until) => Ok(until),
            Step::Done(outcome) => Err(outcome),
            other => panic!("{other:?} instead of a rest"),
        }
    }
}
