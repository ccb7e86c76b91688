//! What a register's methods return.

use super::Register;
use crate::client::LockClient;
use crate::clock::{self, WallTime};
use crate::error::RegisterError;
use crate::fencing::FencingToken;
use crate::registers::{RegisterKeys, Stored, Version};
use std::fmt;
use std::sync::Arc;

/// The value of a register.
#[derive(Clone, PartialEq, Eq)]
pub struct Value(pub(super) Stored);

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
        self.0.fence().and_then(|fence| FencingToken::try_from(fence).ok())
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
    pub(super) version: Option<Version>,
    pub(super) before: Option<Value>,
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
    pub(super) token: FencingToken,
    pub(super) by: FencingToken,
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
        write!(f, "the lock with the fencing token {token} is lost: {by} has written since")
    }
}

impl std::error::Error for Stale {}

// Registers of the library's own, such as the records of transactions.

impl LockClient {
    /// The register with a name that users' registers cannot have: it contains `:redlatch:`.
    pub(in crate::client) fn reserved_register(&self, name: &[u8]) -> Register {
        let prefix = &self.core.key_prefix[..];
        let lock = Arc::from([prefix, name].concat());
        Register { client: self.clone(), keys: RegisterKeys::new(prefix, name), lock }
    }
}

impl Register {
    /// Creates it with this value, in one round. Nobody else may give it one before: see
    /// [`Change::create`](crate::registers::Change::create).
    pub(in crate::client) fn create(&self, value: &[u8]) -> Result<(), RegisterError> {
        self.run_first(|draft| super::put(draft, Some(value.to_vec()))).map(|_| ())
    }

    /// As [`change`](Self::change), with a result. The value is written only if it becomes another
    /// one, and not if the change fails.
    pub(in crate::client) fn update<T>(
        &self,
        mut change: impl FnMut(&mut Option<Vec<u8>>) -> Result<T, RegisterError>,
    ) -> Result<T, RegisterError> {
        let updated = self.run(|draft| {
            let before = draft.current().map(|value| value.bytes().to_vec());
            let mut after = before.clone();
            let result = change(&mut after)?;
            if after != before {
                super::put(draft, after)?;
            }
            Ok(result)
        })?;
        Ok(updated.0)
    }
}
