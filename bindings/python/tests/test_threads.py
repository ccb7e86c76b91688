"""Waits take no thread each, however many there are; and where no thread can be started."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import redlatch
from conftest import until
from test_waits import PRELUDE, waiters


def threads(process="self"):
    return len(os.listdir(f"/proc/{process}/task"))


@pytest.fixture
def other(urls):
    return redlatch.Client(urls, restart_guard=False)


@pytest.mark.parametrize("locks", [1, 50])
def test_tasks_that_wait_take_no_threads_and_are_served_in_order(client, other, locks):
    names = [f"a {number}" for number in range(locks)]
    served: list[int] = []

    async def work(number):
        async with client.alock(names[number % locks], ttl=30):
            served.append(number)

    async def main():
        held = [other.lock(name, ttl=60) for name in names]
        async with client.alock("warm"):
            pass
        before = threads()
        tasks = [asyncio.create_task(work(number)) for number in range(1000)]
        while any(waiters(other, name) == 0 for name in names):
            await asyncio.sleep(0.01)
        during = threads()
        for lock in held:
            lock.release()
        await asyncio.gather(*tasks)
        assert during <= before + 1  # there may be something to log

    asyncio.run(main())
    assert len(served) == 1000
    for lock in range(locks):
        of_lock = [number for number in served if number % locks == lock]
        assert of_lock == sorted(of_lock)


@pytest.mark.parametrize("locks", [1, 50])
def test_tasks_that_are_cancelled_leave_nothing(client, other, servers, locks):
    names = [f"a {number}" for number in range(locks)]

    async def main():
        held = [other.lock(name, ttl=60) for name in names]
        tasks = [
            asyncio.create_task(client.alock(names[number % locks])._taken())
            for number in range(1000)
        ]
        while any(waiters(other, name) == 0 for name in names):
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended)
        while any(waiters(other, name) for name in names):
            await asyncio.sleep(0.01)
        for lock in held:
            lock.release()

    asyncio.run(main())
    until(lambda: all(server.keys() == b"*0\r\n" for server in servers))


def test_tasks_whose_release_needs_the_executor_are_served_by_one_worker(client):
    served = []

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))

        async def work(number):
            lock = await client.alock("a", ttl=30)
            served.append(number)
            await loop.run_in_executor(None, lock.release)

        await asyncio.gather(*map(work, range(600)))

    asyncio.run(main())
    assert served == list(range(600))


def test_greenlets_that_wait_take_no_threads(client, urls, program):
    gevent = program(
        "from gevent import monkey; monkey.patch_all()\n"
        + PRELUDE
        + """
import gevent
served = []
def work(number):
    with client.lock("a", ttl=30):
        served.append(number)
client.lock("b", timeout=30)
greenlets = [gevent.spawn(work, number) for number in range(300)]
gevent.sleep(0.2)
print(len(os.listdir("/proc/self/task")) < 12, flush=True)
gevent.joinall(greenlets, timeout=60)
print(served == list(range(300)), flush=True)
""",
        ",".join(urls),
    )
    with client.lock("a"):
        assert gevent.line() == "True"
    assert gevent.line() == "True"
    assert gevent.end() == (0, "")


def test_the_main_thread_waits_without_another_thread_of_pythons(client, urls, program):
    waiting = program(
        PRELUDE
        + """
def handle(*_): print(threading.active_count(), flush=True)
signal.signal(signal.SIGUSR1, handle)
client.lock("a").release()
""",
        ",".join(urls),
    )
    with client.lock("a"):
        until(lambda: waiters(client) == 1)
        waiting.process.send_signal(signal.SIGUSR1)
        assert waiting.line() == "1"
    assert waiting.end() == (0, "")


def begun(client, name, wait=None):
    core = client._core
    return core.start(names=name, ttl=30, wait=wait, log_calls=False, shared=False)


def ended(call):
    told = threading.Event()
    if call.wake_by(told.set):
        assert told.wait(60)
    return call


def test_a_call_that_is_given_up_in_the_moment_of_the_grant_gives_the_lock_back(client, other):
    for give_up in (lambda call: call.cancel(), lambda call: None):
        call = begun(client, "a")
        until(lambda: other.inspect("a").state == "held")
        give_up(call)
        del call
        until(lambda: other.inspect("a").state == "free")
    held = other.lock("a")
    for give_up in (lambda call: call.cancel(), lambda call: None):
        call = begun(client, "a")
        until(lambda: waiters(other) == 1)
        give_up(call)
        del call
        until(lambda: waiters(other) == 0)
    held.release()


def test_a_call_whose_end_nobody_can_be_told_gives_the_lock_back(client, other):
    def closed():
        raise RuntimeError("the loop is closed")

    held = other.lock("a")
    call = begun(client, "a")
    assert call.wake_by(closed)
    until(lambda: waiters(other) == 1)
    held.release()
    until(lambda: other.inspect("a").state == "free" and waiters(other) == 0)
    with pytest.raises(redlatch.Cancelled):
        call.result()


def test_whoever_comes_after_the_end_of_a_call_need_not_wait(client):
    call = ended(begun(client, "a"))
    assert not call.wake_by(print)
    lock = call.result()
    assert lock.is_held
    lock.release()


def test_a_forked_child_waits_by_calls_of_its_own_and_leaves_those_of_its_parent(client, other):
    held = other.lock("a")
    call = begun(client, "a")
    until(lambda: waiters(other) == 1)

    async def takes():
        async with client.alock("b", timeout=30):
            pass

    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert not call.wake_by(print)
            call.cancel()
            with pytest.raises(redlatch.OtherProcess):
                call.result()
            del call
            asyncio.run(takes())
            client.lock("b", timeout=30).release()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert waiters(other) == 1
    held.release()
    ended(call).result().release()


# From `start_no_thread()` on, the system refuses each thread, as it does in a container whose limit
# of processes is reached; to root, it refuses none.
NO_THREAD = (
    PRELUDE
    + """
import asyncio, resource
fresh = redlatch.Client(urls, restart_guard=False)
def refuse_threads():
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    if os.getuid() == 0:
        os.setresuid(61234, 61234, 61234)
def start_no_thread():
    client.lock("warm").release()
    refuse_threads()
    try: threading.Thread(target=print).start()
    except RuntimeError: print("none", flush=True)
def told(call):
    try: print(call(), flush=True)
    except redlatch.RedlatchError as error:
        print(type(error).__name__, error, flush=True)
"""
)


def test_where_no_thread_can_be_started_a_loop_that_has_waited_goes_on(client, urls, program):
    limited = program(
        NO_THREAD
        + """
async def take():
    async with client.alock("a"): print("taken", flush=True)
async def main():
    async with client.alock("a"), client.alock("b"):
        start_no_thread()
        task = asyncio.create_task(take())
        try: await fresh.alock("c", keep_alive=False)
        except redlatch.RedlatchError as error:
            print(type(error).__name__, error, flush=True)
    await task
    for name in "abc":
        print(client.inspect(name).state, flush=True)
asyncio.run(main())
""",
        ",".join(urls),
    )
    assert limited.line() == "none"
    assert limited.line().startswith("RedlatchError no thread for ")
    assert [limited.line() for _ in range(4)] == ["taken", "free", "free", "free"]
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
told(lambda: client.election("leader").campaign().is_held)
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
        assert [limited.line() for _ in range(2)] == ["True", "True"]
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
    told(lambda: fresh.lock("a", keep_alive=False))
with client.lock("a"):
    gevent.get_hub().threadpool  # which gevent itself may need
    client.lock("warm").release()
    refuse_threads()
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
    assert limited.line().startswith("RedlatchError no thread for ")
    assert [limited.line() for _ in range(2)] == ["goes on", "free"]
    assert limited.end() == (0, "")
