"""The keyword arguments that several calls have. All are optional; times are seconds."""

from __future__ import annotations

from datetime import timedelta
from os import PathLike
from typing import TypedDict, Union

Seconds = Union[float, timedelta]
Path = Union[str, "PathLike[str]"]


class Request(TypedDict, total=False):
    """What is asked for, besides a name and a ttl."""

    #: Whether the lock is extended until it is released; ``True`` by default, for a day at most.
    #: Not with ``hold_at_least`` alone: a lock that nobody extends ends after its ttl.
    keep_alive: bool
    #: Draw a fencing token, a number by which a resource rejects stale writers.
    fenced: bool
    #: Hold it beside other readers.
    shared: bool
    #: Hold one of so many slots: at most so many hold it at a time.
    one_of: int
    #: What ``inspect`` shows of the holder, up to 256 bytes.
    owner: str | bytes
    #: The least time that a lock must be valid for when it is granted.
    min_validity: Seconds
    #: For how long it may be held in all, however often it is extended.
    max_hold: Seconds
    #: For how long it stays taken at least, also after its release: for a job that several machines
    #: begin at the same time by clocks that differ.
    hold_at_least: Seconds


class Settings(TypedDict, total=False):
    """How a client works. The guide says more of each, and why the defaults are what they are.

    All programs that share locks set the same ``key_prefix``, ``max_ttl``, ``failover_bound``,
    ``fencing_expiry`` and ``restart_guard``.
    """

    #: For how long a node may be silent before others decide without it; 0.05 by default.
    node_timeout: Seconds
    #: How long one attempt to connect may take; 2 by default.
    connect_timeout: Seconds
    #: How long a ZooKeeper session outlives its client; 10 by default.
    session_timeout: Seconds
    #: The longest ttl, 60 by default, and how long the votes of a restarted node do not count.
    max_ttl: Seconds
    #: For how long a lock may be held in all; a day by default.
    max_hold: Seconds
    #: The least time that a lock must be valid for when it is granted; 0 by default.
    min_validity: Seconds
    #: Of a replicated group: for how long a master that was replaced may still answer; 15 by
    #: default, or 5 with ``?replicas=`` in the URL.
    failover_bound: Seconds
    #: For how long a waiter may be silent before others pass it by; 1.5 by default.
    waiter_lease: Seconds
    #: How long the counters of fencing tokens live after a grant; 7 days by default.
    fencing_expiry: Seconds
    #: By what part the clocks of two machines may run apart; 0.01 by default.
    drift_factor: float
    #: Whether votes of a node count only ``max_ttl`` after its start; ``True`` by default.
    #: ``False``: for tests, and for nodes that write each change to disk at once.
    restart_guard: bool
    wait_for_all: bool
    io_thread: bool
    #: Whether waiting calls stand in a queue that the nodes keep; ``True`` by default.
    queue: bool
    #: What stands before the name of each lock in the nodes' keys.
    key_prefix: str | bytes
    #: The name that the nodes show for the connections; ``redlatch`` by default.
    client_name: str
    #: The name of an environment variable with more URLs.
    nodes_from_env: str
    #: A file of root certificates for ``rediss://``; those of the system by default.
    ca_file: Path
    #: The files of a client's certificate and of its key.
    client_certificate: tuple[Path, Path]
    #: Whether Mozilla's root certificates, inside this package, count.
    bundled_roots: bool
