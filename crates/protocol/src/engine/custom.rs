//! Commands of what else is kept on the nodes. Rounds carry them, and know no more of them than
//! this.

#[cfg(feature = "groups")]
use super::Acknowledgements;
use super::{NoVote, Tally, Token, Vote};
use crate::resp::Reply;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Eq)]
pub struct Script {
    /// The Lua source, byte for byte as it is sent.
    pub source: &'static str,
    /// The SHA-1 of the source, in lower-case hexadecimal.
    pub sha1: &'static str,
    /// A connection keeps by its number whether the node knows it: that of no other script.
    pub number: u32,
}

/// Compares the digests only: scripts are compared for each command, and a digest is short.
impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        self.sha1 == other.sha1
    }
}

/// What a node has said to a [`CustomCommand`], as that has read it.
#[derive(Clone, Debug)]
pub struct Said(Arc<dyn Any + Send + Sync>);

impl Said {
    pub fn new(answer: impl Any + Send + Sync) -> Self {
        Self(Arc::new(answer))
    }

    /// The answer, for those who know its type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

/// Equal is what was read at the same time.
impl PartialEq for Said {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Said {}

pub type RunScript<'a> = dyn FnMut(&[&[u8]], &[&[u8]]) + 'a;

/// A command that a script carries out, and that neither takes nor extends a lock: those of
/// registers are, and those by which an operator looks at locks.
pub trait CustomCommand: fmt::Debug + Send + Sync {
    /// The key that it is about.
    fn key(&self) -> &Arc<[u8]>;

    /// Who waits until that key changes, if it is read for somebody. A node that can tell then
    /// tells it to the connection on which it was asked.
    fn watcher(&self) -> Option<Token> {
        None
    }

    /// Does it only look at what a user may lack the right to see? No lock depends on the answer,
    /// so an error is not a problem of the connection.
    fn is_look(&self) -> bool {
        false
    }

    /// The command on a node that is a group, if more than its keys differs there: these stand
    /// behind this tag, and live longer than locks by so much.
    fn for_group(&self, _tag: &Arc<[u8]>, _skew: Duration) -> Option<Arc<dyn CustomCommand>> {
        None
    }

    /// The command as it is written to this run of the server, if that makes a difference.
    fn for_run(&self, _run_id: &Arc<str>) -> Option<Arc<dyn CustomCommand>> {
        None
    }

    /// The command for a group whose replicas acknowledge each vote, if it is another one there.
    #[cfg(feature = "groups")]
    fn for_replicas(&self, _: Acknowledgements) -> Option<Arc<dyn CustomCommand>> {
        None
    }

    /// Its script, which stands in a table of `scripts!`.
    fn script(&self) -> Script;

    /// Calls `run` with the keys and the arguments of the script, without the number.
    fn call(&self, run: &mut RunScript<'_>);

    /// Reads the answer to the command with this number. `None`: it is not an answer to it.
    fn read(&self, number: i64, reply: &Reply<'_>) -> Option<Result<(Vote, Said), NoVote>>;

    /// What a node has said whose key is of another type, if that is not a failure.
    fn of_other_type(&self) -> Option<(Vote, Said)> {
        None
    }

    /// What was said by a node whose grants do not count for this time.
    fn in_quarantine(&self, said: Said, _left: Duration) -> Said {
        said
    }

    /// Is a node that has done it said to have accepted something?
    fn is_accept(&self) -> bool {
        false
    }

    /// Can the answers of more nodes than a majority help? `awaited` nodes are likely to answer.
    fn waits_for_more(&self, _said: &[Option<Said>], _tally: &Tally, _awaited: usize) -> bool {
        false
    }

    /// Is what a majority has said enough to go on with, although other answers would help?
    fn could_end(&self, _said: &[Option<Said>]) -> bool {
        false
    }

    /// May anything follow once each node has done this?
    fn is_followed(&self) -> bool {
        false
    }

    /// What is sent to all nodes once each of them has done this and said so, and not before.
    fn follow_up(&self, _said: &[Option<Said>]) -> Option<Arc<dyn CustomCommand>> {
        None
    }
}

/// Equal is what is one command.
impl PartialEq for dyn CustomCommand {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl Eq for dyn CustomCommand {}
