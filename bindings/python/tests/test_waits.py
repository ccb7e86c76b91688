"""Waits: signals, threads, forks, coroutines, greenlets, and the end of the interpreter."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time

import pytest

import redlatch
from conftest import free_port, until

# What a shell starts in the background ignores SIGINT, and so do its children.
PRELUDE = """
import os, signal, sys, threading, time, redlatch
signal.signal(signal.SIGINT, signal.default_int_handler)
urls = sys.argv[1].split(",")
client = redlatch.Client(urls, restart_guard=False)
"""


def waiters(client, name="a"):
    return len(client.inspect(name).waiters)


def test_ctrl_c_ends_a_wait_at_once_and_leaves_nothing_behind(client, urls, servers, program):
    with client.lock("a"):
        waiting = program(
            PRELUDE
            + """
try:
    client.lock("a")
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdin.readline()
""",
            ",".join(urls),
        )
        until(lambda: waiters(client) == 1)
        waiting.process.send_signal(signal.SIGINT)
        assert waiting.line() == "interrupted"
        until(lambda: waiters(client) == 0)
        assert waiting.end() == (0, "")
    until(lambda: all(server.keys() == b"*0\r\n" for server in servers))


GEVENT = "from gevent import monkey; monkey.patch_all()\n"


@pytest.mark.parametrize(
    "first, run", [("", "asyncio.run(take())"), ("", "trio.run(take)"), (GEVENT, "client.lock('a')")]
)
def test_ctrl_c_ends_the_wait_of_a_loop(client, urls, program, first, run):
    waiting = program(
        first
        + PRELUDE
        + f"""
import asyncio, trio
async def take():
    async with client.alock("a"): pass
try:
    {run}
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdin.readline()
""",
        ",".join(urls),
    )
    with client.lock("a"):
        until(lambda: waiters(client) == 1)
        waiting.process.send_signal(signal.SIGINT)
        assert waiting.line() == "interrupted"
        until(lambda: waiters(client) == 0)
        code, errors = waiting.end()
        assert code == 0
        assert first or not errors, "gevent shows what interrupts its hub"


def test_handlers_of_signals_run_during_a_wait_and_it_goes_on(client, urls, program):
    lock = client.lock("a")
    waiting = program(
        PRELUDE
        + """
signal.signal(signal.SIGUSR1, lambda *_: print("handled", flush=True))
with client.lock("a"):
    print("taken", flush=True)
""",
        ",".join(urls),
    )
    until(lambda: waiters(client) == 1)
    waiting.process.send_signal(signal.SIGUSR1)
    assert waiting.line() == "handled"
    lock.release()
    assert waiting.line() == "taken"
    assert waiting.end() == (0, "")


def test_other_threads_run_while_one_waits(client, urls):
    other = redlatch.Client(urls, restart_guard=False)
    lock = other.lock("a")
    taken = []
    waiting = threading.Thread(target=lambda: taken.append(client.lock("a", timeout=60)))
    waiting.start()
    until(lambda: waiters(client) == 1)
    lock.release()
    waiting.join(60)
    assert taken


def test_cancel_ends_the_waits_of_a_client(client, urls):
    other = redlatch.Client(urls, restart_guard=False)
    raised = []

    def wait():
        try:
            other.lock("a")
        except redlatch.Cancelled as error:
            raised.append(error)

    with client.lock("a"):
        waiting = [threading.Thread(target=wait) for _ in range(3)]
        for thread in waiting:
            thread.start()
        until(lambda: waiters(client) >= 1)
        other.cancel()
        for thread in waiting:
            thread.join(60)
    assert len(raised) == 3


def test_two_hundred_clients_exclude_each_other_and_all_are_served(urls):
    inside, most, served = 0, 0, 0

    def work():
        nonlocal inside, most, served
        mine = redlatch.Client(urls, restart_guard=False)
        for _ in range(2):
            with mine.lock("crowd", ttl=30):
                inside += 1
                most = max(most, inside)
                served += 1
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(110)
    assert (served, most) == (400, 1)


def test_a_forked_child_connects_anew_and_leaves_the_parents_lock_alone(client):
    with client.lock("parent") as lock:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                assert not lock.is_held
                with pytest.raises(redlatch.OtherProcess):
                    lock.ensure_held()
                with pytest.raises(redlatch.OtherProcess):
                    lock.release()
                lock.__exit__(None, None, None)
                assert client.try_lock("parent") is None
                with client.lock("child"):
                    code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        lock.ensure_held()
    assert client.inspect("parent").state == "free"


def test_a_fork_while_another_thread_waits_or_extends(client, urls):
    other = redlatch.Client(urls, restart_guard=False)
    held = other.lock("a", ttl=5)
    waiting = threading.Thread(target=lambda: client.try_lock("a", timeout=30))
    waiting.start()
    until(lambda: waiters(other) == 1)
    for _ in range(5):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with client.lock("b", timeout=30):
                    code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
    held.release()
    waiting.join(60)


def in_child(client, name, results):
    with client.lock(name, timeout=30) as lock:
        lock.ensure_held()
        results.put(os.getpid())


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_passes_a_client_on(client, method):
    context = multiprocessing.get_context(method)
    results = context.Queue()
    children = [context.Process(target=in_child, args=(client, "a", results)) for _ in range(3)]
    with client.lock("a"):
        for child in children:
            child.start()
        until(lambda: waiters(client) >= 1, 60)
    pids = {results.get(timeout=60) for _ in children}
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert pids == {child.pid for child in children}


def test_asyncio_waits_without_stopping_the_loop(client):
    async def main():
        order = []

        async def work(number):
            async with client.alock("a", ttl=10) as lock:
                lock.ensure_held()
                order.append(number)
                await asyncio.sleep(0.01)

        async with client.alock("a"):
            tasks = []
            for number in range(40):
                tasks.append(asyncio.create_task(work(number)))
            await asyncio.sleep(0.1)
            assert not order
        await asyncio.gather(*tasks)
        lock = await client.alock("b")
        with pytest.raises(redlatch.LockTimeout):
            await client.alock("b", timeout=0.05)
        lock.release()
        assert sorted(order) == list(range(40))

    asyncio.run(main())


def test_tasks_that_share_a_lock_leave_it_one_by_one(client):
    async def main():
        readers = client.alock("a", shared=True)
        inside, may_leave = [], asyncio.Event()

        async def read(number):
            async with readers as lock:
                inside.append(lock)
                await may_leave.wait() if number else None
                lock.ensure_held()

        tasks = [asyncio.create_task(read(number)) for number in range(3)]
        await tasks[0]
        while len(inside) < 3:
            await asyncio.sleep(0.01)
        assert sorted(lock.is_held for lock in inside) == [False, True, True]
        may_leave.set()
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert client.inspect("a").state == "free"


def test_calls_that_fill_the_executor_of_a_loop_do_not_keep_a_lock(client):
    async def main():
        loop = asyncio.get_running_loop()
        async with client.alock("a"):
            filling = [loop.run_in_executor(None, client.lock, "a", 30) for _ in range(64)]
            await asyncio.sleep(0.05)
        for future in asyncio.as_completed(filling):
            (await future).release()

    asyncio.run(main())


def test_a_task_that_is_cancelled_leaves_the_queue(client, urls):
    other = redlatch.Client(urls, restart_guard=False)

    async def main():
        with other.lock("a"):
            task = asyncio.create_task(client.alock("a")._taken())
            while waiters(other) == 0:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while waiters(other) > 0:
                await asyncio.sleep(0.01)

        @client.locked("c", wait=False)
        async def job():
            return "ran"

        assert await job() == "ran"
        with other.lock("c"):
            assert await job() is None

    asyncio.run(main())
    assert other.inspect("a").state == "free"


def test_without_a_loop_alock_says_what_it_is_for(client):
    taking = client.alock("a")._taken()
    with pytest.raises(RuntimeError, match="alock is for asyncio and trio"):
        taking.send(None)
    assert client.inspect("a").state == "free"


def test_under_gevent_the_other_greenlets_go_on(urls, program):
    gevent = program(
        "from gevent import monkey; monkey.patch_all()\n"
        + PRELUDE
        + """
import gevent
order = []
def work(number):
    with client.lock("a", ttl=10) as lock:
        order.append(number)
        gevent.sleep(0.01)
        lock.ensure_held()
with client.lock("a"):
    workers = [gevent.spawn(work, number) for number in range(30)]
    gevent.sleep(0.2)
    killed = workers.pop()
    killed.kill()
gevent.joinall(workers, timeout=60)
print(sorted(order) == list(range(29)), flush=True)
with client.lock("a", timeout=30):
    print("free", flush=True)
""",
        ",".join(urls),
    )
    assert gevent.line() == "True"
    assert gevent.line() == "free"
    assert gevent.end() == (0, "")


def test_under_gevent_jobs_and_handlers_of_logs_may_switch_greenlets(urls, program):
    gevent = program(
        "from gevent import monkey; monkey.patch_all()\n"
        + PRELUDE
        + """
import gevent, logging
class Handler(logging.Handler):
    def emit(self, record): gevent.sleep(0.001)
logging.getLogger("redlatch").addHandler(Handler())
logging.getLogger("redlatch").setLevel("DEBUG")
def job(number):
    for turn in range(5):
        gevent.sleep(0.01 * ((number * 7 + turn) % 3))
        with client.lock(f"lock {number % 2}"):
            gevent.sleep(0.001)
    return number
def run(number):
    return client.once_per(f"job {number}", 100, lambda: job(number)).value
running = [gevent.spawn(run, number) for number in range(20)]
gevent.joinall(running, timeout=60)
print([each.value for each in running] == list(range(20)), flush=True)
""",
        ",".join(urls),
    )
    assert gevent.line() == "True"
    assert gevent.end() == (0, "")


@pytest.mark.parametrize(
    "end",
    [
        "sys.exit(0)",
        "os.kill(os.getpid(), signal.SIGINT)",
        "client.lock('other', ttl=5).on_lost(print)",
        "background(lambda: [client.try_lock('z') for _ in range(99999)])",
    ],
)
def test_the_interpreter_ends_at_once_and_quietly_while_daemons_wait(client, urls, program, end):
    ending = program(
        PRELUDE
        + f"""
import logging
logging.basicConfig(level="DEBUG", stream=open(os.devnull, "w"))
background = lambda target: threading.Thread(target=target, daemon=True).start()
for _ in range(3):
    background(lambda: client.lock("a"))
    background(lambda: client.lock("b"))
print("ready", flush=True)
try:
    {end}
except KeyboardInterrupt:
    pass
""",
        ",".join(urls),
    )
    with client.lock("a"), client.lock("b"):
        assert ending.line() == "ready"
        assert ending.end() == (0, "")
        until(lambda: waiters(client) == 0 and waiters(client, "b") == 0)


def test_a_lock_that_is_held_at_the_end_of_the_interpreter_is_released(client, urls, program):
    ending = program(PRELUDE + "held = client.lock('a', ttl=60)\n", ",".join(urls))
    assert ending.end() == (0, "")
    with client.lock("a", timeout=30):
        pass


def test_a_child_forked_amid_a_call_does_not_wait_for_it_at_its_end(client, urls, program):
    forking = program(
        PRELUDE
        + """
redlatch._client.END_LIMIT = 100
threading.Thread(target=lambda: client.lock("a"), daemon=True).start()
while not client.inspect("a").waiters:
    time.sleep(0.005)
child = os.fork()
if child == 0:
    sys.exit(0)
began = time.monotonic()
os.waitpid(child, 0)
print(time.monotonic() - began < 50, flush=True)
os._exit(0)
""",
        ",".join(urls),
    )
    with client.lock("a"):
        assert forking.line() == "True"
        assert forking.end() == (0, "")


def test_the_interpreter_waits_for_a_callback_that_has_begun(urls, program):
    ending = program(
        PRELUDE
        + """
begun = threading.Event()
def lost(error):
    begun.set()
    for _ in range(200):
        time.sleep(0.001)
    print("undone", flush=True)
lock = client.lock("a", ttl=5)
lock.on_lost(lost)
client.force_release(client.inspect("a"))
begun.wait()
""",
        ",".join(urls),
    )
    assert ending.line() == "undone"
    assert ending.end() == (0, "")


def test_a_timeout_is_kept_where_nobody_listens(servers):
    refused = redlatch.Client(f"zk://127.0.0.1:{free_port()}")
    for server in servers:
        server.process.send_signal(signal.SIGSTOP)
    silent = redlatch.Client([server.url for server in servers], connect_timeout=30)
    for client in (refused, silent):
        for take in (client.lock, client.try_lock):
            began = time.monotonic()
            with pytest.raises(redlatch.NoQuorum):
                take("a", timeout=0.3)
            # An attempt without a limit takes 3 s, or 30 s.
            assert 0.3 <= time.monotonic() - began < 2.5


def test_descriptors_that_the_program_has_closed_are_not_used(urls, program):
    closing = program(
        PRELUDE
        + """
out = os.dup(1)
[os.close(descriptor) for descriptor in range(3)]
late = redlatch.Client(urls, restart_guard=False)
with late.lock("a"), client.lock("b"):
    links = [f"/proc/self/fd/{number}" for number in range(3)]
    taken = {os.readlink(link) for link in links if os.path.exists(link)}
os.write(out, f"{taken - {'/dev/null'}}\\n".encode())
""",
        ",".join(urls),
    )
    assert closing.line() == "set()"
    assert closing.end() == (0, "")


# What user's code may do while the interpreter ends.
LATE_CALLS = {
    "try_lock": "client.try_lock('L')",
    "a wait": "client.try_lock('held', timeout=0.2)",
    "lock": "client.lock('L')",
    "a wait of a new client": "Client(urls, restart_guard=False).try_lock('held', timeout=0.2)",
    "a lock of a new client": "Client(urls, restart_guard=False).lock('L').release()",
    "no quorum": "Client('redis://127.0.0.1:1').try_lock('L')",
    "not a name": "client.lock(5)",
    "not a URL": "Client('http://a')",
    "a second release": "released.release()",
    "a release": "kept.release()",
    "a block": "kept.__exit__(None, None, None)",
    "an inspection": "client.inspect('held')",
    "a job": "client.once_per('job', 5, list)",
    "a leader": "client.election('leader').campaign(timeout=0.2)",
    "a register": "client.register('r').get()",
    "the last run of a job": "client.once_per('report', 50, list)",
}


# Its globals are not those of the program, which so are collected although others refer to it.
LATE_RUN = f"""
import os
def run(when, calls={LATE_CALLS!r}, ours=redlatch.RedlatchError, eval=eval, write=os.write,
        dict=dict, Exception=Exception, Error=BaseException, client=client,
        Client=redlatch.Client, urls=urls, released=released, kept=kept):
    # By then the globals of modules are None, also of those of Python.
    ours = Exception if when in ("sys", "builtins") else ours
    names = dict(client=client, Client=Client, urls=urls, released=released, kept=kept[when])
    for name, call in calls.items():
        try:
            eval(call, dict(names))
        except ours:
            pass
        except Error as error:
            write(1, f"{{when}}: {{name}}: {{error!r}}\\n".encode())
    write(1, (when + "\\n").encode())
class Late:
    def __init__(self, when): self.when = when
    def __del__(self, run=run): run(self.when)
"""


def test_a_late_call_works_or_raises_an_error_of_ours(client, urls, program):
    wheres = "after atexit builtins cycle finalize generator global sys thread"
    late = program(
        # What is registered before redlatch is imported is called after its own end.
        "import atexit; late = []; atexit.register(eval('lambda late: late[0](\"after\")'), late)\n"
        + PRELUDE
        + f"""
import builtins, weakref
released = client.lock("released")
released.release()
keeper = redlatch.Client(urls, restart_guard=False)
kept = {{when: keeper.lock(when) for when in sys.argv[2].split()}}
space = dict(redlatch=redlatch, client=client, urls=urls, released=released, kept=kept)
exec({LATE_RUN!r}, space)
run, Late = space["run"], space["Late"]
late.append(run)
atexit.register(run, "atexit")
class Dead: pass
weakref.finalize(Dead, run, "finalize")
def rows():
    try: yield
    finally: run("generator")
suspended = rows()
next(suspended)
builtins.late = Late("builtins")
sys.late = Late("sys")
one = Late("global")
cycle = Late("cycle")
cycle.cycle = cycle
threading.Thread(target=lambda: (time.sleep(0.2), run("thread"))).start()
""",
        ",".join(urls),
        wheres,
    )
    client.once_per("report", 50, list)
    with client.lock("held"):
        output, errors = late.process.communicate(timeout=100)
    assert (late.process.returncode, errors) == (0, "")
    assert sorted(output.splitlines()) == wheres.split()


def test_a_subinterpreter_is_refused_with_an_import_error():
    interpreters = pytest.importorskip("_xxsubinterpreters")
    other = interpreters.create()
    with pytest.raises(interpreters.RunFailedError, match="ImportError"):
        interpreters.run_string(other, "import redlatch")
    interpreters.destroy(other)
