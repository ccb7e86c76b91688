"""Locks that are awaited."""

from __future__ import annotations

import functools
import weakref
from contextlib import suppress
from logging import DEBUG
from typing import Any, Generator, NamedTuple

from . import _native
from ._blocks import Task, current_task, entered, has_ended, refuse_own, task_ref
from ._log import logger
from ._native import Lock
from ._request import Request, Seconds, timed_out
from ._waiting import wait_async


class _Block(NamedTuple):
    lock: Lock
    task: weakref.ref[Task] | None

    def is_of(self, task: Task | None) -> bool:
        return self.task is not None and self.task() is task

    def has_ended(self) -> bool:
        task = None if self.task is None else self.task()
        return task is None or has_ended(task)


class AsyncLock:
    """A lock that is awaited: with ``async with``, or with ``await``. Each takes it anew.

    Another task may leave a block than has entered it. Of several tasks, each leaves its own.

    See :meth:`redlatch.Client.alock`.
    """

    def __init__(self, client: _native.Client, request: Request, timeout: Seconds | None) -> None:
        self._client, self._request, self._timeout = client, request, timeout
        self._limit = _native.limit(timeout)
        # Several tasks may be within the block, of a lock that is shared.
        self._blocks: list[_Block] = []

    def __await__(self) -> Generator[Any, Any, Lock]:
        return self._taken().__await__()

    async def _taken(self) -> Lock:
        # One for all of the call: a redirect may end meanwhile, and the program's own nodes must
        # not be asked then.
        client = self._client.asked()
        asked = self._request
        if self._limit != 0:
            refuse_own(client, asked.names, shared=asked.shared, one_of=asked.one_of, is_async=True)
        options = dict(
            asked._asdict(), wait=self._timeout, log_calls=logger.isEnabledFor(DEBUG)
        )
        lock = await wait_async(
            functools.partial(client.start, **options),
            functools.partial(client.acquire, goes_on=False, **options),
        )
        if lock is None:
            raise timed_out(client, asked, self._timeout, None)
        return lock

    async def __aenter__(self) -> Lock:
        lock = await self._taken()
        entered(lock)
        self._blocks.append(_Block(lock, task_ref()))
        return lock

    async def __aexit__(self, *error: Any) -> None:
        lock = self._left()
        if lock is None:
            # A block that raises passes its own exception on.
            if error[0] is None:
                raise RuntimeError("not in a block of this lock: it was not entered, or was left")
            return
        # Who cancels this, and then waits for the lock, waits for its release alone.
        lock._leave_block()
        if current_task() is None:  # the coroutine is closed without a loop, so nothing can wait
            lock.__exit__(*error)
        else:
            # Not in the loop's executor: calls that wait for this lock may fill it.
            leave = functools.partial(lock.__exit__, *error)
            await wait_async(functools.partial(lock._start_exit, error[0]), leave)

    def _left(self) -> Lock | None:
        """The lock of the block that this task leaves, which is the last that it has entered. A
        generator, a fixture or an exit stack may be left by a task that has entered none: that is
        the first block whose task has ended, or else the first of all."""
        own = [block for block in self._blocks if block.is_of(current_task())]
        ended = [block for block in self._blocks if block.has_ended()]
        for block in own[-1:] + ended + self._blocks:
            with suppress(ValueError):  # a task of another loop, in its own thread, was first
                self._blocks.remove(block)
                return block.lock
        return None
