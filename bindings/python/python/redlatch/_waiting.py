"""Where calls wait: so that signals have their handlers, and greenlets and coroutines go on.

A native call waits without the GIL. But in the main thread no handler of a signal would run before
it returns; under gevent, the other greenlets would stand still, the holder of the lock among them;
under asyncio, the loop. So there the call waits in a thread of its own, with a token that ends it.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Callable, Optional, TypeVar

from ._errors import RedlatchError
from ._native import CallingThread, CancelToken, Lock
from ._threads import gevent_has_patched, run_in_idle, run_in_new

T = TypeVar("T")
Call = Callable[[Optional[CancelToken]], T]


NO_LOOP = (
    "alock is for asyncio, no loop of which runs here; under trio, wait in a thread: "
    "with await trio.to_thread.run_sync(client.lock, name) as lock"
)

#: Whether the interpreter ends, as far as this package is concerned.
_is_ending = False


def end() -> None:
    """From now on, a thread of a wait would not begin, or would stop when it came back."""
    global _is_ending
    _is_ending = True


def needs_no_thread() -> bool:
    """Whether a call may wait where it is: no handler of a signal and no greenlet has to run
    meanwhile."""
    if _is_ending:
        return True
    is_main = threading.current_thread() is threading.main_thread()
    return not is_main and not gevent_has_patched()


def calling_thread() -> CallingThread | None:
    """The thread that counts as the one that takes a lock, also if the call waits in another one.
    None under gevent, where greenlets share it."""
    return None if gevent_has_patched() else CallingThread()


def wait(call: Call[T], *, is_brief: bool = False) -> T:
    """Runs a call that may wait for long, unless it is brief. ``KeyboardInterrupt``, and whatever
    else a handler raises, ends it."""
    if needs_no_thread():
        return call(None)
    if gevent_has_patched():
        return _in_gevent(call, is_brief)
    cancel, future = CancelToken(), Future[T]()
    try:
        try:
            # A new one: the library takes it for the leader of an election.
            run_in_new(_fill, future, call, cancel)
        except RuntimeError:  # there are too many: handlers of signals run when the call has ended
            _fill(future, call, cancel)
        return future.result()
    except BaseException:
        _give_up(cancel, future)
        raise


async def wait_async(call: Call[T], *, is_brief: bool = False) -> T:
    """The same in a coroutine: cancelling its task ends the call."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(NO_LOOP) from None
    if _is_ending:  # before Python 3.12, starting a thread would never end
        return call(None)
    cancel, future = CancelToken(), Future[T]()
    try:
        run_in_idle(_fill, future, call, cancel)
    except RuntimeError as error:
        return _without_thread(call, is_brief, error)
    # It gets no exception: asyncio would complain of one that nobody has looked at, such as that of
    # a call that was cancelled, if the loop stops meanwhile.
    ended = loop.create_future()
    future.add_done_callback(lambda done: _wake(loop, ended, done))
    try:
        await ended
        return future.result()
    except BaseException:  # also GeneratorExit: the loop was closed before the task has ended
        _give_up_in_loop(cancel, future)
        raise


def _wake(loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None], done: Future[Any]) -> None:
    """Called by the thread of the call."""
    try:
        loop.call_soon_threadsafe(_end_wait, ended)
    except RuntimeError:  # the loop is closed, so nobody takes what was granted
        _release(done)


def _end_wait(ended: asyncio.Future[None]) -> None:
    if not ended.done():  # its task may be cancelled
        ended.set_result(None)


def _without_thread(call: Call[T], is_brief: bool, error: RuntimeError) -> T:
    """A call where no thread can be started. A release stops this one for a round of the nodes; a
    wait would stop it until a holder releases, which may be a task or a greenlet of this thread."""
    if is_brief or _is_ending:
        return call(None)
    raise RedlatchError(f"no thread to wait for the lock in: {error}") from error


def _fill(future: Future[T], call: Call[T], cancel: CancelToken) -> None:
    try:
        future.set_result(call(cancel))
    except BaseException as error:
        future.set_exception(error)


def _give_up(cancel: CancelToken, future: Future[T]) -> None:
    cancel.cancel()
    # It may have been granted at the same moment. Nobody holds it, and a traceback may keep it.
    future.add_done_callback(_release)


def _give_up_in_loop(cancel: CancelToken, future: Future[T]) -> None:
    """A release takes a round, for which the loop does not stand still."""
    if future.done() and not _is_ending:
        with suppress(RuntimeError):  # no thread can be started
            run_in_idle(_release, future)
            return
    _give_up(cancel, future)


def _release(done: Future[Any]) -> None:
    if done.exception() is None and isinstance(done.result(), Lock):
        with suppress(RedlatchError):
            done.result().release()


def _in_gevent(call: Call[T], is_brief: bool) -> T:
    import gevent  # type: ignore[import-untyped]
    from gevent.threadpool import ThreadPool  # type: ignore[import-untyped]

    hub = gevent.get_hub()
    pool = getattr(hub, "redlatch_pool", None)
    if pool is None:
        # A waiter takes a thread; a pool that is full would keep the holder's own calls waiting.
        pool = hub.redlatch_pool = ThreadPool(10_000, hub=hub)
    cancel, future = CancelToken(), Future[T]()
    try:
        task = pool.spawn(_fill, future, call, cancel)
    except RuntimeError as error:
        cancel.cancel()  # the pool has it, and may yet start a thread
        return _without_thread(call, is_brief, error)
    try:
        task.get()
        return future.result()
    except BaseException:
        _give_up(cancel, future)
        raise
