//! The size of a history, what may happen in it, and the wrong rules.

use models::Change;
use redlatch_protocol::node::history::Replicas;
use redlatch_protocol::node::script::REIGN_ACKNOWLEDGED;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheme {
    pub(crate) servers: usize,
    /// How many replicas clients assume.
    pub(crate) replicas: u32,
    pub(crate) clients: usize,
    pub(crate) kind: Kind,
    /// In ticks, of each lock; and how many ticks a history has.
    pub(crate) ttl: u8,
    pub(crate) ticks: u8,
    /// By how many ticks the clock of the second server is ahead, and what clients assume.
    pub(crate) skew: u8,
    pub(crate) assumed_skew: u8,
    /// Does the failover authority count its elections?
    pub(crate) has_epochs: bool,
    pub(crate) faults: Faults,
    pub(crate) mistake: Option<Mistake>,
}

/// What clients ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// A lock with a fencing token.
    Fenced,
    /// The only permit.
    Permit,
    /// A lock for which clients join the queue first.
    Queued,
}

/// How often something happens at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Faults {
    /// Attempts to get the lock, and to resume an earlier one by its token.
    pub(crate) attempts: u8,
    pub(crate) resumptions: u8,
    pub(crate) promotions: u8,
    pub(crate) restarts: u8,
    pub(crate) saves: u8,
    pub(crate) flushes: u8,
    pub(crate) evictions: u8,
    /// Links of replicas that break.
    pub(crate) cuts: u8,
    pub(crate) second_elections: u8,
    /// Clients that are replaced by ones that know nothing.
    pub(crate) new_clients: u8,
    /// Connections that end, and what was written on them is carried out later.
    pub(crate) late: u8,
    /// What is assumed not to happen: a replica follows a server that is not its master, or a
    /// replaced master again.
    pub(crate) detours: u8,
}

/// A wrong rule, or an assumption that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Votes count unacknowledged, and each reign is taken for proven.
    NothingAcknowledged,
    /// Votes are acknowledged, and each reign is taken for proven.
    NothingProven,
    /// The server that was promoted is witness enough; so is any that has a full copy of it; or the
    /// same server under two addresses is two.
    OneWitness,
    CopyIsWitness,
    WitnessCountsTwice,
    /// A witness may have been started a moment ago; the same where all replicas acknowledge.
    AnyUptime,
    AllAcknowledgeAnyUptime,
    /// The former master is known by its address, whatever process is there.
    FormerByAddress,
    /// The reign before is the one that the server names, whatever marker it has; or that of its
    /// marker, whichever it followed.
    NoMarkerNeeded,
    FormerNotCompared,
    /// A reign is proven although the one before was in its quarantine.
    QuarantineNotCarried,
    /// What is acknowledged was written before the vote.
    AcknowledgedBefore,
    /// The second question is not looked at, or only the marker in it is not.
    NoCheck,
    MarkerIgnored,
    /// An extension counts unacknowledged.
    ExtensionNotAcknowledged,
    /// A lock that is resumed by its token is extended and reclaimed as one that is held is.
    ResumedIsReclaimed,
    /// The age of a reign counts from its first greeting.
    CountedFromGreeting,
    /// One client asks for no acknowledgements, and the marker does not tell it so.
    ModesMix,
    /// Keys live as long as their locks, although clocks differ.
    NoMargin,
    /// Elections do not count.
    NoEpoch,
    /// More replicas than are assumed are no reason not to count.
    MoreReplicas,
    /// A replica that is promoted in the middle of a copy has the marker of what it copies.
    HalfCopied,
    /// A server that is elected again keeps its connections, and those do not ask again when they
    /// have been idle for the longest ttl.
    ConnectionsKept,
    /// The votes that are counted are not those of a majority.
    FewerThanAMajority,
}

impl Mistake {
    /// The changes of scripts that make it.
    pub(crate) fn changes(self) -> Vec<Change> {
        let (from, to) = match self {
            Self::NoMarkerNeeded => (
                "if is_over and of == followed then",
                "of, run = followed, run or 'x'\n  if of then",
            ),
            Self::FormerNotCompared => ("if is_over and of == followed then", "if is_over then"),
            Self::QuarantineNotCarried => (
                "if is_over and of == followed then",
                "if of and of == followed then",
            ),
            Self::ModesMix => ("replicas ~= ARGV[6] and step", "false and step"),
            Self::CountedFromGreeting => (
                "ARGV[1], id, ARGV[2], '-', ARGV[3]",
                "ARGV[1], id, ARGV[2], clock, ARGV[3]",
            ),
            Self::NothingAcknowledged | Self::NothingProven => (
                "ARGV[1], id, ARGV[2], '-', ARGV[3]",
                "ARGV[1], id, ARGV[2], '0', ARGV[3]",
            ),
            _ => return Vec::new(),
        };
        vec![Change {
            scripts: &[REIGN_ACKNOWLEDGED],
            from,
            to,
        }]
    }
}

impl Faults {
    pub(crate) const NONE: Self = Self {
        attempts: 0,
        resumptions: 0,
        promotions: 0,
        restarts: 0,
        saves: 0,
        flushes: 0,
        evictions: 0,
        cuts: 0,
        second_elections: 0,
        new_clients: 0,
        late: 0,
        detours: 0,
    };
}

impl Scheme {
    /// A master and two replicas, and one promotion.
    pub(crate) const fn small() -> Self {
        Self {
            servers: 3,
            replicas: 2,
            clients: 2,
            kind: Kind::Plain,
            ttl: 3,
            ticks: 12,
            skew: 0,
            assumed_skew: 0,
            has_epochs: false,
            faults: Faults {
                attempts: 6,
                promotions: 1,
                cuts: 1,
                ..Faults::NONE
            },
            mistake: None,
        }
    }

    /// All faults.
    pub(crate) const fn all() -> Self {
        Self {
            clients: 3,
            ticks: 16,
            has_epochs: true,
            faults: Faults {
                attempts: 7,
                resumptions: 0,
                promotions: 3,
                restarts: 2,
                saves: 1,
                flushes: 1,
                evictions: 1,
                cuts: 2,
                second_elections: 1,
                new_clients: 1,
                late: 2,
                detours: 0,
            },
            ..Self::small()
        }
    }

    pub(crate) fn with(self, mistake: Mistake) -> Self {
        Self {
            mistake: Some(mistake),
            ..self
        }
    }

    pub(crate) fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    pub(crate) fn group(&self) -> Replicas {
        Replicas(self.replicas)
    }

    /// How many ticks longer than its lock a key lives.
    pub(crate) fn margin(&self) -> u8 {
        if self.has(Mistake::NoMargin) {
            0
        } else {
            self.assumed_skew
        }
    }

    /// How long new locks do not count in a reign that is not proven.
    pub(crate) fn quarantine(&self) -> u8 {
        self.ttl + self.assumed_skew
    }

    /// The tick at which all histories begin: all servers have been up for long enough.
    pub(crate) fn start(&self) -> u8 {
        2 * self.quarantine() + 4
    }
}
