"""Jobs that run once in each period."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable

from . import _native
from ._callables import is_coroutine_function, is_generator_function, undone
from ._request import Name, Seconds
from ._views import OncePerRun
from ._waiting import wait


def run_once(
    client: _native.Client,
    name: Name,
    period: Seconds,
    job: Callable[[], Any],
    tolerance: Seconds | None,
    retry_failed: bool,
    exact: bool,
) -> OncePerRun:
    """See :meth:`redlatch.Client.once_per`."""
    if not callable(job):
        raise TypeError(f"the job is a function without arguments, not {job!r}")
    if is_coroutine_function(job):
        raise TypeError("the job is a coroutine function: it would not have run")
    if is_generator_function(job):
        raise TypeError("the job is a generator: it would not have run")
    call = _native.OncePerCall(client, name, period, tolerance, retry_failed, exact)
    run = wait(call.start_next, call.next)
    if run is not None:
        return run
    try:
        value = job()
        if kind := undone(value):
            raise TypeError(
                f"the job returned {kind}, whose work is not done: run it within the job, a "
                "coroutine by asyncio.run"
            )
    except BaseException:
        call.tell(False)
        wait(call.start_next, call.next)
        raise
    call.tell(True)
    run = wait(call.start_next, call.next)
    return replace(run, value=value) if run else OncePerRun(True, value)
