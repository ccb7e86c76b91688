"""The nodes for tests of programs, and ZooKeeper behind the same calls."""

from __future__ import annotations

import asyncio
import gc
import pickle
import threading

import pytest

import redlatch
from conftest import free_port, until
from redlatch import testing


def test_nodes_can_be_stopped_and_paused():
    with testing.nodes(3) as nodes:
        client = redlatch.Client(nodes)
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
    client = redlatch.Client(ensemble)
    with client.lock("a", fenced=True) as lock:
        lock.ensure_held()
        assert lock.fencing_token
        assert client.try_lock("a") is None
    assert client.inspect("a").state == "free"


def test_nodes_live_as_long_as_the_client_that_was_given_them():
    client = redlatch.Client(testing.nodes(3))
    gc.collect()
    with client.lock("a"):
        pass
    with testing.nodes(3) as nodes:
        client = redlatch.Client(nodes)
    with pytest.raises(redlatch.NoQuorum):
        client.try_lock("a")


def test_a_node_that_was_restarted_does_not_count_as_any_server():
    with testing.nodes(3) as nodes:
        client, trusting = redlatch.Client(nodes), redlatch.Client(nodes, restart_guard=False)
        client.lock("a").release()
        nodes.restart(0)
        nodes.restart(1)
        with pytest.raises(redlatch.NoQuorum) as raised:
            client.try_lock("a")
        assert raised.value.quarantine > 30
        trusting.lock("a").release()


# As a program makes it when it is imported: its servers are not there in a test.
client = redlatch.Client(
    [f"redis://127.0.0.1:{free_port()}" for _ in range(3)], key_prefix="shop:"
)
leader = client.election("leader")
config = client.register("config")


@client.locked("work")
def work() -> str:
    return client.inspect("work").state


@client.locked("work", wait=False)
async def work_async() -> str:
    return client.inspect("work").state


def test_a_client_of_the_program_is_redirected_to_the_nodes_of_a_test():
    with pytest.raises(redlatch.NoQuorum):
        client.try_lock("a")
    for _ in range(2):
        with testing.redirect(client) as nodes:
            assert work() == "held"
            assert asyncio.run(work_async()) == "held"
            with leader.campaign():
                assert leader.leader()
            client.form_registers(in_memory=True)
            config.set(b"1")
            assert pickle.loads(pickle.dumps(client)).register("config").get().data == b"1"
            held = client.lock("a")
            other = redlatch.Client(nodes, key_prefix="shop:")
            assert other.try_lock("a") is None, "its settings stay"
        assert "127.0.0.1" in str(pytest.raises(redlatch.NoQuorum, client.try_lock, "a").value)
        with pytest.raises(redlatch.NoQuorum):
            held.release()


def test_a_redirect_ends_what_waits_and_may_be_within_another(redlatch_nodes):
    told = []

    def wait():
        with pytest.raises(redlatch.Cancelled):
            client.lock("a")
        told.append(True)

    other = redlatch.Client(redlatch_nodes, key_prefix="shop:")
    with testing.redirect(client, redlatch_nodes) as same, other.lock("a"):
        assert same is redlatch_nodes
        with client.lock("b"):
            with testing.redirect(client):
                client.lock("b", timeout=30).release()
            with pytest.raises(redlatch.AlreadyHeld):
                client.lock("b")
        waiting = threading.Thread(target=wait)
        waiting.start()
        until(lambda: other.inspect("a").waiters)
        held = client.lock("b")
    waiting.join(60)
    assert told
    assert held.is_held and other.inspect("b").state == "held"
    held.release()
    assert other.inspect("b").state == "free"
