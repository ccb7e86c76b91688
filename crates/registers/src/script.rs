//! The Lua scripts of registers: their arguments, and the meaning of their answers. The files say
//! what each does.
//!
//! All but [`MARK`] have the keys of the register's value, its promise, the node's mark and the
//! floor, and `ARGV[1]` is how the mark of a member begins; the last argument is the number.

use super::transaction::FINISHED;
use super::{Accepted, Ballot, GROUP_REGISTER, InvalidValue, JOINING, Replies};
pub use redlatch_protocol::engine::Script;
use redlatch_protocol::engine::{
    CustomCommand, NoVote, RunScript, Said, Tally, Token, Vote, quorum,
};
use redlatch_protocol::node::script::{NEXT as NEXT_OF_LOCKS, scripts};
use redlatch_protocol::resp::Reply;
use std::sync::Arc;

scripts! { NEXT_OF_LOCKS;
    PREPARE: "script/member.lua", "script/promise.lua", "script/prepare.lua";
    ACCEPT: "script/member.lua", "script/promise.lua", "script/accept.lua";
    READ_REGISTER: "script/member.lua", "script/read_register.lua";
    COLLECT: "script/member.lua", "script/forget.lua", "script/collect.lua";
    COPY: "script/member.lua", "script/copy.lua";
    INSTALL: "script/member.lua", "script/install.lua";
    MARK: "script/mark.lua";
    RAISE: "script/member.lua", "script/promise.lua", "script/forget.lua", "script/raise.lua";
}

impl CustomCommand for RegisterRequest {
    fn key(&self) -> &Arc<[u8]> {
        &self.keys.value
    }

    fn watcher(&self) -> Option<Token> {
        match &self.command {
            RegisterCommand::Read { watcher } => *watcher,
            _ => None,
        }
    }

    fn is_look(&self) -> bool {
        self.command == RegisterCommand::Mark(MarkStep::Look)
    }

    fn for_run(&self, run_id: &Arc<str>) -> Option<Arc<dyn CustomCommand>> {
        Some(Arc::new(Self {
            run_id: Arc::clone(run_id),
            ..self.clone()
        }))
    }

    fn script(&self) -> Script {
        match &self.command {
            RegisterCommand::Prepare(_) => PREPARE,
            RegisterCommand::Accept { .. } => ACCEPT,
            RegisterCommand::Read { .. } => READ_REGISTER,
            RegisterCommand::Collect(_) => COLLECT,
            RegisterCommand::Copy => COPY,
            RegisterCommand::Install { .. } => INSTALL,
            RegisterCommand::Mark(_) => MARK,
            RegisterCommand::Raise(_) => RAISE,
        }
    }

    fn call(&self, run: &mut RunScript<'_>) {
        let RegisterKeys {
            value,
            promise,
            mark,
            floor,
        } = &self.keys;
        let keys: [&[u8]; 4] = [value, promise, mark, floor];
        let expected = [&self.epoch, self.run_id.as_bytes(), b" "].concat();
        match &self.command {
            RegisterCommand::Prepare(ballot) => run(&keys, &[&expected, &ballot.to_bytes()]),
            RegisterCommand::Accept {
                ballot,
                next,
                value,
            } => {
                let ballot = ballot.to_bytes();
                run(&keys, &[&expected, &ballot, &next.to_bytes(), value]);
            }
            RegisterCommand::Read { .. } | RegisterCommand::Copy => run(&keys, &[&expected]),
            RegisterCommand::Collect(ballot) => match ballot {
                Some(ballot) => run(&keys, &[&expected, &ballot.to_bytes()]),
                None => run(&keys, &[&expected, b""]),
            },
            RegisterCommand::Install { state, floor } => {
                let floor = floor.to_string().into_bytes();
                match state {
                    Some((ballot, value)) => {
                        run(&keys, &[&expected, &ballot.to_bytes(), value, &floor]);
                    }
                    None => run(&keys, &[&expected, b"", b"", &floor]),
                }
            }
            RegisterCommand::Raise(levels) => run(&keys, &[&expected, levels]),
            RegisterCommand::Mark(step) => {
                let (word, seen, new): (&[u8], &[u8], &[u8]) = match step {
                    MarkStep::Look => (b"look", b"", b""),
                    MarkStep::Join { seen } => (b"join", seen, JOINING.as_bytes()),
                    MarkStep::Enter { seen, new } => (b"enter", seen, new),
                };
                let run_id = format!(" {} ", self.run_id);
                run(&[mark], &[word, seen, new, run_id.as_bytes()]);
            }
        }
    }

    fn read(&self, number: i64, reply: &Reply<'_>) -> Option<Result<(Vote, Said), NoVote>> {
        let reply = self.meaning(number, reply)?;
        // A user who may not ask for the run of the server cannot name the mark that it must have.
        if matches!(reply, RegisterReply::NoMember(_)) && self.run_id.is_empty() {
            return Some(Err(NoVote::RunNotTold));
        }
        Some(Ok((reply.vote(), Said::new(reply))))
    }

    fn is_accept(&self) -> bool {
        matches!(self.command, RegisterCommand::Accept { .. })
    }

    /// The mark of every node counts, and the answer of the one that gets a state. On a read, if
    /// the nodes disagree and some of them may still be a majority. On an accept that no majority
    /// has carried out: if all nodes have refused it, it was not made.
    fn waits_for_more(&self, said: &[Option<Said>], tally: &Tally, awaited: usize) -> bool {
        let majority = quorum(tally.nodes());
        match self.command {
            RegisterCommand::Mark(_) | RegisterCommand::Install { .. } => !tally.is_complete(),
            RegisterCommand::Read { .. } | RegisterCommand::Raise(_) => {
                let replies = Replies::of(said);
                let is_agreed = replies.agreed().is_some();
                !is_agreed && awaited > 0 && replies.largest() + awaited >= majority
            }
            RegisterCommand::Accept { .. } => tally.granted.len() < majority && awaited > 0,
            // Those of nodes that have no vote do not count.
            RegisterCommand::Prepare(_) | RegisterCommand::Copy => {
                !Replies::of(said).are_enough() && awaited > 0
            }
            RegisterCommand::Collect(_) => false,
        }
    }

    fn could_end(&self, said: &[Option<Said>]) -> bool {
        use RegisterCommand::{Accept, Raise, Read};
        let is_helped = matches!(self.command, Read { .. } | Accept { .. } | Raise(_));
        is_helped && Replies::of(said).are_enough()
    }

    fn is_followed(&self) -> bool {
        match &self.command {
            RegisterCommand::Accept { value, .. } => value.is_empty(),
            RegisterCommand::Raise(levels) => levels.contains(&FINISHED),
            _ => false,
        }
    }

    /// The keys of a register go when it has been deleted on all nodes, or when all nodes know that
    /// all have finished.
    fn follow_up(&self, said: &[Option<Said>]) -> Option<Arc<dyn CustomCommand>> {
        let command = match &self.command {
            RegisterCommand::Accept { ballot, .. } => RegisterCommand::Collect(Some(*ballot)),
            RegisterCommand::Raise(levels) => {
                let forgotten = Replies::of(said).forgotten(levels.len())?;
                RegisterCommand::Raise(forgotten)
            }
            _ => return None,
        };
        Some(Arc::new(Self {
            command,
            ..self.clone()
        }))
    }
}

impl RegisterRequest {
    /// A command for nodes whose marks begin so.
    pub fn new(keys: RegisterKeys, epoch: Arc<[u8]>, command: RegisterCommand) -> Self {
        Self {
            keys,
            epoch,
            run_id: Arc::default(),
            command,
        }
    }

    /// A step with the marks of nodes, whose keys have this prefix.
    pub fn of_marks(prefix: &[u8], step: MarkStep) -> Self {
        let keys = RegisterKeys::new(prefix, GROUP_REGISTER);
        Self::new(keys, Arc::default(), RegisterCommand::Mark(step))
    }

    /// The meaning of an answer. A refusal begins with the negative of the number.
    fn meaning(&self, number: i64, reply: &Reply<'_>) -> Option<RegisterReply> {
        let Reply::Array(list) = reply else {
            return None;
        };
        let elements: Vec<Reply<'_>> = list.iter().collect();
        let (first, rest) = elements.split_first()?;
        match (first, rest) {
            (Reply::Integer(first), _) if *first == number => self.done(rest),
            (Reply::Integer(first), [Reply::Integer(least), value, Reply::Integer(floor)])
                if *first == -number =>
            {
                let least = u64::try_from(*least).ok()?;
                let floor = u64::try_from(*floor).ok()?;
                accepted(value, |accepted| RegisterReply::Preempted {
                    least,
                    accepted,
                    floor,
                })
            }
            (Reply::Integer(first), [mark]) if *first == -number => {
                Some(RegisterReply::NoMember(optional(mark)?.map(Arc::from)))
            }
            _ => None,
        }
    }

    /// What follows the number where a node has done what was asked.
    fn done(&self, rest: &[Reply<'_>]) -> Option<RegisterReply> {
        match (&self.command, rest) {
            (RegisterCommand::Read { .. } | RegisterCommand::Raise(_), [value]) => {
                accepted(value, RegisterReply::State)
            }
            (RegisterCommand::Prepare(_) | RegisterCommand::Copy, [value, floor]) => {
                let Reply::Integer(floor) = floor else {
                    return None;
                };
                let floor = u64::try_from(*floor).ok()?;
                accepted(value, |accepted| RegisterReply::Promise { accepted, floor })
            }
            (RegisterCommand::Mark(_), [mark]) => {
                let mark = optional(mark)?.map(Arc::from);
                Some(RegisterReply::Mark {
                    mark,
                    run_id: Arc::clone(&self.run_id),
                })
            }
            (
                RegisterCommand::Accept { .. }
                | RegisterCommand::Collect(_)
                | RegisterCommand::Install { .. },
                [],
            ) => Some(RegisterReply::Done),
            _ => None,
        }
    }
}

/// A string that a key may have.
fn optional<'a>(reply: &Reply<'a>) -> Option<Option<&'a [u8]>> {
    match reply {
        Reply::Null => Some(None),
        Reply::Bulk(bytes) => Some(Some(bytes)),
        _ => None,
    }
}

/// What the node has accepted, and what answer that makes.
fn accepted(
    reply: &Reply<'_>,
    make: impl FnOnce(Option<Accepted>) -> RegisterReply,
) -> Option<RegisterReply> {
    let accepted = optional(reply)?.map(Accepted::read).transpose();
    Some(accepted.map_or_else(RegisterReply::Invalid, make))
}

// What a register's requests ask of a node, and what it answers.

/// A request about a register, the same to every node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterRequest {
    pub keys: RegisterKeys,
    /// How the mark of a node begins that may do this, up to the run of its server.
    pub epoch: Arc<[u8]>,
    /// The run of the server that the request is written to: the session adds it. Empty if the
    /// server does not say, and then no mark fits.
    pub run_id: Arc<str>,
    /// What is asked.
    pub command: RegisterCommand,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RegisterKeys {
    /// What was accepted.
    pub value: Arc<[u8]>,
    pub promise: Arc<[u8]>,
    /// The node's mark, of all registers with this prefix.
    pub mark: Arc<[u8]>,
    /// Below which no ballot counts for a register without keys, with this prefix.
    pub floor: Arc<[u8]>,
}

/// A prefix ends where `:redlatch:` begins for the first time, and the register's name is behind
/// it: so registers with different prefixes have different keys, whatever their names, as groups of
/// different prefixes have different marks.
impl RegisterKeys {
    /// What is between the prefix and the register's name in the key of its value.
    pub const VALUE: &[u8] = b":redlatch:register:";
    /// The same of its promise.
    pub const PROMISE: &[u8] = b":redlatch:promise:";
    /// What follows the prefix in the key of the mark.
    pub const MARK: &[u8] = b":redlatch:member";
    /// The same of the floor.
    pub const FLOOR: &[u8] = b":redlatch:register-floor";

    pub fn new(prefix: &[u8], name: &[u8]) -> Self {
        fn key(parts: [&[u8]; 3]) -> Arc<[u8]> {
            Arc::from(parts.concat())
        }
        Self {
            value: key([prefix, Self::VALUE, name]),
            promise: key([prefix, Self::PROMISE, name]),
            mark: key([prefix, Self::MARK, b""]),
            floor: key([prefix, Self::FLOOR, b""]),
        }
    }
}

/// What is asked about a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterCommand {
    /// What has been accepted?
    Read {
        /// Who waits until that changes. A node that can tell then tells it to the connection on
        /// which it was asked.
        watcher: Option<Token>,
    },
    /// Promise to serve no lower ballot, and say what has been accepted.
    Prepare(Ballot),
    /// Accept this value, and promise the ballot that follows.
    Accept {
        /// The ballot of the value.
        ballot: Ballot,
        /// The ballot that is promised with it.
        next: Ballot,
        /// The value. Empty if the register is deleted.
        value: Arc<[u8]>,
    },
    /// Remove the keys of a register that was deleted with this ballot on all nodes; without one,
    /// of a register for which nothing was ever accepted.
    Collect(Option<Ballot>),
    /// Say what has been accepted, and the floor, and promise nothing.
    Copy,
    /// To a node that is being made a member: have this state, and no floor below this one.
    Install {
        /// The ballot and the value that count as accepted, or nothing at all.
        state: Option<(Ballot, Arc<[u8]>)>,
        floor: u64,
    },
    /// Read or replace the mark.
    Mark(MarkStep),
    /// Raise the last bytes of the value in place, to at least these, and say what has been
    /// accepted.
    ///
    /// The ballot of the value is reserved to whoever may raise a byte, until another one is
    /// promised: so that takes one round. What is raised on a majority stays, since each later
    /// ballot goes on from what it finds on a majority; and each byte counts on its own.
    Raise(Arc<[u8]>),
}

/// What is done with the mark of a node. Each step compares the mark as it was seen, so that a late
/// one does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkStep {
    /// It is read.
    Look,
    /// A node that has the mark that was seen, or no mark, draws a number, and has it in its mark:
    /// see [`JOINING`]. It votes no more.
    Join {
        /// What was seen. Empty: no mark.
        seen: Arc<[u8]>,
    },
    /// The mark that was seen is replaced. The new one names the run of the server that was seen
    /// with it, so that it gives no vote to a server that has been started again meanwhile.
    Enter { seen: Arc<[u8]>, new: Arc<[u8]> },
}

/// The answer of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterReply {
    /// To [`RegisterCommand::Read`] and [`RegisterCommand::Raise`].
    State(Option<Accepted>),
    /// To [`RegisterCommand::Prepare`]: the promise; and to [`RegisterCommand::Copy`].
    Promise {
        /// What has been accepted.
        accepted: Option<Accepted>,
        /// Below which no ballot counts for a register without keys.
        floor: u64,
    },
    Done,
    /// Another ballot came first.
    Preempted {
        /// It was promised that no ballot up to this number counts.
        least: u64,
        /// What has been accepted.
        accepted: Option<Accepted>,
        /// Below which no ballot counts for a register without keys.
        floor: u64,
    },
    /// To [`RegisterCommand::Mark`].
    Mark {
        /// The mark as it is now.
        mark: Option<Arc<[u8]>>,
        /// The run of the server.
        run_id: Arc<str>,
    },
    /// The node may not vote: its mark is another one, or missing.
    NoMember(Option<Arc<[u8]>>),
    /// What the node has accepted is nothing that this version of the library knows.
    Invalid(InvalidValue),
}

impl RegisterReply {
    /// Has the node done what was asked of it?
    pub fn vote(&self) -> Vote {
        match self {
            Self::State(_) | Self::Promise { .. } | Self::Done | Self::Mark { .. } => Vote::Granted,
            Self::Preempted { .. } | Self::NoMember(_) | Self::Invalid(_) => Vote::Refused,
        }
    }
}

#[cfg(test)]
mod tests;
