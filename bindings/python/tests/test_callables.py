"""Callables whose work is not done when they return: none runs after its lock was released."""

from __future__ import annotations

import asyncio
import functools
import gc
import warnings
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from unittest.mock import AsyncMock, MagicMock

import pytest

import redlatch
from conftest import until


async def coroutine(state=lambda: "not asked"):
    await asyncio.sleep(0)
    return state()


def generator(state=lambda: "not asked"):
    yield state()


async def async_generator(state=lambda: "not asked"):
    yield state()


class Async:
    async def __call__(self, state):
        return await coroutine(state)


class Generator:
    def __call__(self, state):
        yield state()


class AsyncGenerator:
    async def __call__(self, state):
        yield state()


class Static:
    @staticmethod
    async def __call__(state):
        return await coroutine(state)


class Awaitable:
    def __await__(self):
        return coroutine().__await__()


class Method:
    async def run(self, state):
        return await coroutine(state)


COROUTINE_FUNCTIONS = {
    "async def": coroutine,
    "partial": functools.partial(coroutine),
    "partial of a partial": functools.partial(functools.partial(coroutine)),
    "object": Async(),
    "partial of an object": functools.partial(Async()),
    "object with a static method": Static(),
    "bound method": Method().run,
    "bound call": Async().__call__,
    "what is marked as one": AsyncMock(side_effect=coroutine),
}


@pytest.mark.parametrize("function", COROUTINE_FUNCTIONS.values(), ids=COROUTINE_FUNCTIONS)
def test_what_is_a_coroutine_function_in_another_shape_runs_under_the_lock(client, function):
    run = client.locked("a")(function)
    assert asyncio.run(run(lambda: client.inspect("a").state)) == "held"
    assert client.inspect("a").state == "free"


def test_only_that_others_hold_the_lock_is_none_where_nobody_waits(client):
    def name():
        raise redlatch.LockTimeout("of another lock")

    async def run():
        pytest.fail("it has no name")

    with pytest.raises(redlatch.LockTimeout, match="of another lock"):
        asyncio.run(client.locked(name, wait=False)(run)())


GENERATOR_FUNCTIONS = {
    "object": Generator(),
    "object, async": AsyncGenerator(),
    "partial": functools.partial(generator),
    "partial of an object": functools.partial(Generator()),
    "partial, async": functools.partial(async_generator),
    "bound call": Generator().__call__,
}


@pytest.mark.parametrize("function", GENERATOR_FUNCTIONS.values(), ids=GENERATOR_FUNCTIONS)
def test_what_is_a_generator_function_in_another_shape_is_refused(client, function):
    with pytest.raises(TypeError, match="is a generator: take the lock inside of it"):
        client.locked("a")(function)
    with pytest.raises(TypeError, match="the job is a generator: it would not have run"):
        client.once_per("o", 3600, function)
    assert client.once_per("o", 3600, list).ran


#: What a callable may return that looks like a plain one.
UNRUN = {
    "coroutine": (lambda: coroutine(), r"an awaitable \(coroutine\)"),
    "awaitable": (Awaitable, r"an awaitable \(Awaitable\)"),
    "generator": (lambda: generator(), r"a generator \(generator\)"),
    "async generator": (lambda: async_generator(), r"an async generator \(async_generator\)"),
    "future": (Future, r"a future that is not done \(Future\)"),
    "block": (contextmanager(generator), r"a context manager \(_GeneratorContextManager\)"),
    "async block": (
        asynccontextmanager(async_generator),
        r"a context manager \(_AsyncGeneratorContextManager\)",
    ),
}


@pytest.mark.parametrize("returned, kind", UNRUN.values(), ids=UNRUN)
def test_a_result_whose_work_would_run_without_the_lock_is_refused(client, returned, kind):
    text = f"returned {kind}, whose work would be done without the lock"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for wait in (True, False):
            with pytest.raises(TypeError, match=text):
                client.locked("a", wait=wait)(lambda: returned())()

            @client.locked("a", wait=wait)
            async def run():
                return returned()

            with pytest.raises(TypeError, match=text):
                asyncio.run(run())
        gc.collect()
    assert [str(each.message) for each in seen if "never awaited" in str(each.message)] == []
    assert client.inspect("a").state == "free"


@pytest.mark.parametrize("returned, kind", UNRUN.values(), ids=UNRUN)
def test_a_job_that_returned_undone_work_has_failed(client, returned, kind):
    text = f"the job returned {kind}, whose work is not done"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            with pytest.raises(TypeError, match=text):
                client.once_per("o", 3600, lambda: returned(), retry_failed=True)
        gc.collect()
    assert [str(each.message) for each in seen if "never awaited" in str(each.message)] == []
    assert client.once_per("o", 3600, list).ran


@pytest.mark.parametrize("job", [coroutine, Async(), functools.partial(Async())])
def test_a_job_that_is_a_coroutine_function_is_refused_before_it_counts(client, job):
    with pytest.raises(TypeError, match="the job is a coroutine function: it would not have run"):
        client.once_per("o", 3600, job)
    assert client.once_per("o", 3600, list).ran


def test_a_task_that_was_returned_is_cancelled(client):
    tasks = []

    def start():
        tasks.append(asyncio.ensure_future(coroutine()))
        return tasks[-1]

    def gather():
        start()
        return asyncio.gather(start(), start())

    async def main():
        for work, kind in ((start, "Task"), (gather, "_GatheringFuture")):
            with pytest.raises(TypeError, match=rf"an awaitable \({kind}\)"):
                client.locked("a")(work)()
        await asyncio.wait(tasks)

    asyncio.run(main())
    assert [task.cancelled() for task in tasks] == [True, False, True, True]


class Lazy:
    """As a proxy of Werkzeug outside of a request, or a lazy object of Django's."""

    @property
    def __class__(self):
        raise RuntimeError("it was looked at")


class Proxy:
    """As a proxy of Werkzeug, whatever it is for."""

    __await__ = property(lambda proxy: None)


def test_whatever_else_is_returned_is_passed_on(client):
    done = Future()
    done.set_result(1)
    for value in (None, [1], iter([1]), map(int, "1"), done, MagicMock(), Lazy(), Proxy(), open):
        assert client.locked("a")(lambda: value)() is value  # noqa: B023
        client.forget("o")
        assert client.once_per("o", 3600, lambda: value).value is value  # noqa: B023


def test_a_callback_of_on_lost_is_a_plain_function(client, monkeypatch):
    lock = client.lock("a")
    for function in (coroutine, Async(), functools.partial(coroutine), generator, Generator()):
        with pytest.raises(TypeError, match="a callback is a plain function"):
            lock.on_lost(function)
    raised = []
    monkeypatch.setattr("sys.unraisablehook", raised.append)
    lock.on_lost(lambda lost: coroutine())
    client.force_release(client.inspect("a"))
    until(lambda: raised)
    assert "the callback returned an awaitable (coroutine)" in str(raised[0].exc_value)
