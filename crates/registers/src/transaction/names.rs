//! The names of a transaction's participants.

use std::fmt;

/// How many participants a transaction can have. Each vote is a change of one register, so votes at
/// the same time wait for each other: with more participants, a register for each vote would pay.
pub const PARTICIPANTS_MAX: usize = 16;

/// The longest name of a participant, in bytes.
pub const PARTICIPANT_NAME_MAX: usize = 64;

/// Why a transaction cannot have these participants.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NamesError {
    /// There is no name.
    None,
    /// There are too many.
    TooMany {
        /// How many there are.
        count: usize,
        /// The most that there may be.
        most: usize,
    },
    /// A name is empty.
    Empty,
    /// A name is too long.
    TooLong {
        /// The name.
        name: String,
        /// The most bytes that it may have.
        most: usize,
    },
    /// A name is there twice.
    Twice {
        /// The name.
        name: String,
    },
}

/// Checks the names of a new transaction.
pub(super) fn check(names: &[&str]) -> Result<(), NamesError> {
    let (count, most) = (names.len(), PARTICIPANTS_MAX);
    if count == 0 {
        return Err(NamesError::None);
    }
    if count > most {
        return Err(NamesError::TooMany { count, most });
    }
    for (index, name) in names.iter().enumerate() {
        if name.is_empty() {
            return Err(NamesError::Empty);
        }
        if name.len() > PARTICIPANT_NAME_MAX {
            let (name, most) = ((*name).to_owned(), PARTICIPANT_NAME_MAX);
            return Err(NamesError::TooLong { name, most });
        }
        if names[..index].contains(name) {
            return Err(NamesError::Twice { name: (*name).to_owned() });
        }
    }
    Ok(())
}

impl fmt::Display for NamesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("a transaction without participants"),
            Self::TooMany { count, most } => {
                write!(f, "{count} participants, a transaction has {most} at most")
            }
            Self::Empty => f.write_str("the name of a participant is empty"),
            Self::TooLong { name, most } => {
                write!(f, "the name of a participant is longer than {most} bytes: {name:?}")
            }
            Self::Twice { name } => write!(f, "two participants are called {name:?}"),
        }
    }
}

impl std::error::Error for NamesError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_few_short_and_each_is_there_once() {
        assert_eq!(check(&["a", "b"]), Ok(()));
        assert_eq!(check(&[]), Err(NamesError::None));
        assert_eq!(check(&["a", ""]), Err(NamesError::Empty));
        assert_eq!(check(&["a", "b", "a"]), Err(NamesError::Twice { name: "a".to_owned() }));
        let (longest, longer) = ("x".repeat(64), "x".repeat(65));
        assert_eq!(check(&[&longest]), Ok(()));
        assert_eq!(check(&[&longer]), Err(NamesError::TooLong { name: longer.clone(), most: 64 }));
        let many: Vec<String> = (0..17).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(check(&many[..16]), Ok(()));
        assert_eq!(check(&many), Err(NamesError::TooMany { count: 17, most: 16 }));
    }
}
