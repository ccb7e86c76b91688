//! Small values that a majority of the nodes agrees on: see [`LockClient::register`].

mod caller;
mod change;
mod group;
mod list;
mod nodes;
mod read;
mod repair;
mod report;
mod turn;
mod update;
mod votes;
mod watch;

pub use group::Registers;
pub use list::{RegisterList, Swept};
#[doc(inline)]
pub use redlatch_registers::Version;

pub(in crate::registers) use caller::Caller;

use crate::backend::at_once;
use crate::client::LockClient;
use crate::clock::{self, WallTime};
use crate::error::RegisterError;
use crate::fencing::FencingToken;
use redlatch_registers::{Draft, RegisterKeys, Stored};
use std::fmt;
use std::pin::pin;
use std::sync::Arc;

/// The longest value, in bytes. Every read returns it from all nodes, and every change sends it to
/// all, so a register is for small values; and a node keeps its connection busy meanwhile.
pub const VALUE_MAX: usize = 16 * 1024;

impl LockClient {
    /// The register with this name: a small value that a majority of the nodes agrees on. Sends
    /// nothing.
    ///
    /// ```no_run
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// let leader = client.register("leader")?;
    /// let changed = leader.change(|_| Some(b"host-17".to_vec()))?;
    /// println!("leads in epoch {:?}", changed.version());
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    ///
    /// A name is any non-empty string of bytes, as that of a lock. A register and a lock may have
    /// the same name.
    ///
    /// # Errors
    ///
    /// The name cannot be used, or a node is a replicated group, or the locks are on ZooKeeper.
    pub fn register(&self, name: impl AsRef<[u8]>) -> Result<Register, RegisterError> {
        let key = self.key(name.as_ref()).map_err(RegisterError::Resource)?;
        self.core.register_nodes()?;
        let keys = RegisterKeys::new(&self.core.key_prefix, name.as_ref());
        Ok(Register {
            client: self.clone(),
            keys,
            lock: key,
        })
    }

    /// The registers of this client's nodes as a whole: the group that keeps them, a list of them,
    /// and the removal of old ones. Sends nothing.
    #[must_use]
    pub fn registers(&self) -> Registers<'_> {
        Registers { client: self }
    }
}

/// A small value that a majority of the nodes agrees on: see [`LockClient::register`].
///
/// It is exact: no lease and no clock is involved. What a read returns was the value at a moment
/// between the call and its return, a change is made once, and its version is above those of all
/// changes before it. This holds while the nodes that are members forget nothing; a node that may
/// have forgotten something has no vote.
///
/// It is for small values that change seldom: the holder of an epoch, the result of an
/// idempotent request, a checkpoint, or the last word behind a lock. Every change carries the whole
/// value to all nodes.
///
/// Threads of one client that change the same register at once are combined: their changes are made
/// one after another, and sent as one.
#[derive(Clone)]
pub struct Register {
    client: LockClient,
    keys: RegisterKeys,
    /// The key of the lock with the same name.
    lock: Arc<[u8]>,
}

impl Register {
    /// The value; `None` if there is none. Takes one round, and writes nothing, if a majority of
    /// the nodes agrees.
    ///
    /// # Errors
    ///
    /// Too few nodes gave an answer that counts, or the nodes are not a group.
    pub fn read(&self) -> Result<Option<Value>, RegisterError> {
        at_once(pin!(self.value()))
    }

    /// Replaces the value by what `change` makes of it; `None` deletes it. Takes one round if this
    /// client changed it last, two if it never did or has read what others made of it, and three if
    /// another client has changed it since.
    ///
    /// The change is made once, whatever was lost on the way. But `change` may be called several
    /// times before that, and **the call that counts need not be the last one**: so it must have no
    /// effects of its own. What it was given in the call that counts is [`Changed::before`], and
    /// not what it has noted. It must not use a register
    /// ([`WithinChange`](RegisterError::WithinChange)).
    ///
    /// ```no_run
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// let counter = client.register("orders-today")?;
    /// let changed = counter.change(|value| {
    ///     let count = value.map_or(0, |value| value.bytes().len());
    ///     Some(vec![b'|'; count + 1])
    /// })?;
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); and if the answer of a change was lost, it may be unknown whether
    /// it was made: see [`RegisterError::may_have_happened`].
    pub fn change(
        &self,
        mut change: impl FnMut(Option<&Value>) -> Option<Vec<u8>>,
    ) -> Result<Changed, RegisterError> {
        self.report_change(|draft| {
            let before = draft.current().cloned().map(Value);
            let version = put(draft, change(before.as_ref()))?;
            Ok(Changed { version, before })
        })
    }

    /// Replaces the value if its version is still `seen`; `None` means that there is no value. If
    /// it is not, the inner result is an error with the value that there is, and nothing has
    /// changed. Errors are those of [`change`](Self::change).
    pub fn compare_and_set(
        &self,
        seen: Option<Version>,
        new: &[u8],
    ) -> Result<Result<Version, Option<Value>>, RegisterError> {
        check_length(new.len())?;
        self.report_change(|draft| {
            let current = draft.current().map(Stored::version);
            if current != seen {
                return Ok(Err(draft.current().cloned().map(Value)));
            }
            write(draft, new.to_vec(), None).map(Ok)
        })
    }

    /// Replaces the value, unless a larger fencing token has written since the register was
    /// created: then the inner result is an error with that token, and nothing has changed.
    ///
    /// A lock makes collisions rare; this makes them harmless. A holder that was stopped for longer
    /// than its lock was valid writes nothing over what the next holder has written.
    ///
    /// Errors are those of [`change`](Self::change).
    pub fn write_fenced(
        &self,
        token: FencingToken,
        new: &[u8],
    ) -> Result<Result<Version, Stale>, RegisterError> {
        check_length(new.len())?;
        self.report_change(|draft| {
            let fence = draft.current().and_then(Stored::fence);
            let by = fence.and_then(|number| FencingToken::try_from(number).ok());
            match by.filter(|by| *by > token) {
                Some(by) => Ok(Err(Stale { token, by })),
                None => write(draft, new.to_vec(), Some(token.as_u64())).map(Ok),
            }
        })
    }

    /// Deletes the value, and returns it. The register can be created again; its versions go on,
    /// and fencing tokens that have written are forgotten. Errors are those of
    /// [`change`](Self::change).
    pub fn delete(&self) -> Result<Option<Value>, RegisterError> {
        self.change(|_| None).map(|changed| changed.before)
    }

    /// Deletes the value if its version is still `seen`. If it is not, the inner result is an error
    /// with the value that there is, and nothing has changed. Errors are those of
    /// [`change`](Self::change).
    pub fn compare_and_delete(
        &self,
        seen: Version,
    ) -> Result<Result<(), Option<Value>>, RegisterError> {
        self.report_change(|draft| {
            let current = draft.current().map(Stored::version);
            if current != Some(seen) {
                return Ok(Err(draft.current().cloned().map(Value)));
            }
            draft.delete();
            Ok(Ok(()))
        })
    }
}

/// Puts a value into a draft, or deletes it there.
fn put(draft: &mut Draft, new: Option<Vec<u8>>) -> Result<Option<Version>, RegisterError> {
    if let Some(new) = new {
        return write(draft, new, None).map(Some);
    }
    draft.delete();
    Ok(None)
}

fn write(draft: &mut Draft, new: Vec<u8>, fence: Option<u64>) -> Result<Version, RegisterError> {
    check_length(new.len())?;
    let version = draft.put(new.into(), fence);
    draft.date(clock::wall_micros());
    Ok(version)
}

fn check_length(length: usize) -> Result<(), RegisterError> {
    let most = VALUE_MAX;
    if length > most {
        Err(RegisterError::TooLong { length, most })
    } else {
        Ok(())
    }
}

impl fmt::Debug for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Register")
            .field("name", &self.name())
            .finish()
    }
}

// What the methods of a register return.

/// The value of a register.
#[derive(Clone, PartialEq, Eq)]
pub struct Value(Stored);

impl Value {
    /// The bytes that were written.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// The version. It grows with every change, and serves as the number of an epoch.
    #[must_use]
    pub fn version(&self) -> Version {
        self.0.version()
    }

    /// When it was written, by the wall clock of the machine whose program has written it. That is
    /// for people, and for [deleting](crate::register::Registers::delete_older_than) what is old:
    /// [versions](Self::version) tell which value is newer.
    #[must_use]
    pub fn written_at(&self) -> WallTime {
        clock::wall_time(self.0.written())
    }

    /// The largest fencing token that has written since the register was created.
    #[must_use]
    pub fn fence(&self) -> Option<FencingToken> {
        self.0
            .fence()
            .and_then(|fence| FencingToken::try_from(fence).ok())
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Value")
            .field("bytes", &self.bytes().escape_ascii().to_string())
            .field("version", &self.version())
            .field("fence", &self.fence())
            .field("written_at", &self.written_at())
            .finish()
    }
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    version: Option<Version>,
    before: Option<Value>,
}

impl Changed {
    /// The version of the new value; `None` if the register was deleted.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.version
    }

    /// The value before the change.
    #[must_use]
    pub fn before(&self) -> Option<&Value> {
        self.before.as_ref()
    }
}

/// A write was refused, because a larger fencing token has written before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale {
    token: FencingToken,
    by: FencingToken,
}

impl Stale {
    /// The token that was to write.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// The larger token, which has written.
    #[must_use]
    pub fn by(&self) -> FencingToken {
        self.by
    }
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { token, by } = self;
        write!(
            f,
            "the lock with the fencing token {token} is lost: {by} has written since"
        )
    }
}

impl std::error::Error for Stale {}

// Registers of the library's own, such as the records of transactions.

impl LockClient {
    /// The register with a name that users' registers cannot have: it contains `:redlatch:`.
    pub(in crate::registers) fn reserved_register(&self, name: &[u8]) -> Register {
        let prefix = &self.core.key_prefix[..];
        let lock = Arc::from([prefix, name].concat());
        Register {
            client: self.clone(),
            keys: RegisterKeys::new(prefix, name),
            lock,
        }
    }
}
