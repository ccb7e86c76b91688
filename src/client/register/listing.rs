//! Listing registers, and removing what deleted ones have left.

use super::Register;
use crate::client::locks::Locks;
use crate::client::{FoundLock, LockClient};
use crate::engine::register::{RegisterCommand, RegisterKeys};
use crate::error::{InspectError, RegisterError};
use crate::name::Name;
use std::iter::FusedIterator;

/// The registers that [`LockClient::registers`] lists.
#[derive(Debug)]
#[must_use = "it asks the nodes only when it is iterated"]
pub struct Registers<'a> {
    client: &'a LockClient,
    /// Is it known that the nodes are a group? Found out before the first name.
    is_checked: bool,
    /// `None` if they are none.
    keys: Option<Locks<'a>>,
}

/// What [`LockClient::sweep_registers`] has found and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// The registers that have a value.
    pub values: usize,
    /// The registers without one of which nothing is left now.
    pub removed: usize,
    /// Those without one of which something is left, because a node did not answer.
    pub left: usize,
}

impl LockClient {
    /// Lists the registers whose names match `pattern`, as [`locks`](Self::locks) does locks. Those
    /// that were deleted are listed until nothing is left of them: [`Register::read`] tells.
    ///
    /// ```no_run
    /// # fn example(client: &redlatch::LockClient) -> Result<(), redlatch::Error> {
    /// for register in client.registers("jobs:*") {
    ///     let register = register?;
    ///     println!("{}: {:?}", register.name(), register.read()?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As those of [`locks`](Self::locks); and the only item is an error if the nodes are no group,
    /// or on ZooKeeper.
    pub fn registers(&self, pattern: impl AsRef<[u8]>) -> Registers<'_> {
        let keys = self.keys_like(pattern.as_ref(), RegisterKeys::PROMISE);
        Registers { client: self, is_checked: false, keys: Some(keys) }
    }

    /// Removes what deleted registers have left on the nodes. A deletion removes it itself if all
    /// nodes answer; a node that was down meanwhile leaves about 150 bytes on each.
    ///
    /// This reads all keys of all nodes, and takes up to four rounds for each register without a
    /// value. It may run at any time, and more than once at a time. No value is touched.
    ///
    /// # Errors
    ///
    /// As those of [`registers`](Self::registers) and [`Register::read`].
    pub fn sweep_registers(&self) -> Result<Swept, RegisterError> {
        let mut swept = Swept::default();
        let mut deleted = Vec::new();
        for register in self.registers("*") {
            let register = register?;
            match register.read()? {
                Some(_) => swept.values += 1,
                None => {
                    register.remove()?;
                    deleted.push(register.keys.value);
                }
            }
        }
        if deleted.is_empty() {
            return Ok(swept);
        }
        let left: Result<Vec<_>, _> = self.registers("*").collect();
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

    /// Removes the keys, if there is no value.
    fn remove(&self) -> Result<(), RegisterError> {
        // A deletion that all nodes have accepted is collected by this.
        self.run(|_| Ok(()))?;
        let redlock = self.client.core.register_nodes()?;
        let group = self.client.core.group(redlock)?;
        // Of what was only promised, nobody knows the ballot.
        self.client.core.ask(redlock, &self.keys, &group, RegisterCommand::Collect(None));
        Ok(())
    }
}

impl Iterator for Registers<'_> {
    type Item = Result<Register, RegisterError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.is_checked {
            self.is_checked = true;
            if let Err(error) = self.check() {
                self.keys = None;
                return Some(Err(error));
            }
        }
        let found = self.keys.as_mut()?.next()?;
        let named = |lock: FoundLock| self.client.register(&lock);
        Some(found.map_err(RegisterError::from).and_then(named))
    }
}

impl Registers<'_> {
    /// Without a group there are no registers, and a list of their keys would be empty.
    fn check(&self) -> Result<(), RegisterError> {
        let core = &self.client.core;
        self.keys.iter().try_for_each(Locks::check).map_err(RegisterError::Resource)?;
        core.group(core.register_nodes()?).map(|_| ())
    }
}

impl FusedIterator for Registers<'_> {}

impl From<InspectError> for RegisterError {
    fn from(error: InspectError) -> Self {
        match error {
            InspectError::Resource(error) => Self::Resource(error),
            InspectError::NoQuorum(error) => Self::NoQuorum { error, may_have_happened: false },
            InspectError::OtherProcess => Self::OtherProcess,
        }
    }
}
