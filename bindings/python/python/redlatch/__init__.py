"""A distributed lock for programs that block.

    import redlatch

    client = redlatch.Client(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
    with client.lock("orders:42", ttl=10) as lock:  # kept alive; leaving the block releases
        charge()
        lock.ensure_held()  # raises LockLost: before the step that must not run twice
        mark_as_paid()

Times are seconds or ``timedelta``, names ``str`` or ``bytes``. What a lock promises is in the guide
of the library, and what is special to Python in the README of this package.
"""

from . import _interpreter
from ._async import AsyncLock
from ._client import Client
from ._election import Election
from ._errors import (
    AlreadyHeld,
    Cancelled,
    ConfigError,
    LockLost,
    LockTimeout,
    NoQuorum,
    OtherProcess,
    RedlatchError,
    RegisterError,
)
from ._native import Lock, Register, __version__
from ._views import (
    Holder,
    Inspection,
    NodeReport,
    NodeStatus,
    OncePerRun,
    OwnThreads,
    Value,
    Waiter,
)

__all__ = [
    "AlreadyHeld",
    "AsyncLock",
    "Cancelled",
    "Client",
    "ConfigError",
    "Election",
    "Holder",
    "Inspection",
    "Lock",
    "LockLost",
    "LockTimeout",
    "NoQuorum",
    "NodeReport",
    "NodeStatus",
    "OncePerRun",
    "OtherProcess",
    "OwnThreads",
    "RedlatchError",
    "Register",
    "RegisterError",
    "Value",
    "Waiter",
    "__version__",
]

# Tracebacks and pickles name them as programs do.
for _name in __all__:
    if isinstance(_public := globals()[_name], type) and _public not in (Lock, Register):
        _public.__module__ = __name__
