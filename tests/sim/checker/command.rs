//! What is told to the checker: locks by their tokens, and what a node did for whom.

use std::fmt;

/// A lock: the first eight bytes of its token, which are as good as all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name(u64);

/// The lock that this token stands for.
pub(crate) fn name(token: &[u8]) -> Name {
    let mut bytes = [0; 8];
    let size = token.len().min(8);
    bytes[..size].copy_from_slice(&token[..size]);
    Name(u64::from_be_bytes(bytes))
}

/// The beginning of a token, as the trace shows it.
pub(crate) fn hex(name: Name) -> String {
    format!("{:06x}", name.0 >> 40)
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(*self))
    }
}

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To take a lock, be it free or handed over.
    Take,
    Extend,
    Remove,
}

/// A command about a lock, read from its words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub(crate) kind: Kind,
    /// Which word is the key.
    pub(crate) key: usize,
    pub(crate) token: Name,
    /// Whose lock it was, if it is handed over.
    pub(crate) predecessor: Option<Name>,
}

impl Command {
    pub(crate) fn of(words: &[&[u8]]) -> Option<Self> {
        let command = |kind, key, token: &[u8], predecessor: Option<&[u8]>| {
            Some(Self { kind, key, token: name(token), predecessor: predecessor.map(name) })
        };
        match words {
            [b"SET", _, token, ..] => command(Kind::Take, 1, token, None),
            [b"EVAL" | b"EVALSHA", _, _, _, rest @ ..] => match rest {
                [token] => command(Kind::Remove, 3, token, None),
                [token, _] | [token, _, b"shorter"] => command(Kind::Extend, 3, token, None),
                [before, token, _] => command(Kind::Take, 3, token, Some(before)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The lock that it takes away, if it takes one away.
    pub(crate) fn removed(&self) -> Option<Name> {
        if self.kind == Kind::Remove { Some(self.token) } else { self.predecessor }
    }
}

/// A node has executed a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution<'a> {
    pub(crate) client: (usize, u64),
    pub(crate) node: usize,
    pub(crate) now: u64,
    pub(crate) command: &'a Command,
    /// Whose lock the key was before.
    pub(crate) before: Option<Name>,
    /// Whose it is now, and until when if nothing happens to it.
    pub(crate) after: Option<(Name, u64)>,
    /// What it answered, if that was yes or no.
    pub(crate) is_granted: Option<bool>,
}
