//! The rule that says until when a session may be relied on, as its text says it and without any
//! cleverness, and rules that are wrong.

use redlatch_zookeeper::validity::Reach;

/// What a client sees of its connections. Times are milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Observation {
    /// A connection was opened: the request was sent, and answered.
    Connected { sent_at: u64, at: u64 },
    /// A request was sent.
    Sent { at: u64, reach: Reach },
    /// The oldest request of the connection was answered.
    Answered { at: u64 },
}

/// From `known_at` on, the client believes that its session lives until `valid_until`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promise {
    pub(crate) known_at: u64,
    pub(crate) valid_until: u64,
}

/// What must be there for a promise, in the words of the module `validity`.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    /// How far b goes at least.
    last: Reach,
    /// Must there be an m, and how long after a?
    middle: Option<u64>,
    /// Does the connect request need a b?
    connect_needs_last: bool,
    /// Does the timeout count from r instead of s?
    counts_from_answer: bool,
}

impl Rule {
    pub(crate) const RIGHT: Self = Self {
        last: Reach::Majority,
        middle: Some(super::ensemble::TIMEOUT / 4),
        connect_needs_last: true,
        counts_from_answer: false,
    };

    pub(crate) const WRONG: [(&str, Self); 6] = [
        (
            "pings count as the last",
            Self {
                last: Reach::Server,
                ..Self::RIGHT
            },
        ),
        (
            "a sync counts as the last",
            Self {
                last: Reach::Leader,
                ..Self::RIGHT
            },
        ),
        (
            "no middle",
            Self {
                middle: None,
                ..Self::RIGHT
            },
        ),
        (
            "no distance to the middle",
            Self {
                middle: Some(0),
                ..Self::RIGHT
            },
        ),
        (
            "a connect request alone",
            Self {
                connect_needs_last: false,
                ..Self::RIGHT
            },
        ),
        (
            "from the answer on",
            Self {
                counts_from_answer: true,
                ..Self::RIGHT
            },
        ),
    ];

    /// The promises of this rule, each with the time at which it is known.
    pub(crate) fn promises(self, observations: &[Observation]) -> Vec<Promise> {
        let mut promises = Vec::new();
        let mut connection = Connection::default();
        let mut next = 0;
        for observation in observations {
            match *observation {
                Observation::Connected { sent_at, at } => {
                    connection = Connection {
                        connect: Some((sent_at, at)),
                        requests: Vec::new(),
                    };
                    next = 0;
                    if !self.connect_needs_last {
                        promises.push(self.promise(sent_at, at, at));
                    }
                }
                Observation::Sent { at, reach } => {
                    connection.requests.push(Request {
                        sent_at: at,
                        reach,
                        answered_before: next,
                        answered_at: None,
                    });
                }
                Observation::Answered { at } => {
                    connection.requests[next].answered_at = Some(at);
                    let promise = self.proven_by(&connection, next);
                    promises.extend(
                        promise
                            .map(|(sent_at, answered_at)| self.promise(sent_at, answered_at, at)),
                    );
                    next += 1;
                }
            }
        }
        promises
    }

    fn promise(self, sent_at: u64, answered_at: u64, known_at: u64) -> Promise {
        let from = if self.counts_from_answer {
            answered_at
        } else {
            sent_at
        };
        Promise {
            known_at,
            valid_until: from + super::ensemble::TIMEOUT,
        }
    }

    /// When the latest request was sent and answered that is proven by this one as a b.
    fn proven_by(self, connection: &Connection, last: usize) -> Option<(u64, u64)> {
        let b = connection.requests[last];
        if b.reach < self.last {
            return None;
        }
        let Some(distance) = self.middle else {
            return Some((b.sent_at, b.answered_at?));
        };
        // Those that were answered when b was sent.
        let before = &connection.requests[..b.answered_before];
        let is_middle = |m: &&Request| m.reach >= Reach::Leader.min(self.last);
        // The later m is, the later a may be.
        let m = before.iter().rfind(is_middle);
        let is_first =
            |a: &&Request, m: &Request| a.answered_at.is_some_and(|at| at + distance <= m.sent_at);
        let a = m.and_then(|m| before.iter().rfind(|a| is_first(a, m)));
        let latest = a.and_then(|a| Some((a.sent_at, a.answered_at?)));
        let connect = connection
            .connect
            .filter(|(_, answered_at)| *answered_at <= b.sent_at);
        latest.max(connect)
    }
}

#[derive(Default)]
struct Connection {
    connect: Option<(u64, u64)>,
    requests: Vec<Request>,
}

#[derive(Clone, Copy)]
struct Request {
    sent_at: u64,
    reach: Reach,
    /// How many requests of the connection were answered when it was sent.
    answered_before: usize,
    answered_at: Option<u64>,
}
