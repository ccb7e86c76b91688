//! One error that every other one converts into.

use super::{
    ConfigError, ExtendError, FencingTokenError, ForceReleaseError, InspectError, LockError,
    LockLost, NoQuorum, NodeError, OncePerError, RegisterError, ReleaseError, SpawnError,
    TransactionError,
};
use std::fmt;

/// Any error of this crate, for functions that call several of its methods: every other error
/// converts into it, so that `?` is enough.
///
/// ```no_run
/// # use redlatch::LockClient;
/// # use std::time::Duration;
/// # fn charge_the_card() {}
/// fn charge_once(client: &LockClient) -> Result<(), redlatch::Error> {
///     let mut lock = client.lock("orders:42", Duration::from_secs(10))?; // LockError
///     lock.extend(Duration::from_secs(20))?; // ExtendError
///     lock.ensure_held()?; // LockLost
///     charge_the_card();
///     lock.release()?; // ReleaseError
///     Ok(())
/// }
/// ```
///
/// Its text and its `source()` are those of the error inside it. So is its `Debug`, which is
/// printed if `main` returns it.
#[non_exhaustive]
pub enum Error {
    /// A client could not be built.
    Config(ConfigError),
    /// A lock could not be acquired.
    Lock(LockError),
    /// A lock could not be extended.
    Extend(ExtendError),
    /// A lock was lost before its release, or it is not known whether it was released.
    Release(ReleaseError),
    /// A lock could not be inspected.
    Inspect(InspectError),
    /// A lock was not released by force.
    ForceRelease(ForceReleaseError),
    /// A lock was lost.
    Lost(LockLost),
    /// A register could not be read or changed.
    Register(RegisterError),
    /// A job that runs once in each period has not run: its period, or the nodes' clocks.
    OncePer(OncePerError<()>),
    /// A transaction could not be begun, looked at or changed.
    Transaction(TransactionError),
    /// Too few nodes gave an answer that counts.
    NoQuorum(NoQuorum),
    /// The answer of one node does not count.
    Node(NodeError),
    /// A thread that keeps locks alive or calls callbacks could not be started.
    Spawn(SpawnError),
    /// A number is no fencing token.
    FencingToken(FencingTokenError),
}

impl Error {
    /// The error inside.
    fn inner(&self) -> &(dyn std::error::Error + 'static) {
        match self {
            Self::Config(error) => error,
            Self::Lock(error) => error,
            Self::Extend(error) => error,
            Self::Release(error) => error,
            Self::Inspect(error) => error,
            Self::ForceRelease(error) => error,
            Self::Lost(error) => error,
            Self::Register(error) => error,
            Self::OncePer(error) => error,
            Self::Transaction(error) => error,
            Self::NoQuorum(error) => error,
            Self::Node(error) => error,
            Self::Spawn(error) => error,
            Self::FencingToken(error) => error,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.inner(), f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner().source()
    }
}

macro_rules! from {
    ($($error:ident => $variant:ident),+ $(,)?) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )+};
}

from! {
    ConfigError => Config,
    LockError => Lock,
    ExtendError => Extend,
    ReleaseError => Release,
    InspectError => Inspect,
    ForceReleaseError => ForceRelease,
    LockLost => Lost,
    RegisterError => Register,
    TransactionError => Transaction,
    NoQuorum => NoQuorum,
    NodeError => Node,
    SpawnError => Spawn,
    FencingTokenError => FencingToken,
}
