//! One operation of a history: what was called, when, and what it returned.
//!
//! Each write has a number of its own, its id, so a value says which writes made it.

/// Identifies a write. Unique in a history.
pub(crate) type Id = u64;

/// A value that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    pub(crate) version: u64,
    /// The ids of the writes that made it, the last one last. Never empty.
    pub(crate) ids: Vec<Id>,
    /// The largest fencing token; 0 if there is none.
    pub(crate) fence: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Read,
    /// Appends this id.
    Change(Id),
    /// Replaces the value of the version `seen` by this id.
    Set {
        seen: Option<u64>,
        id: Id,
    },
    /// Replaces the value by this id, unless a larger token has written.
    Fenced {
        token: u64,
        id: Id,
    },
    Delete,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Of a read, and of a compare-and-set that was refused: the value that there is.
    Is(Option<Seen>),
    /// Of a change or a deletion: the version of the new value, and the value before.
    Changed {
        version: Option<u64>,
        before: Option<Seen>,
    },
    /// Of a compare-and-set or a fenced write that was made.
    Set(u64),
    /// Of a fenced write that was refused: the larger token.
    Stale(u64),
    /// An error, and the change may have been made, or be made later. Also if the process was
    /// killed.
    Unsure,
    /// An error, and nothing was changed.
    Failed,
}

/// Times are nanoseconds of a clock that all processes share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) register: usize,
    /// Who has called.
    pub(crate) worker: usize,
    pub(crate) called: u64,
    /// Has no meaning for [`Outcome::Unsure`].
    pub(crate) returned: u64,
    pub(crate) call: Call,
    pub(crate) outcome: Outcome,
}

/// How many ids a value has at most: an older one is dropped.
pub(crate) const IDS_MAX: usize = 12;

/// The ids after a change.
pub(crate) fn appended(before: Option<&[Id]>, id: Id) -> Vec<Id> {
    let before = before.unwrap_or_default();
    let kept = before.len().min(IDS_MAX - 1);
    let mut ids = before[before.len() - kept..].to_vec();
    ids.push(id);
    ids
}

/// The ids as a register's bytes.
pub(crate) fn to_bytes(ids: &[Id]) -> Vec<u8> {
    let words: Vec<String> = ids.iter().map(Id::to_string).collect();
    words.join(",").into_bytes()
}

/// The ids in a register's bytes. Panics if they are not a list of ids.
pub(crate) fn from_bytes(bytes: &[u8]) -> Vec<Id> {
    let text = std::str::from_utf8(bytes).expect("a value from nowhere");
    text.split(',')
        .map(|word| word.parse().expect("a value from nowhere"))
        .collect()
}

/// Nanoseconds of the machine's monotonic clock.
pub(crate) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).expect("after the machine's start")
}
