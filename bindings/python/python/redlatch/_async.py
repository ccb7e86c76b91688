"""Locks of asyncio."""

from __future__ import annotations

import asyncio
import functools
from logging import DEBUG
from typing import Any, Generator

from . import _native
from ._blocks import entered, refuse_own
from ._log import logger
from ._native import Lock
from ._request import Request, Seconds, timed_out
from ._waiting import wait_async


class AsyncLock:
    """A lock that is awaited: with ``async with``, or with ``await``. Each takes it anew.

    See :meth:`redlatch.Client.alock`.
    """

    def __init__(self, client: _native.Client, request: Request, timeout: Seconds | None) -> None:
        self._acquire = functools.partial(
            client.acquire,
            wait=timeout,
            log_calls=logger.isEnabledFor(DEBUG),
            goes_on=False,
            **request._asdict(),
        )
        self._client, self._request, self._timeout = client, request, timeout
        self._limit = _native.limit(timeout)
        # Several tasks may be within the block, of a lock that is shared.
        self._held: dict[asyncio.Task[Any] | None, list[Lock]] = {}

    def __await__(self) -> Generator[Any, Any, Lock]:
        return self._taken().__await__()

    async def _taken(self) -> Lock:
        if self._limit != 0:
            asked = self._request
            refuse_own(
                self._client, asked.names, shared=asked.shared, one_of=asked.one_of, is_async=True
            )
        lock = await wait_async(lambda cancel: self._acquire(cancelled_by=cancel))
        if lock is None:
            raise timed_out(self._client, self._request, self._timeout, None)
        return lock

    async def __aenter__(self) -> Lock:
        lock = await self._taken()
        entered(lock)
        self._held.setdefault(asyncio.current_task(), []).append(lock)
        return lock

    async def __aexit__(self, *error: Any) -> None:
        task = asyncio.current_task()
        lock = self._held[task].pop()
        if not self._held[task]:
            del self._held[task]
        # Not in the loop's executor: calls that wait for this lock may fill it.
        await wait_async(lambda _: lock.__exit__(*error))
