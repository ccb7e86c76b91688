"""What a client is: subclasses of it, pickles, its end."""

from __future__ import annotations

import multiprocessing
import pickle

import pytest

import redlatch


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
