"""The end of the interpreter amid whatever threads and objects do: no abort, no hang, no error."""

from __future__ import annotations

import pytest

import redlatch
from conftest import until

# Destructors of objects that last give other threads time while all is torn down: Python ends a
# thread that wants the interpreter then.
PRELUDE = """
import atexit
late_calls = []
atexit.register(eval("lambda calls: [call() for call in calls]"), late_calls)
import asyncio, builtins, logging, os, sys, threading, time, warnings, weakref, redlatch
from redlatch import Client, RedlatchError
urls = sys.argv[1].split(",")
client = Client(urls, restart_guard=False)
class Slow:
    def __del__(self, sleep=time.sleep):
        for _ in range(300): sleep(0.001)
builtins.slow = Slow()
def for_long(*_, **__):
    for _ in range(5000): time.sleep(0.001)
def for_a_while(*_, **__):
    for _ in range(300): time.sleep(0.001)
def daemons(run):
    def run_for_ever():
        number = threading.get_ident()
        while True:
            try: run(number)
            except RedlatchError: pass
    for _ in range(4): threading.Thread(target=run_for_ever, daemon=True).start()
    time.sleep(0.1)
"""

ENDS = {
    "a handler of logs takes longer than the end waits": """
logger = logging.getLogger("redlatch")
logger.addHandler(type("Slow", (logging.Handler,), dict(handle=for_long))())
logger.setLevel("DEBUG")
client.lock("a").release()
""",
    "a callback takes longer than the end waits": """
begun = threading.Event()
lock = client.lock("a", ttl=1)
lock.on_lost(lambda lost: begun.set() or for_long())
client.force_release(client.inspect("a"))
begun.wait()
""",
    "daemons show warnings": """
warnings.simplefilter("always")
warnings.showwarning = for_a_while
daemons(lambda number: client.lock(f"lock {number}"))
""",
    "daemons pass numbers that are objects": """
class Number:
    def __float__(self): return for_a_while() or 5.0
daemons(lambda number: client.lock(f"lock {number}", ttl=Number()))
""",
    "daemons pass what is shown in an error": """
class Shown:
    def __repr__(self): return for_a_while() or "shown"
daemons(lambda number: client.lock("a", ttl=Shown()))
""",
    "daemons raise and look at what is held": """
sys.setswitchinterval(1e-6)
nobody = Client("redis://127.0.0.1:1", restart_guard=False)
daemons(lambda number: (client.inspect("held"), client.nodes(), nobody.try_lock("a")))
""",
    "daemons make clients": """
sys.setswitchinterval(1e-6)
kept = [Client(urls) for _ in range(200)]
daemons(lambda number: Client(urls))
""",
    "daemons wait by new clients": """
daemons(lambda number: Client(urls, restart_guard=False).lock("held"))
""",
    "a loop of asyncio in a daemon": """
async def take(name):
    while True:
        async with client.alock(name): pass
async def main(): await asyncio.gather(*map(take, ["a", "b", "held", "held"]))
threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
time.sleep(0.2)
""",
    "a loop of trio in a daemon": """
import trio
async def take(name):
    while True:
        async with client.alock(name): pass
async def main():
    async with trio.open_nursery() as nursery:
        for name in ("a", "b", "held", "held"): nursery.start_soon(take, name)
threading.Thread(target=lambda: trio.run(main), daemon=True).start()
time.sleep(0.2)
""",
    "a loop of asyncio that was never closed": """
loop = asyncio.new_event_loop()
waiting = [loop.create_task(client.alock("held")._taken()) for _ in range(10)]
loop.run_until_complete(asyncio.sleep(0.1))
""",
    "a lock of asyncio after the end": """
def late(run=asyncio.run, alock=client.alock, make=Client, urls=urls):
    for lock in (alock("held"), make(urls).alock("held"), make(urls).alock("free")):
        try: run(lock._taken())
        except RedlatchError: pass
late_calls.append(late)
""",
    "a new client waits in a destructor": """
class Late:
    def __del__(self, make=Client, urls=urls, Error=RedlatchError):
        try: make(urls, restart_guard=False).lock("held")
        except Error: pass
        try: make(urls, restart_guard=False).election("held").campaign()
        except Error: pass
builtins.late = Late()
""",
    "a callback of a weak reference waits": """
class Target: pass
target = Target()
def late(_, take=client.lock, make=Client, urls=urls, Error=RedlatchError):
    for lock in (take, make(urls, restart_guard=False).lock):
        try: lock("held")
        except Error: pass
builtins.reference = weakref.ref(target, late)
builtins.target, target = target, None
""",
    "modules are gone": """
class Late:
    def __del__(self, client=client, Error=RedlatchError):
        for call in (lambda: client.lock("held"), lambda: client.lock(5), lambda: client.nodes()):
            try: call()
            except Error: pass
builtins.late = Late()
for name in list(sys.modules):
    if name.split(".")[0] in ("redlatch", "asyncio", "threading", "datetime", "logging"):
        del sys.modules[name]
""",
    "a forked child ends while daemons wait": """
for _ in range(3): threading.Thread(target=client.lock, args=("held",), daemon=True).start()
time.sleep(0.1)
child = os.fork()
if child == 0:
    threading.Thread(target=client.lock, args=("held",), daemon=True).start()
    time.sleep(0.1)
    sys.exit(0)
sys.exit(os.waitpid(child, 0)[1])
""",
    "gevent": """
import gevent.monkey
gevent.monkey.patch_all()
waiting = [gevent.spawn(client.lock, "held") for _ in range(10)]
gevent.sleep(0.1)
class Late:
    def __del__(self, client=client, new=Client(urls), Error=RedlatchError):
        for each in (client, new):
            try: each.lock("held")
            except Error: pass
builtins.late = Late()
""",
}


@pytest.mark.parametrize("text", ENDS.values(), ids=ENDS)
def test_the_interpreter_ends_whatever_goes_on(urls, program, text):
    holder = redlatch.Client(urls, restart_guard=False)
    with holder.lock("held"):
        ending = program(PRELUDE + text, ",".join(urls))
        assert ending.end() == (0, "")
        until(lambda: not holder.inspect("held").waiters)


def test_a_lock_is_not_taken_once_the_interpreter_ends(urls, program):
    ending = program(
        PRELUDE
        + """
def late(make=Client, urls=urls):
    for take in (client.lock, make(urls, restart_guard=False).lock):
        try: take("a", timeout=30)
        except redlatch.Cancelled as error: print(repr(error), flush=True)
late_calls.append(late)
""",
        ",".join(urls),
    )
    assert [ending.line(), ending.line()] == ["Cancelled('the call was cancelled')"] * 2
    assert ending.end() == (0, "")
