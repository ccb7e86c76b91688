"""Threads for calls that wait. Those of asyncio serve one call after another, as starting a thread
takes longer than taking a lock that is free.

There may be any number of them at a time: who waits for a lock has one meanwhile, and must not keep
its holder from getting one for the release.
"""

from __future__ import annotations

import os
import sys
import threading
from queue import Empty, SimpleQueue
from typing import Any, Callable

#: How many threads wait for a call, and for how long, in seconds.
IDLE_MAX = 64
IDLE_LIMIT = 5.0

Calls = SimpleQueue[tuple[Any, ...]]

#: Where each of them waits for it; the last one is the next to be given one.
_idle: list[Calls] = []
# A forked child has none of these threads.
os.register_at_fork(after_in_child=_idle.clear)


def run_in_new(function: Callable[..., None], *arguments: Any) -> None:
    """Calls it in a thread that serves no other call. ``RuntimeError``: none can be started."""
    _start(function, arguments)


def run_in_idle(function: Callable[..., None], *arguments: Any) -> None:
    """Calls it in one that serves others. ``RuntimeError``: none is idle, none can be started."""
    try:
        _idle.pop().put((function, *arguments))
        return
    except IndexError:
        pass
    calls: Calls = SimpleQueue()
    calls.put((function, *arguments))
    _start(_serve, (calls,))


def _start(target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    # It does not keep the interpreter from ending: at its end, all waits are cancelled.
    threading.Thread(target=target, args=arguments, name="redlatch-wait", daemon=True).start()


def gevent_has_patched() -> bool:
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and monkey.is_module_patched("threading")


def _serve(calls: Calls) -> None:
    call: tuple[Any, ...] | None = calls.get()
    while call is not None:
        call[0](*call[1:])
        # Nothing is kept of it meanwhile: a lock that nothing refers to is released.
        del call
        call = _next(calls)


def _next(calls: Calls) -> tuple[Any, ...] | None:
    # A thread of gevent's is a greenlet, in which this queue would stop all others.
    if len(_idle) >= IDLE_MAX or gevent_has_patched():
        return None
    _idle.append(calls)
    try:
        return calls.get(timeout=IDLE_LIMIT)
    except Empty:
        pass
    try:
        _idle.remove(calls)
    except ValueError:
        return calls.get()  # it was chosen meanwhile
    return None
