"""Blocks of asyncio that one task enters and another one leaves."""

from __future__ import annotations

import asyncio
import gc
import threading
from contextlib import AsyncExitStack

import pytest

from conftest import until
from redlatch import Cancelled, Client, _async, _threads, _waiting, testing
from redlatch._blocks import refuse_own
from redlatch._waiting import wait_async


def test_a_block_may_be_left_by_another_task(client):
    async def main():
        kept = client.alock("a", ttl=60)
        lock = await asyncio.create_task(kept.__aenter__())
        lock.ensure_held()
        await asyncio.create_task(kept.__aexit__(None, None, None))
        assert not lock.is_held
        stack = AsyncExitStack()
        await asyncio.create_task(stack.enter_async_context(kept))
        assert client.inspect("a").state == "held"
        await stack.aclose()
        async with kept as again:
            again.ensure_held()
        with pytest.raises(RuntimeError, match="not in a block of this lock"):
            await kept.__aexit__(None, None, None)

    asyncio.run(main())
    assert client.inspect("a").state == "free"


def test_a_generator_that_is_closed_by_another_task_leaves_its_block(client):
    kept = client.alock("a")

    async def rows():
        async with kept as lock:
            yield lock
            yield lock

    async def first(generator):
        async for lock in generator:
            return lock

    async def main():
        generator = rows()
        lock = await asyncio.create_task(first(generator))
        lock.ensure_held()
        await asyncio.create_task(generator.aclose())
        assert not lock.is_held
        # The loop itself closes one that nothing refers to, in a task of its own.
        lock = await asyncio.create_task(first(rows()))
        gc.collect()
        while lock.is_held:
            await asyncio.sleep(0.01)

    asyncio.run(main())
    assert client.inspect("a").state == "free"


def test_a_task_leaves_its_own_block_before_those_of_others(client):
    async def main():
        shared = client.alock("a", shared=True)
        inside, leave = [], asyncio.Event()

        async def stay():
            async with shared as lock:
                inside.append(lock)
                await leave.wait()
                assert lock.is_held
            assert not lock.is_held

        tasks = [asyncio.create_task(stay()) for _ in range(2)]
        while len(inside) < 2:
            await asyncio.sleep(0.01)
        ended = [await asyncio.create_task(shared.__aenter__()) for _ in range(2)]
        async with shared as own:
            await asyncio.create_task(shared.__aexit__(None, None, None))
            assert [lock.is_held for lock in ended] == [False, True]
            await asyncio.create_task(shared.__aexit__(None, None, None))
            assert [lock.is_held for lock in ended] == [False, False]
            assert own.is_held and inside[0].is_held and inside[1].is_held
        leave.set()
        await asyncio.gather(*tasks)

        # A task whose block was left by another one: that takes the oldest of those that go on.
        leave.clear()
        task = asyncio.create_task(stay())
        while len(inside) < 3:
            await asyncio.sleep(0.01)
        await shared.__aexit__(None, None, None)
        assert not inside[2].is_held
        task.cancel()  # its own exception goes on
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert client.inspect("a").state == "free"


def test_a_coroutine_that_is_closed_when_its_loop_is_gone_leaves_its_block(client):
    kept = client.alock("a", ttl=60)

    async def stay():
        async with kept:
            inside.append(True)
            await asyncio.Event().wait()

    async def enter():
        while not inside:
            await asyncio.sleep(0.01)

    inside: list[bool] = []
    loop = asyncio.new_event_loop()
    coroutine = stay()
    task = loop.create_task(coroutine)
    loop.run_until_complete(enter())
    loop.close()
    task._log_destroy_pending = False
    assert client.inspect("a").state == "held"
    coroutine.close()
    assert client.inspect("a").state == "free"


def test_what_is_granted_to_a_task_whose_loop_is_gone_is_released(client, urls):
    held = Client(urls, restart_guard=False).lock("a", ttl=60)
    loop = asyncio.new_event_loop()
    task = loop.create_task(client.alock("a", ttl=60).__aenter__())

    async def queued():
        while not client.inspect("a").waiters:
            await asyncio.sleep(0.01)

    loop.run_until_complete(queued())
    loop.close()
    held.release()
    until(lambda: client.inspect("a").state == "free")
    assert not task.done()
    task._log_destroy_pending = False
    task.get_coro().close()


def test_what_is_granted_to_a_task_that_is_cancelled_is_released_in_another_thread(
    client, monkeypatch
):
    """For the time of a round, the loop would stand still."""
    released = []
    release = _waiting._release

    def note(done):
        released.append(threading.current_thread())
        release(done)

    async def main():
        task = asyncio.create_task(client.alock("a", ttl=60).__aenter__())

        def cancel(loop, ended, done):
            loop.call_soon_threadsafe(task.cancel)

        monkeypatch.setattr(_waiting, "_wake", cancel)
        monkeypatch.setattr(_waiting, "_release", note)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    until(lambda: client.inspect("a").state == "free")
    assert len(released) == 1
    assert released[0] is not threading.main_thread()


@pytest.mark.parametrize("turns", range(4))
def test_a_loop_that_stops_amid_the_end_of_a_wait_complains_of_nothing(monkeypatch, turns):
    monkeypatch.setattr(_threads, "IDLE_MAX", 0)
    go_on, complaints = threading.Event(), []

    def call(cancel):
        go_on.wait()
        raise Cancelled("the call was cancelled")

    def turn():
        loop.call_soon(loop.stop)
        loop.run_forever()

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: complaints.append(context["message"]))
    task = loop.create_task(wait_async(call))
    turn()
    others = [each for each in threading.enumerate() if each.name == "redlatch-wait"]
    assert others
    task.cancel()
    while not task.done():
        turn()
    go_on.set()
    until(lambda: not any(each.is_alive() for each in others))
    for _ in range(turns):
        turn()
    loop.close()
    del task
    gc.collect()
    assert complaints == []


def test_a_block_that_is_left_is_none_that_its_task_is_in(client, monkeypatch):
    """Its release may still wait for a thread; who waits for the lock waits for that."""
    asked = []

    async def asks_first(call, **settings):
        refuse_own(client._core, "a", is_async=True)
        asked.append(call)
        return await wait_async(call, **settings)

    async def main():
        async with client.alock("a", ttl=60):
            monkeypatch.setattr(_async, "wait_async", asks_first)

    asyncio.run(main())
    assert len(asked) == 1


def test_whether_a_lock_is_held_is_told_while_nodes_are_asked_to_release_it():
    with testing.nodes(3) as nodes:
        client = Client(nodes, node_timeout=1)
        lock = client.lock("a", ttl=60)
        nodes.pause(0)
        nodes.pause(1)
        leaves = threading.Thread(target=lock.__exit__, args=(None, None, None))
        leaves.start()
        until(lambda: not lock.is_held)
        assert leaves.is_alive(), "who asks waits for the nodes"
        nodes.resume(0)
        nodes.resume(1)
        leaves.join()
