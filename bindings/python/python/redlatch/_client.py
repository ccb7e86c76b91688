"""The client."""

from __future__ import annotations

import asyncio
import atexit
import functools
import inspect
import os
import time
import weakref
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from logging import DEBUG
from typing import TYPE_CHECKING, Any, Callable, Generator, Iterable, TypeVar, Union, cast, overload

from . import _native
from ._errors import ConfigError, LockTimeout, NoQuorum
from ._log import logger
from ._native import Lock, Register
from ._views import Holder, Inspection, NodeStatus, OncePerRun
from ._waiting import end, needs_no_thread, wait, wait_async

if TYPE_CHECKING:
    from typing import Coroutine, Literal, Protocol

    from typing_extensions import ParamSpec, Unpack

    from ._options import Request, Settings

    _Arguments = ParamSpec("_Arguments")
    _Result = TypeVar("_Result")

    class _MayReturnNone(Protocol):
        """A decorator of a function that does not run if others hold the lock."""

        @overload
        def __call__(
            self, function: Callable[_Arguments, Coroutine[Any, Any, _Result]], /
        ) -> Callable[_Arguments, Coroutine[Any, Any, _Result | None]]: ...
        @overload
        def __call__(
            self, function: Callable[_Arguments, _Result], /
        ) -> Callable[_Arguments, _Result | None]: ...


Seconds = Union[float, timedelta]
Name = Union[str, bytes]
Names = Union[Name, Iterable[Name]]
Function = TypeVar("Function", bound=Callable[..., Any])

#: For how long the end of the interpreter waits for calls and callbacks that run, in seconds.
END_LIMIT = 2.0
#: As long does one attempt take with the default settings, on ZooKeeper, where it takes longest.
ATTEMPT_LIMIT = 4.0
#: The ttl of locks that none is given for, in seconds: as long as in the description of Redlock.
TTL = 10.0


class Client(_native.Client):
    """Locks that a majority of the nodes keeps.

    ``nodes`` are URLs, one or a list: of N independent servers (``redis://``, ``rediss://``), of a
    replicated group (``redis+sentinel://``, ``redis+cluster://``), or of a ZooKeeper ensemble
    (``zk://``). Nothing is connected before the first call.

    One client serves all threads of a process. In a forked child it connects anew; the parent's
    locks are not touched, and are not held there.
    """

    _made_of: tuple[type[Client], list[str], Settings]
    _attempt_limit: float

    def __new__(cls, nodes: str | Iterable[str], **settings: Unpack[Settings]) -> Client:
        urls = [nodes] if isinstance(nodes, str) else cast("list[str]", _names(nodes))
        client = super().__new__(cls, urls, **settings)
        client._made_of = (cls, urls, settings)
        client._attempt_limit = _attempt_limit(settings)
        _clients.add(client)
        return client

    def __reduce__(self) -> Any:
        # For processes that are spawned. A pickle has the passwords of the URLs.
        return _make, self._made_of

    def __repr__(self) -> str:
        return f"<redlatch.Client of {len(self._made_of[1])} URLs>"

    @classmethod
    def from_env(cls, variable: str, **settings: Unpack[Settings]) -> Client:
        """A client of the nodes in an environment variable: URLs with commas between them."""
        return cls([], nodes_from_env=variable, **settings)  # type: ignore[misc]

    def lock(
        self,
        name: Names,
        ttl: Seconds = TTL,
        *,
        timeout: Seconds | None = None,
        **request: Unpack[Request],
    ) -> Lock:
        """Takes the lock, as soon as nobody holds it and in the order in which it was asked for.

        It is held from here on, and kept alive until it is released: by ``with``, by ``release``,
        or when nothing refers to it any more, so keep it. ``ttl``: for how long it stays taken
        after this process has died. ``timeout``: for how long to wait, as long as it takes by
        default.

        Of several names, all are taken or none.

        Raises :class:`LockTimeout`, :class:`NoQuorum`.
        """
        lock = self._take(name, ttl, timeout, request)
        if lock is None:
            raise LockTimeout(_timed_out(name, timeout))
        return lock

    def try_lock(
        self,
        name: Names,
        ttl: Seconds = TTL,
        *,
        timeout: Seconds = 0,
        **request: Unpack[Request],
    ) -> Lock | None:
        """As :meth:`lock`, without waiting, or for ``timeout``. ``None`` if others hold it then.

        The lock is what is returned: ``if not client.try_lock("a"): return`` releases it at once.
        """
        return self._take(name, ttl, timeout, request)

    def alock(
        self,
        name: Names,
        ttl: Seconds = TTL,
        *,
        timeout: Seconds | None = None,
        **request: Unpack[Request],
    ) -> AsyncLock:
        """As :meth:`lock`, for asyncio: ``async with client.alock("orders:42") as lock``."""
        return AsyncLock(self, name, ttl, timeout, request)

    @overload
    def locked(
        self,
        name: Names | Callable[..., Names],
        ttl: Seconds = TTL,
        *,
        wait: Literal[True] = True,
        timeout: Seconds | None = None,
        **request: Unpack[Request],
    ) -> Callable[[Function], Function]: ...

    @overload
    def locked(
        self,
        name: Names | Callable[..., Names],
        ttl: Seconds = TTL,
        *,
        wait: bool,
        timeout: Seconds | None = None,
        **request: Unpack[Request],
    ) -> _MayReturnNone: ...

    def locked(
        self,
        name: Names | Callable[..., Names],
        ttl: Seconds = TTL,
        *,
        wait: bool = True,
        timeout: Seconds | None = None,
        **request: Unpack[Request],
    ) -> Callable[[Function], Function] | _MayReturnNone:
        """A decorator: the function runs under the lock.

        ``name`` may be a function of its arguments. With ``wait=False`` it returns ``None`` at
        once, and has not run, if others hold the lock. Around a coroutine function, the lock is
        that of :meth:`alock`.
        """

        fixed = [] if callable(name) else _names(name)

        def decorate(function: Function) -> Function:
            if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
                # Its body runs after it has returned, and would run without the lock.
                raise TypeError(f"{function!r} is a generator: take the lock inside of it")

            def names(args: Any, kwargs: Any) -> Names:
                return name(*args, **kwargs) if callable(name) else fixed

            @functools.wraps(function)
            def run(*args: Any, **kwargs: Any) -> Any:
                take = functools.partial(self.lock, timeout=timeout) if wait else self.try_lock
                lock = take(names(args, kwargs), ttl, **request)
                if lock is None:
                    return None
                with lock:
                    return function(*args, **kwargs)

            @functools.wraps(function)
            async def run_async(*args: Any, **kwargs: Any) -> Any:
                limit = timeout if wait else 0
                alock = self.alock(names(args, kwargs), ttl, timeout=limit, **request)
                async with AsyncExitStack() as stack:
                    try:
                        await stack.enter_async_context(alock)
                    except LockTimeout:
                        if wait:
                            raise
                        return None
                    return await function(*args, **kwargs)

            chosen = run_async if inspect.iscoroutinefunction(function) else run
            return cast(Function, chosen)

        return decorate

    def resume(
        self, token: str, name: Names, ttl: Seconds = TTL, **request: Unpack[Request]
    ) -> Lock:
        """Takes over a lock that another process has given away by ``Lock.into_token``."""
        return _native.resume(self, token, _names(name), ttl, **request)

    def _take(
        self, name: Names, ttl: Seconds, timeout: Seconds | None, request: Request
    ) -> Lock | None:
        limit = _native.limit(timeout)
        acquire = functools.partial(
            self._acquire, _names(name), ttl, log_calls=logger.isEnabledFor(DEBUG), **request
        )
        if limit == 0 or needs_no_thread():
            return acquire(limit, None, goes_on=False)
        began = time.monotonic()
        # Most locks are free, and then no thread is needed to wait in. But against silent nodes, an
        # attempt may take longer than a short limit.
        if limit is None or limit >= self._attempt_limit:
            try:
                lock = acquire(0, None, goes_on=True)
            except NoQuorum:
                lock = None  # waiting may help, or fails for the same reason
            if lock is not None:
                return lock
            if limit is not None:
                limit = max(limit - (time.monotonic() - began), 0)
        return wait(functools.partial(acquire, limit, goes_on=False))

    # Jobs and leaders.

    def once_per(
        self,
        name: Name,
        period: Seconds,
        job: Callable[[], Any],
        *,
        tolerance: Seconds | None = None,
        retry_failed: bool = False,
        exact: bool = False,
    ) -> OncePerRun:
        """Runs ``job`` if it has not begun within the last ``period``, on whatever machine.

        ``tolerance``: how much earlier the next run may begin, by default a tenth of the period.
        ``retry_failed``: a run that raised does not count. ``exact``: remembered by a register,
        and measured by the nodes' clocks; see :meth:`form_registers`.
        """
        if inspect.iscoroutinefunction(job):
            raise TypeError("the job is a coroutine function: it would not have run")
        call = _native.OncePerCall(self, name, period, tolerance, retry_failed, exact)
        run = wait(lambda _: call.next())
        if run is not None:
            return run
        try:
            value = job()
        except BaseException:
            call.tell(False)
            wait(lambda _: call.next())
            raise
        call.tell(True)
        run = wait(lambda _: call.next())
        return replace(run, value=value) if run else OncePerRun(True, value)

    def forget(self, name: Name, *, exact: bool = False) -> None:
        """Forgets the last run of a job of :meth:`once_per`: it is due at once."""
        _native.forget(self, name, exact)

    def election(
        self, name: Name, *, candidate: Name | None = None, ttl: Seconds = TTL
    ) -> Election:
        """An election of one leader. ``candidate`` is what others see as its name."""
        return Election(self, name, candidate, ttl)

    # Registers.

    def register(self, name: Name) -> Register:
        """A value of up to 16 KiB that a majority of the nodes agrees on, without a lease."""
        return _native.register(self, name)

    def form_registers(self, *, in_memory: bool = False) -> None:
        """Makes the nodes a group that keeps registers, once in their life. ``in_memory``: also of
        nodes that forget when they restart; then two that restart at once lose all."""
        _native.form_registers(self, in_memory)

    # What an operator does.

    def inspect(self, name: Name) -> Inspection:
        """Who holds a lock, and who waits for it."""
        return _native.inspect(self, name)

    def force_release(self, seen: Inspection) -> bool:
        """Ends a lock as :meth:`inspect` has seen it, whoever holds it. ``False`` if it was over.

        Dangerous: a holder that is alive works on and notices nothing before it extends.
        """
        return _native.force_release(self, seen.seen)

    def locks(self, pattern: Name = "*") -> list[str | bytes]:
        """The names of all locks that match: ``*``, ``?`` and ``[abc]``."""
        return _native.locks(self, pattern)

    def nodes(self) -> list[NodeStatus]:
        """The state of each node, and what is wrong with it."""
        return _native.nodes(self)


class AsyncLock:
    """A lock that is awaited: with ``async with``, or with ``await``. Each takes it anew."""

    def __init__(
        self, client: Client, name: Names, ttl: Seconds, timeout: Seconds | None, request: Request
    ) -> None:
        self._acquire = functools.partial(
            client._acquire,
            _names(name),
            ttl,
            timeout,
            log_calls=logger.isEnabledFor(DEBUG),
            goes_on=False,
            **request,
        )
        self._text = _timed_out(name, timeout)
        # Several tasks may be within the block, of a lock that is shared.
        self._held: dict[asyncio.Task[Any] | None, list[Lock]] = {}

    def __await__(self) -> Generator[Any, Any, Lock]:
        return self._taken().__await__()

    async def _taken(self) -> Lock:
        lock = await wait_async(self._acquire)
        if lock is None:
            raise LockTimeout(self._text)
        return lock

    async def __aenter__(self) -> Lock:
        lock = await self._taken()
        self._held.setdefault(asyncio.current_task(), []).append(lock)
        return lock

    async def __aexit__(self, *error: Any) -> None:
        task = asyncio.current_task()
        lock = self._held[task].pop()
        if not self._held[task]:
            del self._held[task]
        # Not in the loop's executor: calls that wait for this lock may fill it.
        await wait_async(lambda _: lock.__exit__(*error))


class Election:
    """See :meth:`Client.election`."""

    def __init__(self, client: Client, name: Name, candidate: Name | None, ttl: Seconds) -> None:
        self._client, self._name, self._candidate, self._ttl = client, name, candidate, ttl

    def campaign(self, *, timeout: Seconds | None = None) -> Lock:
        """Waits until this candidate leads: for as long as it has the lock that is returned.

        ``fencing_token`` is the number of its term, ``ensure_held`` raises if it leads no more, and
        ``release`` or the end of a ``with`` block resigns. Raises :class:`LockTimeout` if another
        one leads after ``timeout``.
        """
        lock = wait(
            lambda cancel: _native.campaign(
                self._client, self._name, self._candidate, self._ttl, timeout, cancel
            )
        )
        if lock is None:
            raise LockTimeout(f"another candidate leads {self._name!r}, and did for {timeout} s")
        return lock

    def leader(self) -> Holder | None:
        """Who leads; its ``owner`` is the name of the candidate."""
        return _native.leader(self._client, self._name)


def _timed_out(name: Names, timeout: Seconds | None) -> str:
    # The caller may hold it itself.
    return f"{name!r} is held, by others or by this process, and was for all of the {timeout} s"


def _names(name: Names) -> Name | list[Name]:
    if isinstance(name, (str, bytes)):
        return name
    try:
        # An iterator may be read once, and an attempt may need a second call.
        return list(name)
    except TypeError as error:
        raise ConfigError(f"a text, or a list of texts, is needed, and not {name!r}") from error


def _attempt_limit(settings: Settings) -> float:
    """For how long one attempt may take if nodes are silent. More than that does no harm."""
    node_timeout = _native.limit(settings.get("node_timeout"))
    longest = [_native.limit(settings.get("connect_timeout")), 10 * (node_timeout or 0)]
    longest += [_native.limit(settings.get("session_timeout")), ATTEMPT_LIMIT]
    return max(limit or 0 for limit in longest)


def _make(kind: type[Client], urls: list[str], settings: Settings) -> Client:
    return kind(urls, **settings)


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


os.register_at_fork(after_in_child=_native.forked)


@atexit.register
def _end() -> None:
    # Threads that are no daemons have ended before.
    end()
    _native.end(list(_clients), END_LIMIT)
