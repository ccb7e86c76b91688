"""Which locks the blocks hold that a thread is in: a call that waits for one of them waits for
ever, and so is an error.

Only blocks count. A lock that is kept otherwise may be released by another thread meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from ._errors import AlreadyHeld
from ._native import Lock
from ._threads import gevent_has_patched

if TYPE_CHECKING:
    from . import _native
    from ._request import Name


class _Block(NamedTuple):
    lock: weakref.ref[Lock]
    #: The task of asyncio that is in it.
    task: weakref.ref[asyncio.Task[Any]] | None


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.blocks: list[_Block] = []


_of_thread = _OfThread()
_of_greenlets: weakref.WeakKeyDictionary[Any, list[_Block]] = weakref.WeakKeyDictionary()


def entered(lock: Lock) -> None:
    """This thread is in a block of it from here on, until the lock is not held any more: which it
    is not after the block, whatever thread leaves it. Whose object is in a block enters no second
    one: the end of that would be the end of the lock."""
    if not lock._begin_block():
        raise AlreadyHeld(
            f"this lock of {', '.join(map(repr, lock.names))} is in a block already: the end of a "
            "second one would release it, as a lock is not re-entrant"
        )
    task = current_task()
    blocks = _blocks()
    blocks[:] = [block for block in blocks if _held(block)]
    blocks.append(_Block(weakref.ref(lock), None if task is None else weakref.ref(task)))


def _enter(self: Lock) -> Lock:
    self.ensure_held()
    entered(self)
    return self


Lock.__enter__ = _enter  # type: ignore[method-assign]


def refuse_own(
    client: _native.Client,
    names: Name | list[Name],
    *,
    shared: bool = False,
    one_of: int | None = None,
    is_async: bool = False,
) -> None:
    """Raises if a wait for these could never end. A wait stops its thread, and with it all tasks;
    one of asyncio stops its own task alone."""
    blocks = _blocks()
    if not blocks:
        return
    task = current_task() if is_async else None
    inside = []
    for block in blocks:
        goes_on = is_async and block.task is not None and block.task() is not task
        lock = _held(block)
        if lock is not None and lock._client == client.id and not goes_on:
            inside.append(lock)
    for name in names if isinstance(names, list) else [names]:
        holding = [lock for lock in inside if _bytes(name) in map(_bytes, lock.names)]
        if not holding or shared and all(lock._is_shared for lock in holding):
            continue
        are_permits = all(lock.slot is not None for lock in holding)
        if one_of is not None and are_permits and len(holding) < one_of:
            continue
        raise AlreadyHeld(
            f"{name!r} is held by a block that this {'task' if is_async else 'thread'} is in: "
            "waiting for it would not end, as a lock is not re-entrant"
        )


def _held(block: _Block) -> Lock | None:
    lock = block.lock()
    is_inside = lock is not None and not lock._has_left_block and lock.is_held
    return lock if is_inside else None


def _blocks() -> list[_Block]:
    """The blocks of this thread, or of this greenlet."""
    if gevent_has_patched():
        import gevent  # type: ignore[import-untyped]

        return _of_greenlets.setdefault(gevent.getcurrent(), [])
    return _of_thread.blocks


def current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None


def _bytes(name: Name) -> Name:
    return name.encode(errors="replace") if isinstance(name, str) else name
