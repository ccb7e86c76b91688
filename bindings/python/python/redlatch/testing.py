"""Nodes for the tests of a program, inside its process and on free ports of 127.0.0.1.

    from redlatch import Client, testing

    with testing.nodes(3) as nodes:
        client = Client(nodes.urls)
        nodes.pause(0)  # a minority: locks are still granted

With pytest, the fixture ``redlatch_nodes`` is the same for a test, and ``redlatch_client`` is a
client of it. They keep nothing on disk, and are no substitute for a server in production.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator

from . import _native

Nodes = _native.Nodes
Ensemble = _native.Ensemble


@contextmanager
def nodes(count: int = 3) -> Iterator[Nodes]:
    """Nodes that answer as redis-servers do. ``stop``, ``restart`` (without its keys), ``pause``
    and ``resume`` take the number of a node, from 0."""
    started = Nodes(count)
    try:
        yield started
    finally:
        for node in range(count):
            started.stop(node)
