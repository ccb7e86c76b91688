//! The size of a history, what may happen in it, and the wrong rules.

use models::Change;
use redlatch_protocol::node::script::REIGN;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheme {
    pub(crate) groups: usize,
    pub(crate) servers: usize,
    pub(crate) clients: usize,
    /// In ticks: of each lock, and the longest one.
    pub(crate) ttl: u8,
    /// What clients assume, and how long a replaced master really goes on.
    pub(crate) bound: u8,
    pub(crate) goes_on: u8,
    /// Does the failover authority count its elections?
    pub(crate) has_epochs: bool,
    /// How many ticks a history has, and an attempt at most.
    pub(crate) ticks: u8,
    pub(crate) attempt: u8,
    /// Is a greeting answered as soon as it is written?
    pub(crate) greets_at_once: bool,
    /// Do clients try in a quarantine as well?
    pub(crate) tries_early: bool,
    /// Do holders extend, and do they release?
    pub(crate) extends: bool,
    pub(crate) releases: bool,
    pub(crate) faults: Faults,
    pub(crate) mistake: Option<Mistake>,
}

/// How often something happens at most, in all groups together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Faults {
    /// Attempts to get the lock, and to resume an earlier one by its token.
    pub(crate) attempts: u8,
    pub(crate) resumptions: u8,
    pub(crate) promotions: u8,
    pub(crate) restarts: u8,
    pub(crate) flushes: u8,
    pub(crate) evictions: u8,
    pub(crate) second_elections: u8,
    /// Clients that are replaced by ones that know nothing.
    pub(crate) new_clients: u8,
    /// Connections that end, and what was written on them is carried out later.
    pub(crate) late: u8,
}

/// A wrong rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Each vote counts from the greeting on.
    NoQuarantine,
    /// There is no marker: the quarantine is that of a client that has seen the change itself,
    CountedByWitness,
    /// and counts from when the master before was last heard.
    CountedFromLastHeard,
    /// A marker fits that has the run of the server.
    MarkerByRun,
    /// The check is written before the vote, or not at all, or its marker is not looked at.
    CheckBefore,
    NoCheck,
    MarkerIgnored,
    /// A replaced master is believed to stop at once.
    NoBound,
    /// An extension counts as soon as a reign is greeted, and sets a missing key then.
    ExtensionAtOnce,
    ReclaimAtOnce,
    /// A lock that is resumed by its token is extended and reclaimed as one that is held is,
    ResumedIsReclaimed,
    /// or counts in a quarantine if its key is there.
    ResumedInQuarantine,
    /// Elections do not count, or an idle session is not greeted again, or a server is greeted
    /// however long ago it was named.
    NoEpoch,
    NotGreetedAgain,
    NamedLongAgo,
    /// What was named is used for as long as the longest ttl, and not as the bound.
    NamedBeforeTheBound,
}

impl Mistake {
    /// The changes of scripts that make it.
    pub(crate) fn changes(self) -> Vec<Change> {
        match self {
            Self::MarkerByRun => vec![Change {
                scripts: &[REIGN],
                from: "run == ARGV[1] and of == id",
                to: "run == ARGV[1]",
            }],
            _ => Vec::new(),
        }
    }
}

impl Faults {
    pub(crate) const NONE: Self = Self {
        attempts: 0,
        resumptions: 0,
        promotions: 0,
        restarts: 0,
        flushes: 0,
        evictions: 0,
        second_elections: 0,
        new_clients: 0,
        late: 0,
    };
}

impl Scheme {
    /// One group whose replaced masters go on for as long as the bound, with all faults.
    pub(crate) const fn bounded() -> Self {
        Self {
            groups: 1,
            servers: 3,
            clients: 3,
            ttl: 3,
            bound: 2,
            goes_on: 2,
            has_epochs: false,
            ticks: 14,
            attempt: 9,
            greets_at_once: false,
            tries_early: true,
            extends: true,
            releases: false,
            faults: Faults {
                attempts: 6,
                promotions: 3,
                restarts: 1,
                flushes: 1,
                evictions: 1,
                new_clients: 3,
                late: 2,
                ..Faults::NONE
            },
            mistake: None,
        }
    }

    pub(crate) fn with(self, mistake: Mistake) -> Self {
        Self {
            mistake: Some(mistake),
            ..self
        }
    }

    /// The same with clients that release locks, or give them away, and resume them by their
    /// tokens.
    pub(crate) const fn resumed(self) -> Self {
        Self {
            releases: true,
            faults: Faults {
                resumptions: 3,
                ..self.faults
            },
            ..self
        }
    }

    pub(crate) fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// The tick at which all histories begin: the first reign is out of its quarantine.
    pub(crate) fn start(&self) -> u8 {
        self.ttl + self.bound.max(self.goes_on) + 1
    }
}
