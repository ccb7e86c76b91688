"""The client."""

from __future__ import annotations

import atexit
import functools
import inspect
import os
import time
import weakref
from datetime import timedelta
from logging import DEBUG
from typing import TYPE_CHECKING, Any, Callable, Iterable, overload

from . import _native
from ._async import AsyncLock
from ._blocks import refuse_own
from ._decorator import Function, decorated
from ._election import Election
from ._errors import ConfigError, NoQuorum
from ._log import logger
from ._native import Lock, Register
from ._once_per import run_once
from ._request import TTL, Name, Names, Request, Seconds, attempt_limit, listed, timed_out, urls
from ._views import Inspection, NodeStatus, OncePerRun
from ._waiting import calling_thread, end, may_block, wait

if TYPE_CHECKING:
    from os import PathLike
    from types import TracebackType
    from typing import Literal

    from typing_extensions import Self

    from ._decorator import _MayReturnNone

#: For how long the end of the interpreter waits for calls and callbacks that run, in seconds.
END_LIMIT = 2.0


class Client:
    """Locks that a majority of the nodes keeps.

    One client serves all threads of a process. In a forked child it connects anew; the parent's
    locks are not touched, and are not held there. It may be pickled, for processes that are
    spawned; a pickle has the passwords of the URLs.

    ``nodes`` are URLs, one or a list: of N independent servers (``redis://``, ``rediss://``), of a
    replicated group (``redis+sentinel://``, ``redis+cluster://``), or of a ZooKeeper ensemble
    (``zk://``); or what :func:`redlatch.testing.nodes` returns. Nothing is connected before the
    first call.

    The settings are keywords, and times are seconds or ``timedelta``. All programs that share locks
    set the same ``key_prefix``, ``max_ttl``, ``failover_bound``, ``clock_skew``,
    ``fencing_expiry`` and ``restart_guard``. ``None`` is the default, whose reason the guide of the
    library gives.

    * ``nodes_from_env``: the name of an environment variable with URLs, commas between them.
    * ``node_timeout``: for how long a node may be silent before others decide without it; 0.05.
    * ``connect_timeout``: how long one attempt to connect may take; 2, or ten times
      ``node_timeout`` if that is more.
    * ``session_timeout``: how long a ZooKeeper session outlives its client; 10.
    * ``max_ttl``: the longest ttl, and how long the votes of a restarted node do not count; 60.
    * ``max_hold``: for how long a lock may be held in all, however often it is extended; a day for
      one that is kept alive.
    * ``min_validity``: the least time that a lock must be valid for when it is granted; 0.
    * ``failover_bound``: of a replicated group: for how long a master that was replaced may still
      answer; 15. Not used with ``?replicas=`` in the URL.
    * ``clock_skew``: of a replicated group: how far apart the clocks of its servers are at most; 1.
    * ``waiter_lease``: for how long a waiter may be silent before others pass it by; 1.5, or four
      times ``node_timeout`` if that is more.
    * ``fencing_expiry``: how long the counters of fencing tokens live after a grant; 7 days.
    * ``drift_factor``: by what part the clocks of two machines may run apart; 0.01.
    * ``restart_guard``: whether votes of a node count only ``max_ttl`` after its start; ``True``.
      ``False`` is for tests, and for servers that write each change to disk at once.
    * ``wait_for_all``: whether a round waits for all nodes, and not only for a majority; ``False``.
    * ``io_thread``: whether the connections have a thread of their own; ``False``: the threads that
      wait for an answer read and write for all.
    * ``queue``: whether waiting calls stand in a queue that the nodes keep; ``True``.
    * ``key_prefix``: what stands before the name of each lock in the nodes' keys; nothing.
    * ``client_name``: the name that the nodes show for the connections; ``redlatch``.
    * ``owner``: what ``inspect`` shows of the holders of locks that name none, and of waiters;
      ``host:pid`` of the process that uses the client, a forked child's too. Whoever may read the
      nodes' keys reads it. ``""``: nothing.
    * ``ca_file``: a file of root certificates for ``rediss://``; those of the system.
    * ``client_certificate``: the files of a client's certificate and of its key.
    * ``bundled_roots``: whether Mozilla's root certificates, inside this package, count; ``False``.
    """

    #: The client of the library. What is made of this client refers to it.
    _core: _native.Client
    _attempt_limit: float

    def __init__(
        self,
        nodes: str | Iterable[str] | _native.Nodes | _native.Ensemble = (),
        *,
        nodes_from_env: str | None = None,
        node_timeout: Seconds | None = None,
        connect_timeout: Seconds | None = None,
        session_timeout: Seconds | None = None,
        max_ttl: Seconds | None = None,
        max_hold: Seconds | None = None,
        min_validity: Seconds | None = None,
        failover_bound: Seconds | None = None,
        clock_skew: Seconds | None = None,
        waiter_lease: Seconds | None = None,
        fencing_expiry: Seconds | None = None,
        drift_factor: float | None = None,
        restart_guard: bool | None = None,
        wait_for_all: bool | None = None,
        io_thread: bool | None = None,
        queue: bool | None = None,
        key_prefix: Name | None = None,
        client_name: str | None = None,
        owner: Name | None = None,
        ca_file: str | PathLike[str] | None = None,
        client_certificate: tuple[str | PathLike[str], str | PathLike[str]] | None = None,
        bundled_roots: bool | None = None,
    ) -> None:
        given = dict(locals())
        settings = {name: given[name] for name in _SETTINGS if given[name] is not None}
        # Those of a test live as long as what refers to them.
        self._nodes = nodes
        self._build(urls(nodes), settings)

    def _build(self, urls: list[str], settings: dict[str, Any]) -> None:
        self._core = _native.Client(urls, **settings)
        self._attempt_limit = attempt_limit(settings)
        _clients.add(weakref.ref(self._core, _clients.discard))

    def __getstate__(self) -> dict[str, Any]:
        of_process = ("_core", "_nodes")
        state = {name: value for name, value in vars(self).items() if name not in of_process}
        # Of a client that is redirected, the nodes of the test.
        return {**state, "_made_of": self._core.asked().made_of}

    def __setstate__(self, state: dict[str, Any]) -> None:
        urls, settings = state["_made_of"]
        vars(self).update({name: value for name, value in state.items() if name != "_made_of"})
        self._build(urls, settings)

    def __repr__(self) -> str:
        urls, _ = self._core.asked().made_of
        return f"<{type(self).__module__}.{type(self).__qualname__} of {len(urls)} URLs>"

    def lock(
        self,
        name: Names,
        ttl: Seconds = TTL,
        *,
        timeout: Seconds | None = None,
        keep_alive: bool = True,
        fenced: bool = False,
        shared: bool = False,
        one_of: int | None = None,
        owner: Name | None = None,
        min_validity: Seconds | None = None,
        max_hold: Seconds | None = None,
        hold_at_least: Seconds | None = None,
    ) -> Lock:
        """Takes the lock, as soon as nobody holds it and in the order in which it was asked for.

        It is held from here on, and kept alive until it is released: by ``with``, by ``release``,
        or when nothing refers to it any more, so keep it. Of several names, all are taken or none.

        * ``ttl``: for how long it stays taken after this process has died.
        * ``timeout``: for how long to wait; ``None``: as long as it takes.
        * ``keep_alive``: whether it is extended until it is released. ``False``: it ends after its
          ttl, unless ``Lock.extend`` is called.
        * ``fenced``: whether to draw a fencing token, a number by which a resource rejects stale
          writers.
        * ``shared``: whether to hold it beside other readers.
        * ``one_of``: to hold one of so many slots: at most so many hold it at a time.
        * ``owner``: what ``inspect`` shows of the holder, up to 256 bytes; the client's, which is
          ``host:pid`` by default.
        * ``min_validity``: the least time that it must be valid for when it is granted.
        * ``max_hold``: for how long it may be held in all, however often it is extended; at least
          ``ttl``.
        * ``hold_at_least``: for how long it stays taken at least, also after its release: for a job
          that several machines begin at the same time by clocks that differ.

        Raises :class:`LockTimeout`, :class:`NoQuorum`.
        """
        request = Request(
            listed(name), ttl, keep_alive, fenced, shared, one_of, owner,
            min_validity, max_hold, hold_at_least,
        )
        lock = self._take(request, timeout)
        if lock is None:
            raise timed_out(self._core, request, timeout, calling_thread())
        return lock

    def try_lock(
        self,
        name: Names,
        ttl: Seconds = TTL,
        *,
        timeout: Seconds = 0,
        keep_alive: bool = True,
        fenced: bool = False,
        shared: bool = False,
        one_of: int | None = None,
        owner: Name | None = None,
        min_validity: Seconds | None = None,
        max_hold: Seconds | None = None,
        hold_at_least: Seconds | None = None,
    ) -> Lock | None:
        """As :meth:`lock`, without waiting, or for ``timeout``. ``None`` if others hold it then.

        The lock is what is returned: ``if not client.try_lock("a"): return`` releases it at once.
        """
        request = Request(
            listed(name), ttl, keep_alive, fenced, shared, one_of, owner,
            min_validity, max_hold, hold_at_least,
        )
        return self._take(request, timeout)

    def alock(
        self,
        name: Names,
        ttl: Seconds = TTL,
        *,
        timeout: Seconds | None = None,
        keep_alive: bool = True,
        fenced: bool = False,
        shared: bool = False,
        one_of: int | None = None,
        owner: Name | None = None,
        min_validity: Seconds | None = None,
        max_hold: Seconds | None = None,
        hold_at_least: Seconds | None = None,
    ) -> AsyncLock:
        """As :meth:`lock`, for asyncio and trio: ``async with client.alock("a") as lock``."""
        request = Request(
            listed(name), ttl, keep_alive, fenced, shared, one_of, owner,
            min_validity, max_hold, hold_at_least,
        )
        return AsyncLock(self._core, request, timeout)

    @overload
    def locked(
        self,
        name: Names | Callable[..., Names],
        ttl: Seconds = TTL,
        *,
        wait: Literal[True] = True,
        timeout: Seconds | None = None,
        keep_alive: bool = True,
        fenced: bool = False,
        shared: bool = False,
        one_of: int | None = None,
        owner: Name | None = None,
        min_validity: Seconds | None = None,
        max_hold: Seconds | None = None,
        hold_at_least: Seconds | None = None,
    ) -> Callable[[Function], Function]: ...

    @overload
    def locked(
        self,
        name: Names | Callable[..., Names],
        ttl: Seconds = TTL,
        *,
        wait: bool,
        timeout: Seconds | None = None,
        keep_alive: bool = True,
        fenced: bool = False,
        shared: bool = False,
        one_of: int | None = None,
        owner: Name | None = None,
        min_validity: Seconds | None = None,
        max_hold: Seconds | None = None,
        hold_at_least: Seconds | None = None,
    ) -> _MayReturnNone: ...

    def locked(
        self,
        name: Names | Callable[..., Names],
        ttl: Seconds = TTL,
        *,
        wait: bool = True,
        timeout: Seconds | None = None,
        keep_alive: bool = True,
        fenced: bool = False,
        shared: bool = False,
        one_of: int | None = None,
        owner: Name | None = None,
        min_validity: Seconds | None = None,
        max_hold: Seconds | None = None,
        hold_at_least: Seconds | None = None,
    ) -> Callable[[Function], Function] | _MayReturnNone:
        """A decorator: the function runs under the lock. The other arguments are those of
        :meth:`lock`.

        ``name`` may be a function of its arguments. With ``wait=False`` it returns ``None`` at
        once, and has not run, if others hold the lock. Around a coroutine function, the lock is
        that of :meth:`alock`. ``TypeError``: it is a generator, or has returned one or what is to
        be awaited; such work would be done without the lock.
        """
        fixed = [] if callable(name) else listed(name)
        request = Request(
            fixed, ttl, keep_alive, fenced, shared, one_of, owner,
            min_validity, max_hold, hold_at_least,
        )
        limit = timeout if wait else 0

        def requested(*args: Any, **kwargs: Any) -> Request:
            return request.of(name(*args, **kwargs)) if callable(name) else request

        def take(*args: Any, **kwargs: Any) -> Lock | None:
            asked = requested(*args, **kwargs)
            lock = self._take(asked, limit)
            if lock is None and wait:
                raise timed_out(self._core, asked, timeout, calling_thread())
            return lock

        def take_async(*args: Any, **kwargs: Any) -> AsyncLock:
            return AsyncLock(self._core, requested(*args, **kwargs), limit)

        return lambda function: decorated(function, take, take_async, wait)

    def resume(
        self,
        token: str,
        name: Names,
        ttl: Seconds = TTL,
        *,
        keep_alive: bool = True,
        fenced: bool = False,
        shared: bool = False,
        one_of: int | None = None,
        owner: Name | None = None,
        min_validity: Seconds | None = None,
        max_hold: Seconds | None = None,
        hold_at_least: Seconds | None = None,
    ) -> Lock:
        """Takes over a lock that another process has given away by ``Lock.into_token``. The other
        arguments are those of :meth:`lock`."""
        request = Request(
            listed(name), ttl, keep_alive, fenced, shared, one_of, owner,
            min_validity, max_hold, hold_at_least,
        )
        core = self._core.asked()
        return _native.resume(core, token, thread=calling_thread(), **request._asdict())

    def _take(self, request: Request, timeout: Seconds | None) -> Lock | None:
        limit = _native.limit(timeout)
        # One for all of the call: a redirect may end meanwhile, and the program's own nodes must
        # not be asked then.
        core = self._core.asked()
        options = dict(
            request._asdict(), log_calls=logger.isEnabledFor(DEBUG), thread=calling_thread()
        )
        acquire = functools.partial(core.acquire, **options)
        if limit != 0:
            refuse_own(core, request.names, shared=request.shared, one_of=request.one_of)
        if limit == 0 or may_block():
            return acquire(wait=limit, goes_on=False)
        began = time.monotonic()
        # Most locks are free, and one is taken faster by this thread than by a call that goes on
        # elsewhere. But against silent nodes, an attempt may take longer than a short limit.
        if limit is None or limit >= self._attempt_limit:
            try:
                lock = acquire(wait=0, goes_on=True)
            except NoQuorum:
                lock = None  # waiting may help, or fails for the same reason
            if lock is not None:
                return lock
            if limit is not None:
                limit = max(limit - (time.monotonic() - began), 0)
        return wait(
            functools.partial(core.start, wait=limit, **options),
            functools.partial(acquire, wait=limit, goes_on=False),
        )

    def cancel(self) -> None:
        """Ends all waits of this client, now and from now on, with :class:`Cancelled`.

        Locks that are held stay held. Any thread may call it.
        """
        self._core.asked().cancel()

    def close(self) -> None:
        """Ends what waits by this client, and its connections. Each later call, also of its
        elections and registers, raises :class:`Cancelled`. Asks no node, so a coroutine may call
        it, as may any thread, and more than once.

        A lock that is held stays held, and kept alive, until it is released as ever: the threads
        that hold it work on. Its connections end with it. A forked child closes its own client.
        """
        self._core.asked().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

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
        """Runs ``job`` if it has not begun within the last ``period``, on whatever machine. It does
        all of its work before it returns: no coroutine function, and no generator.

        ``tolerance``: how much earlier the next run may begin, by default a tenth of the period.
        ``retry_failed``: a run that raised does not count. ``exact``: remembered by a register,
        and measured by the nodes' clocks; see :meth:`form_registers`. On ZooKeeper, the period less
        the tolerance is at most half of ``session_timeout``, and there is no ``exact``.
        """
        return run_once(self._core, name, period, job, tolerance, retry_failed, exact)

    def forget(self, name: Name, *, exact: bool = False) -> None:
        """Forgets the last run of a job of :meth:`once_per`: it is due at once."""
        _native.forget(self._core, name, exact)

    def election(
        self, name: Name, *, candidate: Name | None = None, ttl: Seconds = TTL
    ) -> Election:
        """An election of one leader. ``candidate`` is what others see as its name: the
        client's ``owner`` by default."""
        return Election(self._core, name, candidate, ttl)

    # Registers.

    def register(self, name: Name) -> Register:
        """A value of up to 16 KiB that a majority of the nodes agrees on, without a lease."""
        return _native.register(self._core, name)

    def form_registers(self, *, in_memory: bool = False) -> None:
        """Makes the nodes a group that keeps registers, once in their life. ``in_memory``: also of
        nodes that forget when they restart; then two that restart at once lose all."""
        _native.form_registers(self._core, in_memory)

    # What an operator does.

    def inspect(self, name: Name) -> Inspection:
        """Who holds a lock, and who waits for it."""
        return _native.inspect(self._core, name)

    def force_release(self, seen: Inspection) -> bool:
        """Ends a lock as :meth:`inspect` has seen it, whoever holds it. ``False`` if it was over.

        Dangerous: a holder that is alive works on and notices nothing before it extends.
        """
        if not isinstance(seen, Inspection):
            raise TypeError(f"what inspect() has returned is needed, not {seen!r}")
        if seen.seen is None:
            raise ConfigError("this inspection was pickled: inspect the lock in this process")
        return _native.force_release(self._core, seen.seen)

    def locks(self, pattern: Name = "*") -> list[str | bytes]:
        """The names of all locks that match: ``*``, ``?`` and ``[abc]``."""
        return _native.locks(self._core, pattern)

    def nodes(self) -> list[NodeStatus]:
        """The state of each node, and what is wrong with it."""
        return _native.nodes(self._core)


#: The keywords of a client.
_SETTINGS = tuple(inspect.signature(Client.__init__).parameters)[2:]

# No WeakSet: that cannot be read while other threads make clients.
_clients: set[weakref.ref[_native.Client]] = set()


os.register_at_fork(after_in_child=_native.forked)


@atexit.register
def _end() -> None:
    # Threads that are not daemons have ended before.
    end()
    _native.end(_living_clients, END_LIMIT)


def _living_clients() -> list[_native.Client]:
    return [client for each in list(_clients) if (client := each()) is not None]
