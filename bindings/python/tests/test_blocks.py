"""A thread that waits for a lock which it holds itself is told so."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import queue
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, contextmanager

import pytest

import redlatch
from conftest import until
from redlatch import AlreadyHeld, _blocks
from test_waits import PRELUDE


def refused(call):
    with pytest.raises(AlreadyHeld, match="'a' is held by a block that this t"):
        call()


def test_a_wait_within_the_own_block_is_an_error_at_once(client):
    with client.lock("a", ttl=60):
        refused(lambda: client.lock("a"))
        refused(lambda: client.lock("a", timeout=60))
        refused(lambda: client.try_lock("a", timeout=60))
        refused(lambda: client.lock(b"a"))
        refused(lambda: client.lock(["b", "a"]))
        with pytest.raises(AlreadyHeld, match="this client itself leads 'a', in a block"):
            client.election("a").campaign()
        assert client.try_lock("a") is None
        client.lock("b").release()
    with client.lock(["b", "a"], ttl=60):
        refused(lambda: client.lock("a"))
    client.lock("a").release()


IN_A_BLOCK = "this lock of 'a'.* is in a block already: the end of a second one would release it"


def kinds_of_locks(client):
    yield client.lock("a")
    yield client.try_lock("a", shared=True)
    yield client.lock("a", one_of=2)
    yield client.lock(["b", "a"])
    yield client.election("a").campaign()
    yield client.resume(client.lock("a").into_token(), "a")


def test_a_lock_that_is_in_a_block_enters_no_second_one(client):
    def enter():
        with lock:
            pytest.fail("the end of this block would release the lock of the outer one")

    for lock in kinds_of_locks(client):
        with lock:
            for call in (enter, enter, ThreadPoolExecutor(1).submit(enter).result):
                with pytest.raises(AlreadyHeld, match=IN_A_BLOCK):
                    call()
            lock.ensure_held()
            assert client.inspect("a").state != "free"
        assert client.inspect("a").state == "free"
        with pytest.raises(redlatch.RedlatchError, match="the lock was released already"):
            enter()


def test_a_lock_of_a_task_enters_no_second_block(client):
    async def main():
        for options in ({}, {"shared": True}, {"one_of": 2}):
            async with client.alock("a", **options) as lock:
                with pytest.raises(AlreadyHeld, match=IN_A_BLOCK):
                    with lock:
                        pass
                lock.ensure_held()
            with await client.alock("a", **options) as lock:
                with pytest.raises(AlreadyHeld):
                    with lock:
                        pass
                lock.ensure_held()
        # Of such an object, each block has a share of its own.
        readers = client.alock("a", shared=True)
        async with readers as outer:
            async with readers as inner:
                inner.ensure_held()
            outer.ensure_held()
            assert not inner.is_held

    asyncio.run(main())
    assert client.inspect("a").state == "free"


def test_a_decorated_function_that_calls_itself_is_told(client):
    @client.locked("a")
    def again(depth):
        return again(depth - 1) if depth else 0

    @client.locked("a", wait=False)
    def again_if_free(depth):
        return (depth, again_if_free(depth - 1))

    assert again(0) == 0
    refused(lambda: again(1))
    assert again_if_free(1) == (1, None)
    client.lock("a").release()


def test_readers_and_permits_of_one_thread_stand_beside_each_other(client):
    with client.lock("a", shared=True):
        with client.lock("a", shared=True):
            refused(lambda: client.lock("a"))
    with client.lock("a"):
        refused(lambda: client.lock("a", shared=True))
    with client.lock("a", one_of=2):
        with client.lock("a", one_of=2):
            refused(lambda: client.lock("a", one_of=2))
        refused(lambda: client.lock("a"))
        client.lock("a", one_of=2).release()


def test_a_lock_that_ended_within_its_block_does_not_count(client):
    with client.lock("a") as lock:
        lock.release()
        client.lock("a").release()
    with client.lock("a", ttl=0.1, keep_alive=False) as lock:
        until(lambda: not lock.is_held)
        client.lock("a").release()
        with pytest.raises(redlatch.LockLost):
            lock.ensure_held()
        lock.let_expire()
    with client.lock("a") as lock:
        client.resume(lock.into_token(), "a").release()
        client.lock("a").release()


def test_a_lock_without_a_block_may_be_released_by_another_thread(client):
    lock = client.lock("a")
    timer = threading.Timer(0.2, lock.release)
    timer.start()
    client.lock("a", timeout=60).release()
    timer.join()


def test_a_block_of_another_thread_or_another_client_does_not_count(client, urls):
    leave, inside = threading.Event(), threading.Event()

    def hold():
        with client.lock("a"):
            inside.set()
            leave.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait()
    assert client.try_lock("a", timeout=0.1) is None
    leave.set()
    holder.join()
    other = redlatch.Client(urls, restart_guard=False)
    with other.lock("a"):
        assert client.try_lock("a", timeout=0.1) is None


def taken(call):
    with call() as lock:
        return lock.is_held


def test_a_call_asks_no_locks_of_other_names_whether_they_are_held(client, monkeypatch):
    asked = []
    held = _blocks._held
    monkeypatch.setattr(_blocks, "_held", lambda block: asked.append(block) or held(block))

    async def main():
        async with AsyncExitStack() as stack:
            for number in range(20):
                await stack.enter_async_context(client.alock(str(number)))
            with pytest.raises(AlreadyHeld, match="this task"):
                await client.alock("7")

    asyncio.run(main())
    assert len(asked) == 1


@pytest.mark.parametrize("ends", ["with", "by_hand", "in_another_thread", "in_a_task"])
def test_blocks_that_have_ended_do_not_pile_up(redlatch_client, ends):
    client, count = redlatch_client, 200

    def blocks():
        return sum(isinstance(each, _blocks._Block) for each in gc.get_objects())

    async def in_tasks():
        for number in range(count):
            async with client.alock(str(number)):
                pass

    before = blocks()
    if ends == "in_a_task":
        asyncio.run(in_tasks())
    with ThreadPoolExecutor(1) as pool:
        for number in range(count):
            lock = client.lock(str(number)).__enter__()
            if ends == "with":
                lock.__exit__(None, None, None)
            elif ends == "by_hand":
                lock.release()
            else:
                pool.submit(lock.__exit__, None, None, None).result()
    assert blocks() - before < count / 2


class Worker:
    """A thread of a pool, as those of anyio: one frame runs all that it is given."""

    def __init__(self):
        self.calls = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self):
        context = contextvars.copy_context()
        while True:
            call, future = self.calls.get()
            if call is None:
                return
            try:
                future.set_result(context.run(call))
            except BaseException as error:
                future.set_exception(error)

    def run(self, call):
        future = Future()
        self.calls.put((call, future))
        return future

    def end(self):
        self.calls.put((None, None))
        self.thread.join(60)


@pytest.mark.parametrize("kind", ["dependency", "exit_stack", "nested", "by_hand"])
def test_a_block_that_another_thread_leaves_is_waited_for(client, kind):
    @contextmanager
    def dependency():  # a sync dependency of FastAPI is entered and left in threads of a pool
        with client.lock("a"):
            yield

    @contextmanager
    def nested():
        with dependency():
            yield

    stack = ExitStack()
    cm = {"dependency": dependency, "nested": nested}.get(kind, lambda: client.lock("a"))()
    enter = (lambda: stack.enter_context(cm)) if kind == "exit_stack" else cm.__enter__
    leave = stack.close if kind == "exit_stack" else lambda: cm.__exit__(None, None, None)
    first, second = Worker(), Worker()
    first.run(enter).result(60)
    waiting = first.run(lambda: taken(lambda: client.lock("a", timeout=60)))
    until(lambda: client.inspect("a").own_threads.waiting == 1)
    assert not waiting.done()
    second.run(leave).result(60)
    assert waiting.result(60)
    first.end()
    second.end()


def test_a_block_of_a_thread_that_has_ended_is_waited_for(client):
    stack = ExitStack()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: stack.enter_context(client.lock("a"))).result()
    # Another thread may have its number by now.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: client.try_lock("a", timeout=0.1)).result() is None
        waiting = pool.submit(lambda: client.lock("a", timeout=60).release())
        stack.close()
        waiting.result()


def test_the_block_of_a_context_manager_counts_until_it_ends(client):
    @contextmanager
    def held():
        with client.lock("a"):
            refused(lambda: client.lock("a"))
            yield

    @contextmanager
    def outer():
        with held():
            yield

    with held():
        refused(lambda: client.lock("a"))
    with outer():
        refused(lambda: client.lock("a", timeout=60))

    @held()
    def function():
        refused(lambda: client.lock("a"))

    function()
    client.lock("a").release()


def test_the_block_of_a_generator_may_be_left_by_who_goes_on_with_it(client):
    def rows():
        with client.lock("a"):
            yield refused(lambda: client.lock("a"))

    generator = rows()
    next(generator)
    assert client.try_lock("a", timeout=0.1) is None
    timer = threading.Timer(0.2, generator.close)
    timer.start()
    client.lock("a", timeout=60).release()
    timer.join()


def test_a_lock_of_a_block_keeps_nothing_alive(client):
    class Value:
        pass

    def work():
        value = Value()
        with client.lock("a"):
            return weakref.ref(value)

    assert work()() is None


def test_a_task_is_told_and_other_tasks_wait(client):
    async def take():
        async with client.alock("a"):
            return 1

    async def main():
        async with client.alock("a", shared=True):
            async with client.alock("a", shared=True):
                pass
        async with client.alock("a"):
            with pytest.raises(AlreadyHeld, match="this task"):
                await client.alock("a")
            with pytest.raises(AlreadyHeld, match="this task"):
                await take()
            with pytest.raises(redlatch.LockTimeout):
                await client.alock("a", timeout=0)
            # It would stop the loop, and so the block that it waits for.
            refused(lambda: client.lock("a", timeout=60))
            others = [asyncio.create_task(take()) for _ in range(3)]
            await asyncio.sleep(0.05)
        assert await asyncio.gather(*others) == [1, 1, 1]
        with await client.alock("a"):
            with pytest.raises(AlreadyHeld):
                await client.alock("a")
        assert await take() == 1

    asyncio.run(main())
    with client.lock("a"):
        with pytest.raises(AlreadyHeld):
            asyncio.run(take())
    assert asyncio.run(take()) == 1


def test_under_gevent_a_greenlet_is_told_and_others_wait(urls, program):
    gevent = program(
        "from gevent import monkey; monkey.patch_all()\n"
        + PRELUDE
        + """
import gevent
def take():
    with client.lock("a", timeout=60):
        return 1
with client.lock("a"):
    others = [gevent.spawn(take) for _ in range(3)]
    gevent.sleep(0.05)
    try:
        take()
    except redlatch.AlreadyHeld as error:
        print("told", flush=True)
gevent.joinall(others, timeout=60)
print([each.value for each in others], take(), flush=True)
""",
        ",".join(urls),
    )
    assert gevent.line() == "told"
    assert gevent.line() == "[1, 1, 1] 1"
    assert gevent.end() == (0, "")


def test_a_handler_of_a_signal_within_a_block_is_told(urls, program):
    signalled = program(
        PRELUDE
        + """
signal.signal(signal.SIGUSR1, lambda *_: client.lock("a"))
with client.lock("a"):
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
    except redlatch.AlreadyHeld:
        print("told", flush=True)
""",
        ",".join(urls),
    )
    assert signalled.line() == "told"
    assert signalled.end() == (0, "")


def test_a_forked_child_may_wait_for_the_lock_of_its_parents_block(client, program, urls):
    forking = program(
        PRELUDE
        + """
with client.lock("a"):
    child = os.fork()
    if child == 0:
        held = client.try_lock("a", timeout=0.1)
        print("none" if held is None else "taken", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
""",
        ",".join(urls),
    )
    assert forking.line() == "none"
    assert forking.end() == (0, "")
