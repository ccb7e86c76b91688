"""The threads in which calls wait: they serve other calls afterwards, and stand in nobody's way."""

from __future__ import annotations

import asyncio
import os
import threading
import time

import pytest

import redlatch
from conftest import until
from redlatch import _threads
from test_waits import PRELUDE


def threads():
    return [each for each in threading.enumerate() if each.name == "redlatch-wait"]


@pytest.fixture
def none_is_idle(monkeypatch):
    """Those of tests before this one have ended."""
    monkeypatch.setattr(_threads, "IDLE_LIMIT", 0.05)
    until(lambda: not threads())
    monkeypatch.undo()


async def takes(client, name):
    async with client.alock(name):
        await asyncio.sleep(0)


def test_a_thread_serves_one_call_after_another(none_is_idle, client):
    async def main():
        for number in range(20):
            await takes(client, f"a {number}")

    asyncio.run(main())
    # The next call may begin before the thread of the one before is idle.
    assert len(threads()) <= 5


def test_idle_threads_are_few_and_end(none_is_idle, client, monkeypatch):
    monkeypatch.setattr(_threads, "IDLE_MAX", 3)
    monkeypatch.setattr(_threads, "IDLE_LIMIT", 0.5)

    async def main():
        await asyncio.gather(*(takes(client, f"a {number}") for number in range(50)))

    asyncio.run(main())
    until(lambda: len(threads()) <= 3)
    until(lambda: not threads() and not _threads._idle)


def test_any_number_of_waits_does_not_keep_a_holder_from_releasing(client, urls, monkeypatch):
    monkeypatch.setattr(_threads, "IDLE_MAX", 2)
    other = redlatch.Client(urls, restart_guard=False)

    async def main():
        async with client.alock("a"):
            waiting = [asyncio.create_task(takes(other, "a")) for _ in range(200)]
            while len(threads()) < 200:
                await asyncio.sleep(0.01)
        await asyncio.wait_for(asyncio.gather(*waiting), 60)

    asyncio.run(main())


def test_an_idle_thread_keeps_no_lock(none_is_idle, client, monkeypatch):
    monkeypatch.setattr(_threads, "IDLE_LIMIT", 60)

    async def main():
        lock = await client.alock("a")
        lock.ensure_held()
        del lock

    try:
        with pytest.warns(ResourceWarning):
            asyncio.run(main())
            until(lambda: client.inspect("a").state == "free")
    finally:
        while _threads._idle:
            _threads.run_in_idle(lambda: monkeypatch.setattr(_threads, "IDLE_MAX", 0))
            time.sleep(0.01)


def test_a_cancelled_call_leaves_its_thread_to_others(none_is_idle, client, urls):
    other = redlatch.Client(urls, restart_guard=False)

    async def main():
        with other.lock("a"):
            for _ in range(10):
                task = asyncio.create_task(client.alock("a")._taken())
                while not other.inspect("a").waiters:
                    await asyncio.sleep(0.005)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                while other.inspect("a").waiters:
                    await asyncio.sleep(0.005)
                await takes(client, "b")

    asyncio.run(main())
    assert len(threads()) <= 4


def test_a_forked_child_starts_threads_of_its_own(client):
    asyncio.run(takes(client, "a"))
    until(lambda: _threads._idle)
    for _ in range(3):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                asyncio.run(asyncio.wait_for(takes(client, "b"), 30))
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0


def test_the_interpreter_ends_at_once_with_idle_threads(urls, program):
    ending = program(
        """
import asyncio, sys, time, redlatch
client = redlatch.Client(sys.argv[1].split(","), restart_guard=False)
redlatch._threads.IDLE_LIMIT = 1000
async def takes(number):
    async with client.alock(f"a {number}"): pass
async def main(): await asyncio.gather(*map(takes, range(50)))
asyncio.run(main())
print(len(redlatch._threads._idle) > 0, flush=True)
""",
        ",".join(urls),
    )
    assert ending.line() == "True"
    began = time.monotonic()
    assert ending.end() == (0, "")
    assert time.monotonic() - began < 30


# From `start_no_thread()` on, the system refuses each thread, as it does in a container whose limit
# of processes is reached; to root, it refuses none.
NO_THREAD = (
    PRELUDE
    + """
import asyncio, concurrent.futures, resource
from redlatch import _threads
_threads.IDLE_MAX = 0
def start_no_thread():
    client.lock("warm").release()
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    if os.getuid() == 0:
        os.setresuid(61234, 61234, 61234)
    try: threading.Thread(target=print).start()
    except RuntimeError: print("none", flush=True)
def told(call):
    try: print(call(), flush=True)
    except redlatch.RedlatchError as error:
        print(type(error).__name__, error, type(error.__cause__).__name__, flush=True)
"""
)


def test_where_no_thread_can_be_started_a_loop_is_told_and_goes_on(client, urls, program):
    limited = program(
        NO_THREAD
        + """
async def take(): await client.alock("a")
async def main():
    async with client.alock("a"), client.alock("b"):
        start_no_thread()
        task = asyncio.create_task(take())
        try: await task
        except redlatch.RedlatchError as error:
            print(type(error).__name__, error, repr(error.__cause__), flush=True)
    for name in "ab":
        print(client.inspect(name).state, flush=True)
asyncio.run(main())
""",
        ",".join(urls),
    )
    assert limited.line() == "none"
    text = "can't start new thread"
    told = f"RedlatchError no thread to wait for the lock in: {text} RuntimeError(\"{text}\")"
    assert limited.line() == told
    assert [limited.line(), limited.line()] == ["free", "free"]
    assert limited.end() == (0, "")


def test_where_no_thread_can_be_started_a_thread_takes_and_waits_as_ever(client, urls, program):
    limited = program(
        NO_THREAD
        + """
start_no_thread()
with client.lock("a") as lock:
    told(lambda: lock.is_held)
    told(lambda: client.try_lock("held", timeout=0.1))
told(lambda: client.lock("later").is_held)
told(lambda: client.once_per("job", 60, list))
print(client.inspect("a").state, flush=True)
""",
        ",".join(urls),
    )
    lock = client.lock("later")
    with client.lock("held"):
        assert [limited.line() for _ in range(3)] == ["none", "True", "None"]
        until(lambda: client.inspect("later").waiters)
        lock.release()
        assert limited.line() == "True"
        assert limited.line().startswith("RedlatchError no thread for the job: Resource temp")
        assert limited.line() == "free"
        assert limited.end() == (0, "")


def test_under_gevent_where_no_thread_can_be_started_a_greenlet_is_told(client, urls, program):
    limited = program(
        "from gevent import monkey; monkey.patch_all()\n"
        + NO_THREAD
        + """
import gevent
def take():
    told(lambda: client.lock("a"))
with client.lock("a"):
    gevent.get_hub().threadpool  # which gevent itself may need
    client.lock("warm").release()
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    if os.getuid() == 0:
        os.setresuid(61234, 61234, 61234)
    waiting = gevent.spawn(take)
    gevent.sleep(0.05)
    print("goes on", flush=True)
gevent.joinall([waiting])
with client.lock("a"):
    print("free", flush=True)
os._exit(0)
""",
        ",".join(urls),
    )
    told = "RedlatchError no thread to wait for the lock in: can't start new thread RuntimeError"
    assert [limited.line() for _ in range(3)] == [told, "goes on", "free"]
    assert limited.end() == (0, "")
