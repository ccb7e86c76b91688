//! A call of a client, and what it makes of drafts.

use crate::history::{Outcome, Value};
use crate::plan::Verb;
use redlatch_registers::{Ballot, Change, ChangeEnd, Draft, Group, Replies, Stored};
use std::sync::Arc;

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    pub(crate) verb: Verb,
    pub(crate) register: u8,
    pub(crate) phase: Phase,
    /// The group that it asks.
    pub(crate) group: Option<Group>,
    /// The answers for which it looks at the marks of the nodes.
    pub(crate) refused: Option<Replies>,
    /// What was made of the drafts, by their ballots.
    pub(crate) drafts: Vec<(Ballot, Outcome)>,
    /// The versions after those that have an effect.
    pub(crate) versions: Vec<Option<u64>>,
    /// How many of the drafts are of the change as it is.
    pub(crate) own_drafts: usize,
    pub(crate) looks: usize,
    pub(crate) is_accepting: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// It does not know the group.
    Beginning,
    Reading,
    Changing(Box<Change>),
}

impl Current {
    pub(crate) fn new(verb: Verb, register: u8) -> Self {
        Self {
            verb,
            register,
            phase: Phase::Beginning,
            group: None,
            refused: None,
            drafts: Vec::new(),
            versions: Vec::new(),
            own_drafts: 0,
            looks: 0,
            is_accepting: false,
        }
    }

    /// What the end of its change says to the caller.
    pub(crate) fn outcome(&self, end: &ChangeEnd) -> Outcome {
        match end {
            ChangeEnd::Committed(ballot) | ChangeEnd::Unchanged(ballot) => {
                let found = self.drafts.iter().find(|(draft, _)| draft == ballot);
                found.map_or(Outcome::Unknown, |(_, outcome)| outcome.clone())
            }
            ChangeEnd::NoQuorum {
                may_have_happened: false,
            } => Outcome::Nothing,
            ChangeEnd::NoQuorum {
                may_have_happened: true,
            }
            | ChangeEnd::Unknown => Outcome::Unknown,
            ChangeEnd::Invalid(_) | ChangeEnd::Exhausted => unreachable!("{end:?}"),
        }
    }
}

/// What the caller makes of a draft.
pub(crate) fn draw_up(verb: Verb, draft: &mut Draft, met: Option<u64>, mark: u8) {
    let append = |draft: &mut Draft| {
        let before = draft.current().map_or(&b""[..], |value| value.bytes());
        let bytes = Arc::from([before, &[mark]].concat());
        draft.put(bytes, None);
    };
    match verb {
        Verb::Read | Verb::Sweep => {}
        Verb::Create | Verb::Append => append(draft),
        Verb::AppendToAny => {
            if draft.current().is_some() {
                append(draft);
            }
        }
        Verb::AppendTwice => {
            append(draft);
            append(draft);
        }
        Verb::Delete => draft.delete(),
        Verb::Renew => {
            draft.delete();
            append(draft);
        }
        Verb::CompareAndSet => {
            if draft.current().map(|value| value.version().as_u64()) == met {
                append(draft);
            }
        }
    }
}

pub(crate) fn value(stored: Option<&Stored>) -> Value {
    stored.map(|stored| (stored.version().as_u64(), stored.bytes().to_vec()))
}

pub(crate) fn version(value: &Value) -> Option<u64> {
    value.as_ref().map(|(version, _)| *version)
}
