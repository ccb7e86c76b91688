"""The nodes for tests of programs, and ZooKeeper behind the same calls."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import subprocess
import sys
import threading
from contextlib import ExitStack

import pytest

import redlatch
from conftest import free_port, until
from redlatch import _async, _client, _election, testing


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
    with other.lock("a"), testing.redirect(client, redlatch_nodes) as same:
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


@pytest.fixture
def production():
    """Nodes that no test may reach, and what they keep."""
    with testing.nodes(3) as nodes:
        yield nodes
        assert redlatch.Client(nodes).locks() == []


def is_of(client, nodes):
    """The lock is there, and not by nodes of an earlier redirect or of the program."""
    with client.lock("a", timeout=30):
        return redlatch.Client(nodes).inspect("a").state == "held"


def test_redirects_may_end_in_any_order(production):
    client = redlatch.Client(production)
    stacks = [ExitStack() for _ in range(3)]
    first, second, third = [stack.enter_context(testing.redirect(client)) for stack in stacks]
    assert is_of(client, third)
    stacks[1].close()
    assert is_of(client, third)
    stacks[2].close()
    assert is_of(client, first)
    fourth = stacks[1].enter_context(testing.redirect(client))
    stacks[0].close()
    assert is_of(client, fourth)
    copy = pickle.loads(pickle.dumps(client))
    assert is_of(copy, fourth)
    stacks[1].close()
    # Its own again.
    held = client.lock("a")
    assert redlatch.Client(production).inspect("a").state == "held"
    held.release()
    with pytest.raises(redlatch.NoQuorum):
        copy.try_lock("a")


def test_a_redirect_of_one_thread_outlives_an_earlier_one_of_another(production):
    client = redlatch.Client(production)
    both, one = threading.Barrier(2, timeout=60), threading.Barrier(2, timeout=60)
    told = []

    def earlier(later):
        with testing.redirect(client):
            later.start()
            both.wait()
        one.wait()

    def later():
        with testing.redirect(client) as nodes:
            both.wait()
            one.wait()
            told.append(is_of(client, nodes))

    second = threading.Thread(target=later)
    first = threading.Thread(target=earlier, args=(second,))
    first.start()
    first.join(60)
    second.join(60)
    assert told == [True]


def test_a_call_of_a_coroutine_stays_with_the_redirect_it_began_in(production, monkeypatch):
    client = redlatch.Client(production)
    redirect = testing.redirect(client)
    wait = _async.wait_async

    async def ends_first(start, call):
        redirect.__exit__()
        return await wait(start, call)

    async def main():
        redirect.__enter__()
        await client.alock("a", ttl=60)

    monkeypatch.setattr(_async, "wait_async", ends_first)
    with pytest.raises(redlatch.RedlatchError):
        asyncio.run(main())


def test_a_redirect_that_nothing_refers_to_goes_on(production):
    client = redlatch.Client(production)
    nodes = testing.redirect(client).__enter__()
    gc.collect()
    assert is_of(client, nodes)


def test_a_redirect_is_no_decorator_as_a_coroutine_would_run_after_it(production):
    async def work():
        """Would take its lock from the program's nodes."""

    with pytest.raises(TypeError):
        testing.redirect(redlatch.Client(production))(work)


@pytest.mark.parametrize("module", [_client, _election])
def test_a_call_that_began_in_a_redirect_asks_no_other_nodes_after_it(
    production, monkeypatch, module
):
    client = redlatch.Client(production)
    election = client.election("a")
    stack = ExitStack()
    nodes = stack.enter_context(testing.redirect(client))

    def wait(_start, call):
        stack.close()
        return call()

    monkeypatch.setattr(module, "wait", wait)
    with redlatch.Client(nodes).lock("a"), pytest.raises(redlatch.Cancelled):
        if module is _election:
            election.campaign()
        else:
            client.lock("a", timeout=30)


OF_REDIS = {"fencing_expiry": 86400, "queue": False, "waiter_lease": 1, "wait_for_all": True}


@pytest.mark.parametrize(
    ("urls", "settings", "start"),
    [
        ("zk://127.0.0.1:1", {"session_timeout": 5}, testing.nodes),
        ("redis://127.0.0.1:1", OF_REDIS, testing.Ensemble),
    ],
)
def test_a_redirect_to_another_kind_of_nodes_leaves_out_what_does_not_apply(urls, settings, start):
    client = redlatch.Client(urls, key_prefix="shop:", **settings)
    with testing.redirect(client, start()) as nodes:
        with client.lock("a"):
            other = redlatch.Client(nodes, key_prefix="shop:")
            assert other.try_lock("a") is None, "the others stay"


@pytest.mark.parametrize(
    ("start", "settings"), [(testing.nodes, OF_REDIS), (testing.Ensemble, {"session_timeout": 5})]
)
def test_a_redirect_keeps_all_settings_that_apply(start, settings):
    client = redlatch.Client(start(), **settings)
    with testing.redirect(client, start()):
        assert client._core.asked().made_of[1] == settings


def test_a_child_that_was_forked_in_a_redirect_stays_there(production):
    client = redlatch.Client(production)
    (reading, told), (heard, writing) = os.pipe(), os.pipe()
    with testing.redirect(client) as nodes:
        child = os.fork()
        if child == 0:
            try:
                assert is_of(client, nodes)
                os.write(told, b"1")
                os.read(heard, 1)
                with pytest.raises(redlatch.NoQuorum):
                    client.try_lock("a")
                os.write(told, b"2")
            finally:
                os._exit(0)
        os.close(told)
        assert os.read(reading, 1) == b"1"
    os.write(writing, b"!")
    assert os.read(reading, 1) == b"2"
    os.waitpid(child, 0)


@pytest.mark.parametrize("leave", ["end", "drop"])
def test_a_child_that_leaves_the_block_ends_no_nodes_and_itself_in_order(leave):
    program = """if True:
        import gc, os, sys
        from redlatch import Client, testing

        kept = [testing.nodes(3), testing.Ensemble()]
        with testing.redirect(Client(kept[0])) as nodes:
            child = os.fork()
            if child == 0:
                try:
                    nodes.stop(0)
                except RuntimeError as error:
                    assert "in the process that started them" in str(error)
                if sys.argv[1] == "drop":
                    kept.clear()
                    gc.collect()
                    os._exit(0)
        if child == 0:
            sys.exit()
        assert os.waitpid(child, 0)[1] == 0, "the child ended by a signal"
        Client(kept[0]).lock("a").release()
        Client(kept[1]).lock("a").release()
    """
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, leave]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
