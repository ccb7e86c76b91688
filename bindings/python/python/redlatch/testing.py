"""Nodes for the tests of a program, inside its process and on free ports of 127.0.0.1.

    from redlatch import Client, testing

    with testing.nodes(3) as nodes:
        client = Client(nodes)
        nodes.pause(0)  # a minority: locks are still granted

With pytest, the fixture ``redlatch_nodes`` is the same for a test, and ``redlatch_client`` is a
client of it. They keep nothing on disk, and are no substitute for a server in production.

They count from their start, as if they had run for long. One that a test restarts does not count
for ``max_ttl``, as any server: a test that restarts a majority makes its client with
``restart_guard=False``.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast, overload

from . import _native
from ._client import Client

Nodes = _native.Nodes
Ensemble = _native.Ensemble

#: Settings that say which servers are asked, and how.
_OF_SERVERS = ("nodes_from_env", "ca_file", "client_certificate", "bundled_roots")
#: Those that are refused if they are set for nodes of the other kind.
_OF_ZOOKEEPER = ("session_timeout",)
_OF_REDIS = ("fencing_expiry", "queue", "waiter_lease", "wait_for_all")

_To = TypeVar("_To", Nodes, Ensemble)


def nodes(count: int = 3) -> Nodes:
    """Nodes that answer as redis-servers do, until the end of a ``with`` block of them. ``stop``,
    ``restart`` (without its keys), ``pause`` and ``resume`` take the number of a node, from 0."""
    return Nodes(count)


class redirect(Generic[_To]):
    """Has a client that the program has made ask other nodes within a ``with`` block: ``to``, which
    may be an :class:`Ensemble`, or three new ones. Decorators, elections and registers that were
    made of it before do, too.

    Of several that are open, the newest counts, in whatever order they end and whatever threads
    they are of; the client asks its own nodes when all have ended. Its settings stay, but for those
    of TLS and those that do not apply to these nodes, as ``session_timeout`` does to an ensemble
    alone. At the end, what waits by the other nodes is cancelled.

    A child that was forked within the block stays with the nodes of the test, as does a copy of the
    client that was pickled there. A process that imports the program anew, by ``spawn`` or
    ``subprocess``, makes a client of its own, which is not redirected.
    """

    @overload
    def __init__(self: redirect[Nodes], client: Client, to: None = None) -> None: ...
    @overload
    def __init__(self, client: Client, to: _To) -> None: ...
    def __init__(self, client: Client, to: _To | None = None) -> None:
        self._client = client
        self._to: _To | None = to
        self._open: list[tuple[Client, Any]] = []

    def __enter__(self) -> _To:
        # Without `to`, these are `Nodes`.
        started: Any = nodes(3) if self._to is None else self._to
        left_out = _OF_REDIS if isinstance(started, Ensemble) else _OF_ZOOKEEPER
        _, settings = self._client._core.made_of
        kept = {
            name: value
            for name, value in settings.items()
            if name not in _OF_SERVERS and name not in left_out
        }
        other = Client(started, **kept)
        self._open.append((other, started))
        self._client._core.redirect(other._core)
        return cast("_To", started)

    # Nothing else ends it: of one that nobody refers to any more, the test goes on. And it is no
    # decorator: a coroutine function, or a fixture that yields, would run after its end.
    def __exit__(self, *_error: object) -> None:
        other, started = self._open.pop()
        self._client._core.end_redirect(other._core)
        other.close()
        if self._to is None:
            started.__exit__()
