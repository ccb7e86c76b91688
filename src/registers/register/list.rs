//! What is in a group: its registers, and what was deleted.

use super::Register;
#[cfg(doc)]
use super::Value;
use super::group::Registers;
use crate::backend::at_once;
use crate::client::{FoundLock, LockClient, Locks};
use crate::clock;
use crate::config::is_reserved;
use crate::error::{Error, RegisterError};
use crate::name::Name;
use redlatch_registers::transaction::Record;
use redlatch_registers::{Draft, RegisterCommand, RegisterKeys};
use std::iter::FusedIterator;
use std::pin::pin;
use std::time::Duration;

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
                    at_once(pin!(register.remove()))?;
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
    async fn remove(&self) -> Result<(), RegisterError> {
        // A deletion that all nodes have accepted is collected by this.
        let deletion = self.run_alone(|draft| {
            self.delete_if_over(draft);
            Ok(())
        });
        deletion.await?;
        let nodes = self.nodes()?;
        let group = nodes.group().await?;
        // Of what was only promised, nobody knows the ballot.
        let command = RegisterCommand::Collect(None);
        nodes.ask(&self.keys, &group, command).await;
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
        let nodes = self.client.core.register_nodes()?;
        at_once(pin!(nodes.group())).map(|_| ())
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
