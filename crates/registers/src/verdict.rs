//! Whether a change was made whose answer was lost.

use super::{Accepted, Ballot};

/// What is known of a change that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A value that has it was accepted somewhere. It is made when a majority has accepted that.
    Made,
    /// It was not made by what was seen.
    NotMade,
    /// The register was deleted since, or changed too often.
    Unknown,
}

/// What the highest value that a majority has accepted, and its highest floor, say of the change
/// with this ballot.
///
/// `NotMade` does not say that it will not be: it may be on a node that was not asked, where
/// another client finds it and goes on with it. If that happens, nothing is made that this client
/// proposes after what was seen here: the two are on different branches, of which one survives.
pub(super) fn verdict(sent: Ballot, accepted: Option<&Accepted>, floor: u64) -> Verdict {
    match accepted {
        Some(accepted) if accepted.ballot == sent => Verdict::Made,
        Some(newer) if newer.ballot.number() > sent.number() => match &newer.value {
            Some(value) if value.was_made_by(sent) => Verdict::Made,
            // A register that was not deleted since, and remembers all changes since.
            Some(value) if value.gone() < sent.number() && value.remembers_since(sent.number()) => {
                Verdict::NotMade
            }
            // Deleted since, or changed often.
            _ => Verdict::Unknown,
        },
        // If it had been accepted and deleted since, the value would have a higher ballot.
        Some(_) => Verdict::NotMade,
        // Deleted since, and the keys removed.
        None if floor >= sent.number() => Verdict::Unknown,
        None => Verdict::NotMade,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stored;
    use redlatch_protocol::engine::Token;
    use std::sync::Arc;

    #[test]
    fn a_register_that_another_client_has_created_is_no_sign_of_a_deletion() {
        let ballot = |number, owner| Ballot::new(number, Token::new([owner; Token::LEN])).unwrap();
        let created = |gone| {
            let value = Stored::changed(Err(gone), (ballot(7, 2), 0), Arc::from([]), 0);
            Accepted { ballot: ballot(7, 2), value: Some(value) }
        };
        let verdict = |gone| verdict(ballot(5, 1), Some(&created(gone)), 0);
        assert_eq!([0, 4, 5, 6].map(verdict), {
            use Verdict::{NotMade, Unknown};
            [NotMade, NotMade, Unknown, Unknown]
        });
    }
}
