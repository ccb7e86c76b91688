"""Tasks of asyncio and trio: blocks that one enters and another one leaves, and waits that end."""

from __future__ import annotations

import asyncio
import gc
import threading
from contextlib import AsyncExitStack

import pytest
import trio

from conftest import until
from redlatch import AlreadyHeld, Cancelled, Client, LockTimeout, _async, _waiting, testing
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


def test_what_is_granted_to_a_task_that_is_cancelled_is_given_back(client, monkeypatch):
    async def main():
        task = asyncio.create_task(client.alock("a", ttl=60).__aenter__())
        monkeypatch.setattr(_waiting, "_set_ended", lambda ended: task.cancel())
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    until(lambda: client.inspect("a").state == "free")


def test_a_coroutine_that_is_closed_when_its_loop_is_gone_leaves_the_queue(client, urls):
    other = Client(urls, restart_guard=False)
    loop = asyncio.new_event_loop()
    task = loop.create_task(client.alock("a")._taken())

    async def queued():
        while not other.inspect("a").waiters:
            await asyncio.sleep(0.01)

    with other.lock("a"):
        loop.run_until_complete(queued())
        loop.close()
        task._log_destroy_pending = False
        task.get_coro().close()
        until(lambda: not other.inspect("a").waiters)


def test_a_loop_that_ends_cancels_its_tasks_and_they_leave_the_queue(client, urls):
    other = Client(urls, restart_guard=False)

    async def main():
        task = asyncio.create_task(client.alock("a")._taken())
        while not other.inspect("a").waiters:
            await asyncio.sleep(0.01)
        return task

    with other.lock("a"):
        assert asyncio.run(main()).cancelled()
        until(lambda: not other.inspect("a").waiters)


class Refuses:
    """A call that ends when it is told to, and then raises."""

    is_refused = False

    def __init__(self):
        self.wake = None

    def wake_by(self, wake):
        self.wake = wake
        return True

    def result(self):
        raise Cancelled("the call was cancelled")

    def cancel(self):
        pass


@pytest.mark.parametrize("turns", range(4))
def test_a_loop_that_stops_amid_the_end_of_a_wait_complains_of_nothing(turns):
    complaints = []

    def turn():
        loop.call_soon(loop.stop)
        loop.run_forever()

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: complaints.append(context["message"]))
    call = Refuses()
    task = loop.create_task(wait_async(lambda: call, lambda: None))
    turn()
    task.cancel()
    while not task.done():
        turn()
    call.wake()
    for _ in range(turns):
        turn()
    loop.close()
    del task
    gc.collect()
    assert complaints == []


def test_a_block_that_is_left_is_none_that_its_task_is_in(client, monkeypatch):
    """Its release may not have begun yet; who waits for the lock waits for that."""
    asked = []

    async def asks_first(start, call):
        refuse_own(client._core, "a", is_async=True)
        asked.append(call)
        return await wait_async(start, call)

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


def test_under_trio_tasks_wait_exclude_each_other_and_leave_their_own_blocks(client, urls):
    other = Client(urls, restart_guard=False)
    order = []

    async def work(number):
        async with client.alock("a") as lock:
            order.append(number)
            await trio.sleep(0.001)
            lock.ensure_held()
            order.append(number)

    async def read(inside, leave, turn):
        async with readers as lock:
            inside.append(lock)
            await leave[turn].wait()
            assert lock.is_held
        assert not lock.is_held

    async def waits_in_vain():
        with pytest.raises(LockTimeout):
            await client.alock("a", timeout=0.05)

    async def main():
        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(work, number)
        assert order[::2] == order[1::2] and sorted(order[::2]) == list(range(100))
        inside, leave = [], [trio.Event(), trio.Event()]
        async with trio.open_nursery() as nursery:
            for turn in (1, 0):
                nursery.start_soon(read, inside, leave, turn)
                while len(inside) < 2 - turn:
                    await trio.sleep(0.01)
            leave[0].set()
            while all(lock.is_held for lock in inside):
                await trio.sleep(0.01)
            leave[1].set()
        async with client.alock("a"):
            with pytest.raises(AlreadyHeld, match="this task"):
                await client.alock("a", timeout=60)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(waits_in_vain)

    readers = client.alock("b", shared=True)
    trio.run(main)
    assert {other.inspect(name).state for name in "ab"} == {"free"}


def test_under_trio_a_wait_that_is_cancelled_leaves_the_queue(client, urls):
    other = Client(urls, restart_guard=False)

    async def cancels(scope):
        while not other.inspect("a").waiters:
            await trio.sleep(0.01)
        scope.cancel()

    async def main():
        with other.lock("a"):
            async with trio.open_nursery() as nursery:
                with trio.CancelScope() as scope:
                    nursery.start_soon(cancels, scope)
                    await client.alock("a")
                assert scope.cancelled_caught
            while other.inspect("a").waiters:
                await trio.sleep(0.01)
        with trio.CancelScope() as scope:
            async with client.alock("a", timeout=30):
                scope.cancel()
                await trio.sleep(1)

    trio.run(main)
    until(lambda: other.inspect("a").state == "free")


def test_a_guest_of_a_loop_of_asyncio_waits_as_trio_does(client):
    async def takes():
        async with client.alock("a") as lock:
            await trio.sleep(0.001)
            return lock.is_held

    async def main():
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        trio.lowlevel.start_guest_run(
            takes,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            done_callback=done.set_result,
        )
        assert (await done).unwrap()
        assert await takes_here()

    async def takes_here():
        async with client.alock("a") as lock:
            return lock.is_held

    asyncio.run(main())
