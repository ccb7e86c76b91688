"""Fixtures for pytest: see :mod:`redlatch.testing`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator

import pytest

if TYPE_CHECKING:
    from . import Client
    from .testing import Nodes

# Only a test that uses one of them imports the package.


@pytest.fixture
def redlatch_nodes() -> Iterator[Nodes]:
    """Three nodes, for one test."""
    from .testing import nodes

    with nodes(3) as started:
        yield started


@pytest.fixture
def redlatch_client(redlatch_nodes: Nodes) -> Client:
    """A client of these nodes."""
    from . import Client

    return Client(redlatch_nodes)
