//! The nodes as a group that keeps registers: formed, mended after some have forgotten what they
//! promised, and with one node in the place of another; what is in it, and what was deleted; and
//! the events of all calls.

use super::Register;
#[cfg(doc)]
use super::Value;
use super::repair::Repair;
use crate::client::{FoundLock, LockClient, Locks};
use crate::clock;
use crate::config::is_reserved;
use crate::error::{Error, RegisterError};
use crate::event::Event;
use crate::name::Name;
use crate::node_url::NodeUrl;
use redlatch_registers::transaction::Record;
use redlatch_registers::{
    Draft, Epoch, GROUP_REGISTER, MemberAddress, RegisterCommand, RegisterKeys,
};
use std::iter::FusedIterator;
use std::sync::Arc;
use std::time::Duration;

/// The registers of a client's nodes as a whole: see [`LockClient::registers`].
#[derive(Clone, Copy, Debug)]
pub struct Registers<'a> {
    pub(super) client: &'a LockClient,
}

impl Registers<'_> {
    /// Makes the nodes of this client a group that keeps registers. This is done once, before the
    /// first register is used: all nodes must answer, and none may belong to a group.
    ///
    /// Nodes must keep what they have answered: `appendonly yes`, `appendfsync always`, no
    /// `allkeys-*` policy, and no replicas. With `in_memory`, nodes without these settings become
    /// members as well. Each of them loses its vote when it is started again, and with a majority
    /// of them all registers are lost.
    ///
    /// # Errors
    ///
    /// A node did not answer, belongs to a group, or does not keep what it answers. If all nodes
    /// are members of one group, that is [`AlreadyFormed`](RegisterError::AlreadyFormed). After any
    /// other error some nodes may be members: see [the guide](crate::guide::registers#the-nodes).
    pub fn form(&self, in_memory: bool) -> Result<(), RegisterError> {
        self.client.core.register_nodes()?.form(in_memory)
    }

    /// Gives each member that answers and has no vote [its
    /// vote](crate::guide::registers#the-nodes): one that was emptied, or was started again and may
    /// have forgotten something. For that, the other nodes must be a majority of the group. Returns
    /// the URLs of the nodes that have a vote now and had none.
    ///
    /// An emptied node is known by its address: its host and port in the URLs of the client that
    /// made it a member. A node that shows neither a mark of a member nor the address of one gets
    /// no place: see [`replace`](Self::replace).
    ///
    /// That takes two rounds for each register; meanwhile registers can be used. It may be called
    /// at any time. If two clients repair one node at a time, one of them fails.
    ///
    /// # Errors
    ///
    /// No majority votes, or the members keep what they answer ([`form`](Self::form)) and the node
    /// does not. Or the node belongs to another group: if it is to be this group's, remove its mark
    /// first, with `DEL` of the key `:redlatch:member` behind the
    /// [prefix](crate::Builder::key_prefix). Or a node could not be repaired: see
    /// [`PlaceTaken`](RegisterError::PlaceTaken) and [`NotRepaired`](RegisterError::NotRepaired).
    /// Nodes that were repaired before it stay so.
    pub fn repair(&self) -> Result<Vec<Arc<str>>, RegisterError> {
        self.repair_with(None)
    }

    /// As [`repair`](Self::repair), and a node of this client that is not a member takes the place
    /// of the member at `old`, a URL or an address as [`PlaceTaken`](RegisterError::PlaceTaken)
    /// names it, whether that one is still there or not. It has no vote from then on. If all nodes
    /// of this client have votes, there is not an error, and nothing is replaced.
    ///
    /// Name the new server in the URLs of this client, in the place of the old one. Then give the
    /// other clients these URLs; until then they ask the old server in vain, and need all others
    /// for a majority.
    pub fn replace(&self, old: &str) -> Result<Vec<Arc<str>>, RegisterError> {
        let url = NodeUrl::parse(old).map_or_else(|_| old.to_owned(), |url| url.to_string());
        self.repair_with(Some(MemberAddress::address(&url)))
    }

    fn repair_with(&self, replaced: Option<&str>) -> Result<Vec<Arc<str>>, RegisterError> {
        let nodes = self.client.core.register_nodes()?;
        let prefix = &self.client.core.key_prefix[..];
        let keys = RegisterKeys::new(prefix, GROUP_REGISTER);
        let register = Register {
            client: self.client.clone(),
            keys,
            lock: Arc::from(prefix),
        };
        let mut repaired = Vec::new();
        // An epoch that another client has decided comes before.
        for _ in 0..ATTEMPTS_PER_NODE * nodes.count() {
            let Some(repair) = nodes.begin_repair(replaced)? else {
                break;
            };
            let decided = register.decide(&repair)?;
            repaired.extend(nodes.end_repair(&repair, &decided)?);
        }
        Ok(repaired)
    }

    /// Gives a node its vote that was started again and may have forgotten something, as it is.
    /// `url` is the node's as [`nodes`](LockClient::nodes) tells it. This is for a person who knows
    /// that the node has kept all that it answered. If that is wrong, registers may lose changes.
    /// With a majority of the others, [`repair`](Self::repair) is the way without that danger.
    ///
    /// # Errors
    ///
    /// The node has no mark of a member of the group, or does not answer.
    pub fn trust(&self, url: &str) -> Result<(), RegisterError> {
        self.client.core.register_nodes()?.trust(url)
    }
}

/// How many epochs are begun for each node at most: another client may repair nodes as well.
const ATTEMPTS_PER_NODE: usize = 3;

impl Register {
    /// The epoch that follows, as the group decides it in the epoch before: once.
    fn decide(&self, repair: &Repair) -> Result<Epoch, RegisterError> {
        let decided = self.run_alone(|draft| {
            let decided = draft.current().map(|value| Epoch::read(value.bytes()));
            match decided {
                Some(None) => Err(RegisterError::OtherFormat {
                    url: None,
                    format: None,
                }),
                Some(Some(decided)) if decided.group.epoch > repair.before.group.epoch => {
                    Ok(decided)
                }
                _ => {
                    draft.put(repair.proposed.to_bytes(), None);
                    Ok(repair.proposed.clone())
                }
            }
        })?;
        Ok(decided.0)
    }
}

// What is in it.

/// The registers that [`Registers::list`] lists.
#[derive(Debug)]
#[must_use = "it asks the nodes only when it is iterated"]
pub struct RegisterList<'a> {
    client: &'a LockClient,
    /// Is it known that the nodes are a group? Found out before the first name.
    is_checked: bool,
    /// `None` if they are none.
    keys: Option<Locks<'a>>,
    /// Are the library's own listed too: the records of transactions?
    with_reserved: bool,
}

/// What [`Registers::sweep`] has found and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// The registers that have a value.
    pub values: usize,
    /// The registers without one of which nothing is left now.
    pub removed: usize,
    /// Those without one of which something is left, because a node did not answer, or refused.
    pub left: usize,
}

impl<'a> Registers<'a> {
    /// Lists the registers whose names match `pattern`, as [`locks`](LockClient::locks) does locks.
    /// Those that were deleted are listed until nothing is left of them: [`Register::read`] tells.
    ///
    /// # Errors
    ///
    /// As those of [`locks`](LockClient::locks); and the only item is an error if the nodes are no
    /// group, or on ZooKeeper.
    pub fn list(self, pattern: impl AsRef<[u8]>) -> RegisterList<'a> {
        self.like(pattern.as_ref(), false)
    }

    /// The same, also with the library's own.
    pub(in crate::registers) fn like(
        self,
        pattern: &[u8],
        with_reserved: bool,
    ) -> RegisterList<'a> {
        let keys = Some(self.client.keys_like(pattern, RegisterKeys::PROMISE));
        RegisterList {
            client: self.client,
            is_checked: false,
            keys,
            with_reserved,
        }
    }

    /// Deletes the registers whose names match `pattern` and whose values were
    /// [written](Value::written_at) at least as long ago as `age`, and returns how many. For
    /// markers that say "done": no register expires by itself.
    ///
    /// Whoever finds no marker does the work once more, so `age` must be longer than any program
    /// may ask for it. It is measured by wall clocks: the one of the program that has written, and
    /// that of this one. A value that is changed meanwhile stays. Errors are those of
    /// [`list`](Self::list) and [`Register::delete`]. Registers that were deleted before it stay
    /// deleted.
    pub fn delete_older_than(
        &self,
        pattern: impl AsRef<[u8]>,
        age: Duration,
    ) -> Result<usize, RegisterError> {
        let mut deleted = 0;
        for register in self.list(pattern) {
            let register = register?;
            let Some(value) = register.read()? else {
                continue;
            };
            // Of a value from the future, the age is not known.
            let passed = clock::wall_micros().checked_sub(value.0.written());
            let is_old = passed.is_some_and(|passed| Duration::from_micros(passed) >= age);
            if is_old && register.compare_and_delete(value.version())?.is_ok() {
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    /// Removes what deleted registers have left on the nodes, and the records of transactions that
    /// are over. A deletion removes it itself if all nodes answer before the program ends;
    /// otherwise it leaves about 150 bytes on each.
    ///
    /// This reads all keys of all nodes, and takes up to four rounds for each register without a
    /// value. It may run at any time, and more than once at a time. No value is touched. Errors are
    /// those of [`list`](Self::list) and [`Register::read`].
    pub fn sweep(&self) -> Result<Swept, RegisterError> {
        let mut swept = Swept::default();
        let mut deleted = Vec::new();
        for register in self.like(b"*", true) {
            let register = register?;
            match register
                .read()?
                .filter(|value| !register.is_over(value.bytes()))
            {
                Some(_) => swept.values += usize::from(!register.is_reserved()),
                None => {
                    register.remove()?;
                    deleted.push(register.keys.value);
                }
            }
        }
        if deleted.is_empty() {
            return Ok(swept);
        }
        let left: Result<Vec<_>, _> = self.like(b"*", true).collect();
        for register in left? {
            swept.left += usize::from(deleted.contains(&register.keys.value));
        }
        swept.removed = deleted.len() - swept.left.min(deleted.len());
        Ok(swept)
    }
}

impl Register {
    /// The name.
    #[must_use]
    pub fn name(&self) -> Name<'_> {
        Name::new(&self.lock[self.client.core.key_prefix.len()..])
    }

    /// Is it one of the library's own?
    fn is_reserved(&self) -> bool {
        is_reserved(self.name().as_bytes())
    }

    /// Does this value count as none? That of a transaction does which all have finished.
    fn is_over(&self, value: &[u8]) -> bool {
        self.is_reserved() && Record::read(value) == Ok(None)
    }

    pub(super) fn delete_if_over(&self, draft: &mut Draft) {
        if draft
            .current()
            .is_some_and(|value| self.is_over(value.bytes()))
        {
            draft.delete();
        }
    }

    /// Removes the keys, if there is no value.
    fn remove(&self) -> Result<(), RegisterError> {
        // A deletion that all nodes have accepted is collected by this.
        self.run_alone(|draft| {
            self.delete_if_over(draft);
            Ok(())
        })?;
        let nodes = self.client.core.register_nodes()?;
        // Of what was only promised, nobody knows the ballot.
        nodes.ask(&self.keys, &nodes.group()?, RegisterCommand::Collect(None));
        Ok(())
    }
}

impl Iterator for RegisterList<'_> {
    type Item = Result<Register, RegisterError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.is_checked {
            self.is_checked = true;
            if let Err(error) = self.check() {
                self.keys = None;
                return Some(Err(error));
            }
        }
        let with_reserved = self.with_reserved;
        let found = self.keys.as_mut()?.find(|found| match found {
            Ok(lock) => with_reserved || !is_reserved(lock.as_ref()),
            Err(_) => true,
        })?;
        Some(found.map_err(of_keys).and_then(|lock| self.named(&lock)))
    }
}

impl RegisterList<'_> {
    fn named(&self, lock: &FoundLock) -> Result<Register, RegisterError> {
        let name = lock.as_ref();
        if is_reserved(name) {
            return Ok(self.client.reserved_register(name));
        }
        self.client.register(name)
    }

    /// Without a group there are no registers, and a list of their keys would be empty.
    fn check(&self) -> Result<(), RegisterError> {
        if let Some(Locks {
            keys: Err(error), ..
        }) = &self.keys
        {
            return Err(RegisterError::Resource(*error));
        }
        self.client.core.register_nodes()?.group().map(|_| ())
    }
}

impl FusedIterator for RegisterList<'_> {}

/// What an error of listing keys is to a register.
fn of_keys(error: Error) -> RegisterError {
    match error {
        Error::Resource(error) => RegisterError::Resource(error),
        Error::NoQuorum(error) => RegisterError::NoQuorum {
            error,
            may_have_happened: false,
        },
        Error::OtherProcess => RegisterError::OtherProcess,
        error => unreachable!("listing keys failed with {error}"),
    }
}

// The events of calls that read or change a register.

impl Register {
    /// Reads, and reports it.
    pub(super) fn report_read<T>(
        &self,
        read: impl FnOnce() -> Result<(T, u32), RegisterError>,
    ) -> Result<T, RegisterError> {
        self.report(read, |register, rounds, took| Event::RegisterRead {
            register,
            rounds,
            took,
        })
    }

    /// Makes a change together with other threads, and reports it. `body` is called as often as
    /// there are drafts.
    pub(super) fn report_change<T>(
        &self,
        body: impl FnMut(&mut Draft) -> Result<T, RegisterError>,
    ) -> Result<T, RegisterError> {
        self.report(
            || self.run(body),
            |register, rounds, took| Event::RegisterChanged {
                register,
                rounds,
                took,
            },
        )
    }

    /// The call is over when it is reported: the callback may use this register.
    fn report<'a, T>(
        &'a self,
        call: impl FnOnce() -> Result<(T, u32), RegisterError>,
        event: fn(Name<'a>, u32, Duration) -> Event<'a>,
    ) -> Result<T, RegisterError> {
        let core = &self.client.core;
        let began = core.events.now_if_listened();
        let result = call();
        let (Some(began), Some(now)) = (began, core.events.now_if_listened()) else {
            return result.map(|(value, _)| value);
        };
        let register = self.name();
        let took = now.since(began);
        match result {
            Ok((value, rounds)) => {
                core.events.emit(|| event(register, rounds, took));
                Ok(value)
            }
            Err(error) => {
                if !error.is_refusal() {
                    core.events.emit(|| Event::RegisterFailed {
                        register,
                        took,
                        error: &error,
                    });
                }
                Err(error)
            }
        }
    }
}
