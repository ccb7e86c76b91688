"""What the nodes have said, as plain values. Times are seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ._native import Seen, Version


class NodeReport(NamedTuple):
    """The answer of one node, as in :class:`redlatch.NoQuorum`."""

    url: str
    #: What it answered, or why it did not.
    answer: str
    #: Whether its answer does not count, and whether that will stay so until somebody mends it.
    has_failed: bool
    is_permanent: bool


@dataclass(frozen=True)
class NodeStatus:
    """The state of a node, as :meth:`redlatch.Client.nodes` saw it. ``None``: not known."""

    url: str
    is_connected: bool
    server: str | None
    version: str | None
    uptime: float | None
    #: For how long its grants do not count yet, because it was started recently.
    quarantine: float | None
    round_trip: float | None
    last_error: str | None
    #: What about it breaks a promise of the lock, or would in a fault that is to be expected.
    warnings: list[str]


@dataclass(frozen=True)
class Holder:
    """Who holds a lock."""

    #: What it gave as ``owner``.
    owner: str | bytes | None
    #: Until the lock ends, unless it is extended. ``None`` on ZooKeeper.
    remaining: float | None
    #: Its slot, of ``one_of``.
    slot: int | None
    #: The other program that holds it, such as redlock-py.
    other_program: str | None


@dataclass(frozen=True)
class Waiter:
    """Who waits for a lock."""

    owner: str | bytes | None
    since: datetime
    is_for_share: bool


@dataclass(frozen=True)
class OwnThreads:
    """What a client knows of its own threads at a lock, and nobody else."""

    #: Who holds it: ``"this_thread"``, which asks; ``"other_thread"`` or task; or nobody of these.
    holder: str | None
    #: How many wait for it, that included which stands among ``waiters`` for them all. Who waits
    #: for one of its slots (``one_of``) is a waiter there by itself, and not counted here.
    waiting: int
    #: For how long the longest of them has waited.
    longest_wait: float | None


@dataclass(frozen=True)
class Inspection:
    """A lock as the nodes have it: see :meth:`redlatch.Client.inspect`."""

    #: ``"free"``, ``"held"``, ``"shared"``, ``"reserved"`` (for the first waiter), ``"not_a_lock"``
    #: (other data has this name), or ``"undecided"``.
    state: str
    holders: list[Holder]
    #: From the first to the last. Of the threads that wait by one client, one stands here for all;
    #: none while one of their own holds the lock: see ``own_threads``.
    waiters: list[Waiter]
    #: Those of the client that inspects. Those of others nobody else knows.
    own_threads: OwnThreads
    #: For how long too few nodes could grant it, as they were started recently.
    quarantine: float | None
    #: For :meth:`redlatch.Client.force_release`; ``None`` of one that was pickled.
    seen: Seen | None = field(repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "seen": None}


@dataclass(frozen=True)
class OncePerRun:
    """What :meth:`redlatch.Client.once_per` has done."""

    #: Whether the job ran here, and what it returned.
    ran: bool
    value: Any = None
    #: If it has run already: in how many seconds it is due again, and when that is.
    left: float | None = None
    next: datetime | None = None
    #: Whether it is being run elsewhere.
    is_held_by_other: bool = False


@dataclass(frozen=True)
class Value:
    """The value of a register."""

    data: bytes
    version: Version
    written_at: datetime
    #: The fencing token with which it was written.
    fence: int | None
