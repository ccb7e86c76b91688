"""The nodes for tests of programs, and ZooKeeper behind the same calls."""

from __future__ import annotations

import pytest

import redlatch
from redlatch import testing


def test_nodes_can_be_stopped_and_paused():
    with testing.nodes(3) as nodes:
        client = redlatch.Client(nodes.urls)
        nodes.stop(0)
        with client.lock("a"):
            pass
        nodes.pause(1)
        with pytest.raises(redlatch.NoQuorum):
            client.try_lock("b")
        nodes.resume(1)
        with client.lock("c", timeout=30):
            pass
        assert len(nodes) == 3
        with pytest.raises(IndexError):
            nodes.stop(3)


def test_the_fixtures_are_there_without_an_import(redlatch_client, redlatch_nodes):
    with redlatch_client.lock("a"):
        redlatch_nodes.pause(2)


def test_zookeeper_is_behind_the_same_calls():
    ensemble = testing.Ensemble()
    client = redlatch.Client(ensemble.url)
    with client.lock("a", fenced=True) as lock:
        lock.ensure_held()
        assert lock.fencing_token
        assert client.try_lock("a") is None
    assert client.inspect("a").state == "free"
