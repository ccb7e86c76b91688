"""Where code of the user's runs that no call of the user's waits for: handlers of ``logging``, and
callbacks of ``on_lost``. In threads of Python's, which the end of the interpreter does not wait for
any longer than for daemons."""

from __future__ import annotations

import _thread
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Callable

from ._callables import is_coroutine_function, is_generator_function, undone
from ._log import logger

if TYPE_CHECKING:
    from ._errors import LockLost
    from ._native import Callback, Records


def check_lost(callback: Any) -> None:
    """Called by the native module, before it keeps a callback of ``on_lost``."""
    if not callable(callback):
        kind = "None" if callback is None else type(callback).__name__
        raise TypeError(f"a callback is a function of one argument, the LockLost, not {kind}")
    if is_coroutine_function(callback) or is_generator_function(callback):
        raise TypeError(f"a callback is a plain function, as nobody awaits it: {callback!r} is not")


def start_log(records: Records) -> None:
    """Called by the native module, once a client has an event."""
    # Where no thread can be started, as Python 3.12 can not while it ends, nothing is logged.
    with suppress(RuntimeError):
        _start(_log, records)


def start_lost(callback: Callable[[LockLost], Any], error: LockLost, running: Callback) -> None:
    """Called by the native module, in a thread that waits for nothing."""
    try:
        _start(_lost, callback, error, running)
    except RuntimeError:
        _lost(callback, error, running)


def _start(target: Callable[..., None], *arguments: Any) -> None:
    # gevent would make a greenlet of it, of a hub that nobody runs.
    monkey = sys.modules.get("gevent.monkey")
    original = monkey.get_original("_thread", "start_new_thread") if monkey else None
    (original or _thread.start_new_thread)(target, arguments)


def _log(records: Records) -> None:
    while (record := records.next()) is not None:
        level, event, text = record
        try:
            logger.log(level, "%s", text, extra={"redlatch_event": event})
        except BaseException:  # of a handler or a filter: the next record may do better
            sys.excepthook(*sys.exc_info())


def _lost(callback: Callable[[LockLost], Any], error: LockLost, running: Callback) -> None:
    running.begin()
    if kind := undone(callback(error)):
        raise TypeError(f"the callback returned {kind}, whose work is not done")
