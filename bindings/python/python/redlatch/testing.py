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

from contextlib import contextmanager, nullcontext
from typing import Iterator

from . import _native
from ._client import Client

Nodes = _native.Nodes
Ensemble = _native.Ensemble

#: Settings that say which servers are asked, and how.
_OF_SERVERS = ("nodes_from_env", "ca_file", "client_certificate", "bundled_roots")


def nodes(count: int = 3) -> Nodes:
    """Nodes that answer as redis-servers do, until the end of a ``with`` block of them. ``stop``,
    ``restart`` (without its keys), ``pause`` and ``resume`` take the number of a node, from 0."""
    return Nodes(count)


@contextmanager
def redirect(client: Client, to: Nodes | None = None) -> Iterator[Nodes]:
    """Has a client that the program has made ask other nodes, ``to`` or three new ones, within a
    ``with`` block: decorators, elections and registers that were made of it before do, too.

    Its settings stay, but for those of TLS. At the end, what waits by the other nodes is cancelled.
    """
    with nodes(3) if to is None else nullcontext(to) as started:
        settings = {
            name: value for name, value in client._settings.items() if name not in _OF_SERVERS
        }
        other = Client(started, **settings)
        client._exchange(other)
        try:
            yield started
        finally:
            client._exchange(other)
            other.close()
