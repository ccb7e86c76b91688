"""What a client is: subclasses of it, pickles, its end."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import threading
import time

import pytest

import redlatch
from conftest import until


class Tenant(redlatch.Client):
    """A client that is made of something else."""

    def __init__(self, tenant, urls):
        super().__init__(urls, key_prefix=f"{tenant}:", restart_guard=False)
        self.tenant = tenant


class Plain(redlatch.Client):
    pass


def test_a_subclass_is_itself_and_may_be_made_of_something_else(urls, servers):
    client = Tenant("acme", urls)
    with client.lock("a") as lock:
        lock.ensure_held()
        assert b"acme:a" in servers[0].keys()
    assert repr(client) == "<test_client.Tenant of 3 URLs>"
    assert type(Plain(urls, nodes_from_env=None)) is Plain


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_client_keeps_its_class_its_settings_and_its_attributes(urls, servers, protocol):
    for client in (Tenant("acme", urls), Plain(urls, key_prefix="acme:", restart_guard=False)):
        client.note = "kept"
        again = pickle.loads(pickle.dumps(client, protocol))
        assert type(again) is type(client)
        assert (again.note, getattr(again, "tenant", "acme")) == ("kept", "acme")
        with again.lock("a"):
            assert b"acme:a" in servers[0].keys()


def of_tenant(client, results):
    with client.lock("a", timeout=30):
        results.put((type(client).__name__, client.tenant))


def test_a_subclass_is_passed_to_a_process_that_is_spawned(urls):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    child = context.Process(target=of_tenant, args=(Tenant("acme", urls), results))
    child.start()
    assert results.get(timeout=60) == ("Tenant", "acme")
    child.join(60)


def test_nodes_may_be_named_by_the_environment_alone(urls, monkeypatch):
    monkeypatch.setenv("LOCK_NODES", ",".join(urls))
    with redlatch.Client(nodes_from_env="LOCK_NODES", restart_guard=False).lock("a") as lock:
        lock.ensure_held()


def test_a_closed_client_refuses_each_call_and_ends_its_waits(client, urls):
    config, leader = client.register("r"), client.election("l")
    ended = []

    def wait():
        with pytest.raises(redlatch.Cancelled):
            client.lock("a")
        ended.append(True)

    other = redlatch.Client(urls, restart_guard=False)
    with other.lock("a"):
        waiting = threading.Thread(target=wait)
        waiting.start()
        until(lambda: other.inspect("a").waiters)
        with client as same:
            assert same is client
        waiting.join(60)
        assert ended
        until(lambda: not other.inspect("a").waiters)
    client.close()
    calls = [
        lambda: client.lock("a"),
        lambda: client.try_lock("a"),
        lambda: asyncio.run(client.alock("a")._taken()),
        lambda: client.locked("a")(print)(),
        lambda: client.inspect("a"),
        lambda: client.once_per("a", 5, print),
        lambda: client.nodes(),
        lambda: client.cancel(),
        lambda: config.get(),
        lambda: leader.leader(),
        lambda: leader.campaign(),
    ]
    for call in calls:
        with pytest.raises(redlatch.Cancelled, match="this client was closed"):
            call()


def connections(server):
    return server.ask("CLIENT", "LIST").count(b"name=redlatch ")


def test_a_lock_outlives_the_end_of_its_client_and_its_connections_end_with_it(client, servers):
    other = redlatch.Client([server.url for server in servers], client_name="other")
    lock = client.lock("a", ttl=1)
    client.close()
    end = time.monotonic() + 2
    until(lambda: time.monotonic() > end)
    lock.ensure_held()
    assert all(connections(server) == 1 for server in servers)
    assert other.inspect("a").state == "held"
    lock.release()
    del lock
    until(lambda: all(connections(server) == 0 for server in servers))
    assert other.inspect("a").state == "free"


def test_a_client_is_closed_at_once_where_nobody_answers(servers):
    client = redlatch.Client([server.url for server in servers], restart_guard=False)
    with client.lock("a"):
        pass
    for server in servers:
        server.process.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    client.close()
    assert time.monotonic() - began < 1


def test_a_forked_child_closes_its_own_client(client):
    with client.lock("a"):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                client.close()
                with pytest.raises(redlatch.Cancelled):
                    client.lock("b")
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        client.lock("b").release()
    client.close()
    child = os.fork()
    if child == 0:
        try:
            client.lock("b")
        except redlatch.Cancelled:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
