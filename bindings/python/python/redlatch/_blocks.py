"""Which locks the blocks hold that a thread is in: a call that waits for one of them waits for
ever, and so is an error.

Only blocks count, and of those without a task of asyncio or trio only the ``with`` statements that the
thread is executing: nobody else leaves these. Any other block, such as that of an ``ExitStack``,
may be left by another thread meanwhile, as a dependency of FastAPI is, which a thread of a pool
enters and another one leaves. So may a lock without a block.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import sys
import threading
import weakref
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from ._errors import AlreadyHeld
from ._native import Lock
from ._waiting import gevent_has_patched, trio_task

if TYPE_CHECKING:
    from . import _native
    from ._request import Name


#: Of asyncio, or of trio.
Task = Any


class _Statement(NamedTuple):
    """What a frame executes. The frame is not kept alive: with it, so were its variables. Another
    one may get its number, but only after the statement has ended, and the lock with it."""

    frame: int
    code: CodeType
    instruction: int


class _Block(NamedTuple):
    lock: weakref.ref[Lock]
    #: The task that is in it.
    task: weakref.ref[Task] | None
    #: What has entered it. If a generator has that is itself a context manager, then also what has
    #: entered that one, and so on.
    statements: list[_Statement]


class _Blocks:
    """Those of a thread, or of a greenlet, by the locks that they hold: which others there are does
    not matter to a call."""

    #: How many are added at least before those of locks that nothing refers to are removed.
    SWEEP_MIN = 64

    def __init__(self) -> None:
        self._by_lock: dict[tuple[int, Name], list[_Block]] = {}
        self._before_sweep = self.SWEEP_MIN

    def add(self, lock: Lock, block: _Block) -> None:
        for name in lock.names:
            self._by_lock.setdefault((lock._client, _bytes(name)), []).append(block)
            self._before_sweep -= 1
        # Whoever ends a block, in whatever thread, need not know of this.
        if self._before_sweep <= 0:
            self._sweep()

    def _sweep(self) -> None:
        kept = {}
        for key, blocks in list(self._by_lock.items()):  # a handler of a signal may add one
            if living := [block for block in blocks if block.lock() is not None]:
                kept[key] = living
        self._by_lock = kept
        self._before_sweep = max(self.SWEEP_MIN, sum(map(len, kept.values())))

    def inside(self, client: int, name: Name, task: Task | None) -> list[Lock]:
        """The locks of this name that are held by blocks which must end before this thread goes on,
        or, if it is of a task, before this one goes on."""
        found = []
        blocks = self._by_lock.get((client, _bytes(name)), [])
        for block in blocks.copy():
            if task is not None and block.task is not None and block.task() is not task:
                continue
            lock = _held(block)
            if lock is None:
                with contextlib.suppress(ValueError):  # a handler of a signal was first
                    blocks.remove(block)
            elif block.task is not None or _is_executing(block.statements):
                found.append(lock)
        return found


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.blocks = _Blocks()


_of_thread = _OfThread()
_of_greenlets: weakref.WeakKeyDictionary[Any, _Blocks] = weakref.WeakKeyDictionary()


def entered(lock: Lock, by: FrameType | None = None) -> None:
    """This thread is in a block of it from here on, until the lock is not held any more: which it
    is not after the block, whatever thread leaves it. Whose object is in a block enters no second
    one: the end of that would be the end of the lock."""
    if not lock._begin_block():
        raise AlreadyHeld(
            f"this lock of {', '.join(map(repr, lock.names))} is in a block already: the end of a "
            "second one would release it, as a lock is not re-entrant"
        )
    _blocks().add(lock, _Block(weakref.ref(lock), task_ref(), _statements(by)))


def _enter(self: Lock) -> Lock:
    self.ensure_held()
    entered(self, sys._getframe(1))
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
    one of a task stops that alone."""
    blocks = _blocks()
    asked = client.id
    task = current_task() if is_async else None
    for name in names if isinstance(names, list) else [names]:
        if not isinstance(name, (str, bytes)):
            continue  # the call says what a name is
        holding = blocks.inside(asked, name, task)
        if not holding or shared and all(lock._is_shared for lock in holding):
            continue
        if one_of is not None and all(lock.slot is not None for lock in holding):
            in_use = [lock for lock in holding if lock.slot is not None and lock.slot < one_of]
            if len(in_use) < one_of:
                continue
        raise AlreadyHeld(
            f"{name!r} is held by a block that this {'task' if is_async else 'thread'} is in: "
            "waiting for it would not end, as a lock is not re-entrant"
        )


_ENTER_GENERATOR = contextlib._GeneratorContextManager.__enter__.__code__


def _statements(frame: FrameType | None) -> list[_Statement]:
    found = []
    while frame is not None:
        caller = frame.f_back
        found.append(_Statement(id(frame), frame.f_code, frame.f_lasti))
        is_generator = frame.f_code.co_flags & inspect.CO_GENERATOR
        if not is_generator or caller is None or caller.f_code is not _ENTER_GENERATOR:
            break
        frame = caller.f_back
    return found


def _is_executing(statements: list[_Statement]) -> bool:
    """Whether this thread has to leave a ``with`` statement before the block can end."""
    if not statements or not all(map(_is_with, statements)):
        return False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and id(frame) != statements[-1].frame:
        frame = frame.f_back
    return frame is not None


def _is_with(statement: _Statement) -> bool:
    """Whether this calls ``__enter__`` for a ``with`` statement, in any version of Python."""
    from opcode import opname

    code, at = statement.code.co_code, max(statement.instruction, 0)
    while opname[code[at]] == "EXTENDED_ARG":  # before 3.10, where a long block begins
        at += 2
    if opname[code[at]] == "CALL":
        return opname[code[at - 2]] == "LOAD_SPECIAL"  # from 3.14 on
    return opname[code[at]] in ("BEFORE_WITH", "SETUP_WITH")


def _held(block: _Block) -> Lock | None:
    lock = block.lock()
    is_inside = lock is not None and not lock._has_left_block and lock.is_held
    return lock if is_inside else None


def _blocks() -> _Blocks:
    """The blocks of this thread, or of this greenlet."""
    if gevent_has_patched():
        import gevent  # type: ignore[import-untyped]

        return _of_greenlets.setdefault(gevent.getcurrent(), _Blocks())
    return _of_thread.blocks


def current_task() -> Task | None:
    if (task := trio_task()) is not None:
        return task
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None


def task_ref() -> weakref.ref[Task] | None:
    task = current_task()
    return None if task is None else weakref.ref(task)


def has_ended(task: Task) -> bool:
    if isinstance(task, asyncio.Future):
        return task.done()
    return getattr(task.coro, "cr_frame", task) is None


def _bytes(name: Name) -> Name:
    return name.encode(errors="replace") if isinstance(name, str) else name
