//! Wrong readings of answers, by clients that make a mistake.

use redlatch_registers::{Accepted, Change, Proposer, RegisterReply, Replies};

/// The newest value that any node names.
pub(crate) fn newest(replies: &Replies) -> Option<&Accepted> {
    states(replies)
        .flatten()
        .max_by_key(|accepted| accepted.ballot.number())
}

/// Has a majority no value, one for this reason, another for that?
pub(crate) fn are_without_value(replies: &Replies) -> bool {
    let without = states(replies).filter(|it| it.is_none_or(|it| it.value.is_none()));
    without.count() > replies.0.len() / 2
}

/// What is remembered after an accept that a minority has carried out, if it is taken for a
/// majority.
pub(crate) fn promised_by_minority(change: &Change, replies: &Replies) -> Option<Proposer> {
    let done = replies
        .0
        .iter()
        .filter(|reply| **reply == Some(RegisterReply::Done))
        .count();
    if done == 0 || done > replies.0.len() / 2 {
        return None;
    }
    let mut change = change.clone();
    change.handle(&Replies(vec![Some(RegisterReply::Done); replies.0.len()]));
    Some(change.into_proposer())
}

fn states(replies: &Replies) -> impl Iterator<Item = Option<&Accepted>> {
    replies.0.iter().flatten().filter_map(|reply| match reply {
        RegisterReply::State(state) => Some(state.as_ref()),
        _ => None,
    })
}
