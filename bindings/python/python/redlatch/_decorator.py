"""Functions that run under a lock."""

from __future__ import annotations

import functools
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Callable, TypeVar, cast, overload

from ._async import AsyncLock
from ._callables import is_coroutine_function, is_generator_function, undone
from ._errors import LockTimeout
from ._native import Lock

if TYPE_CHECKING:
    from typing import Coroutine, Protocol

    from typing_extensions import ParamSpec

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


Function = TypeVar("Function", bound=Callable[..., Any])


def decorated(
    function: Function,
    take: Callable[..., Lock | None],
    take_async: Callable[..., AsyncLock],
    wait: bool,
) -> Function:
    """The function under the lock that ``take`` returns for its arguments, or, of a coroutine
    function, under that of ``take_async``. Without ``wait`` it returns ``None`` if there is none.
    """
    if isinstance(function, staticmethod):  # as a function, it would get an instance
        static = staticmethod(decorated(function.__func__, take, take_async, wait))
        return cast(Function, static)
    if isinstance(function, type):
        raise TypeError(
            f"{function!r} is a class, whose methods would run without the lock: decorate those "
            "that need it"
        )
    if not callable(function) and hasattr(function, "__get__"):
        kind = type(function).__name__
        raise TypeError(f"a {kind} is not a function: put @{kind} above @client.locked")
    if not callable(function):  # the decorator stood there without a name, so this is an argument
        raise TypeError(f'a lock has a name: write @client.locked("name"); {function!r} has none')
    if is_generator_function(function):
        # Its body runs after it has returned, and would run without the lock.
        raise TypeError(f"{function!r} is a generator: take the lock inside of it")

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        lock = take(*args, **kwargs)
        if lock is None:
            return None
        with lock:
            return done(function(*args, **kwargs))

    @functools.wraps(function)
    async def run_async(*args: Any, **kwargs: Any) -> Any:
        lock = take_async(*args, **kwargs)
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(lock)
            except LockTimeout:
                if wait:
                    raise
                return None
            return done(await function(*args, **kwargs))

    def done(result: Any) -> Any:
        if kind := undone(result):
            raise TypeError(
                f"{function!r} returned {kind}, whose work would be done without the lock: do it "
                "within the function that is decorated, which is an `async def` if it awaits"
            )
        return result

    return cast(Function, run_async if is_coroutine_function(function) else run)
