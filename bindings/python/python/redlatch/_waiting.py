"""Where calls wait: so that signals have their handlers, and greenlets and coroutines go on.

A native call waits without the GIL. But in the main thread no handler of a signal would run before
it returns; under gevent, the other greenlets would stand still, the holder of the lock among them;
under asyncio and trio, the loop. So there a call is started: it goes on in the library, which says
when it has ended.
"""

from __future__ import annotations

import _thread
import asyncio
import sys
import threading
from functools import partial
from typing import Any, Awaitable, Callable, TypeVar

from ._native import CallingThread, StartedCall

T = TypeVar("T")

NO_LOOP = "alock is for asyncio and trio, no loop of which runs here"

#: Whether the interpreter ends, as far as this package is concerned.
_is_ending = False


def end() -> None:
    """From now on, nobody would be told that a call has ended."""
    global _is_ending
    _is_ending = True


def gevent_has_patched() -> bool:
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and monkey.is_module_patched("threading")


def may_block() -> bool:
    """Whether a call may wait where it is: no handler of a signal and no greenlet has to run
    meanwhile."""
    if _is_ending:
        return True
    is_main = threading.current_thread() is threading.main_thread()
    return not is_main and not gevent_has_patched()


def calling_thread() -> CallingThread | None:
    """The thread that counts as the one that takes a lock. None under gevent, where greenlets share
    it."""
    return None if gevent_has_patched() else CallingThread()


def wait(start: Callable[[], StartedCall], call: Callable[[], T]) -> T:
    """Waits for a call, which ``call`` runs in this thread. ``KeyboardInterrupt``, and whatever
    else a handler raises, ends it."""
    if may_block():
        return call()
    started = start()
    is_greenlet = gevent_has_patched()
    if started.is_refused and not is_greenlet:  # handlers of signals run when the call has ended
        return call()
    try:
        if is_greenlet:
            _wait_in_greenlet(started)
        else:
            _wait_in_thread(started)
        result: T = started.result()
        return result
    except BaseException:
        started.cancel()
        raise


async def wait_async(start: Callable[[], StartedCall], call: Callable[[], T]) -> T:
    """The same in a coroutine: cancelling its task ends the call."""
    wait_in_loop = _of_loop()
    if _is_ending:
        return call()
    started = start()
    try:
        await wait_in_loop(started)
        result: T = started.result()
        return result
    except BaseException:  # also GeneratorExit: the loop was closed before the task has ended
        started.cancel()
        raise


def _wait_in_thread(started: StartedCall) -> None:
    ended = _thread.allocate_lock()
    ended.acquire()
    if started.wake_by(ended.release):
        ended.acquire()  # handlers of signals run meanwhile


def _wait_in_greenlet(started: StartedCall) -> None:
    import gevent  # type: ignore[import-untyped]

    hub = gevent.get_hub()
    ended = gevent.hub.Waiter(hub)
    watcher = hub.loop.async_()
    # Before anything is sent, which would be lost.
    watcher.start(ended.switch, None)
    try:
        if started.wake_by(watcher.send):
            ended.get()
    finally:
        watcher.stop()
        watcher.close()


def trio_task() -> Any:
    """The task of trio that runs in this thread, if one does."""
    trio = sys.modules.get("trio")
    if trio is None:
        return None
    try:
        return trio.lowlevel.current_task()
    except RuntimeError:
        return None


def _of_loop() -> Callable[[StartedCall], Awaitable[None]]:
    # A loop of asyncio may have trio as its guest.
    if trio_task() is not None:
        return _wait_in_trio
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(NO_LOOP) from None
    return partial(_wait_in_asyncio, loop)


async def _wait_in_asyncio(loop: asyncio.AbstractEventLoop, started: StartedCall) -> None:
    ended = loop.create_future()
    if started.wake_by(partial(loop.call_soon_threadsafe, _set_ended, ended)):
        await ended


def _set_ended(ended: asyncio.Future[None]) -> None:
    if not ended.done():  # its task may be cancelled
        ended.set_result(None)


async def _wait_in_trio(started: StartedCall) -> None:
    trio = sys.modules["trio"]
    ended = trio.Event()
    token = trio.lowlevel.current_trio_token()
    if started.wake_by(partial(token.run_sync_soon, ended.set)):
        await ended.wait()
