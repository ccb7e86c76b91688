"""Callables of the user's whose work is not done when they return, but by who awaits what they
return, or goes through it. By then, the lock that they were called under is released."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import inspect
import sys
from collections.abc import AsyncGenerator, Coroutine, Generator
from types import MethodType
from typing import Any, Callable

# Before Python 3.12, asyncio alone knows what was marked as one, as mocks are.
_is_marked: Callable[[Any], bool] = (
    inspect.iscoroutinefunction if sys.version_info >= (3, 12) else asyncio.iscoroutinefunction
)

_OF_GENERATORS: type = contextlib._GeneratorContextManagerBase


def is_coroutine_function(function: Any) -> bool:
    return _is_marked(function) or _is_marked(_body(function))


def is_generator_function(function: Any) -> bool:
    body = _body(function)
    return inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body)


def undone(returned: Any) -> str | None:
    """What a callable has returned instead of its work, which then is not begun where that can be
    had: a coroutine is closed, as Python would warn of it, and a future cancelled. ``None``: its
    work is done."""
    # Not the object is asked: a proxy, such as Werkzeug's and Django's, would ask what it is for.
    kind = type(returned)
    if issubclass(kind, concurrent.futures.Future) and returned.done():
        return None
    if issubclass(kind, Coroutine):
        returned.close()
    elif issubclass(kind, (asyncio.Future, concurrent.futures.Future)):
        returned.cancel()
    if _is_awaitable(kind):
        return f"an awaitable ({kind.__name__})"
    for what, kinds in (
        ("a generator", Generator),
        ("an async generator", AsyncGenerator),
        ("a future that is not done", concurrent.futures.Future),
        # What a function below `contextlib.contextmanager` returns: it has not begun.
        ("a context manager", _OF_GENERATORS),
    ):
        if issubclass(kind, kinds):
            return f"{what} ({kind.__name__})"
    return None


def _is_awaitable(kind: type) -> bool:
    """``Awaitable`` takes Werkzeug's proxies for such: they have each special method, as a
    descriptor that asks what the proxy is for."""
    methods = (vars(base).get("__await__") for base in kind.__mro__)
    return any(map(inspect.isroutine, methods))


def _body(function: Any) -> Any:
    """The function whose code a call of this one runs: of a partial, a method, or an object."""
    while not inspect.isfunction(function):
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, (MethodType, staticmethod)):
            function = function.__func__
        elif inspect.isfunction(call := getattr(type(function), "__call__", None)):
            function = call
        else:
            break
    return function
