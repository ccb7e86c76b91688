"""What an error says to who has passed something else: what is needed, and not what went wrong
inside."""

from __future__ import annotations

import asyncio
import inspect
import os
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import pytest

import redlatch
from redlatch import testing

URL = "redis://localhost"
SECRET = type("Url", (), {"__repr__": lambda self: "redis://:secret@a"})()

A_NAME = "a name is str or bytes, or a list of such, not"
A_NODE = 'a node is a URL, such as "redis://10.0.0.1", as str, or a list of such, not'
NODES = 'nodes are URLs, such as "redis://10.0.0.1", one or a list, each a str, not'
A_TIME = "a time is a number of seconds, 0 or more, or a timedelta, not"

CONFIG_ERRORS = [
    (lambda client: client.lock(42), f"{A_NAME} int"),
    (lambda client: client.lock(None), f"{A_NAME} None"),
    (lambda client: client.try_lock(1.5), f"{A_NAME} float"),
    (lambda client: asyncio.run(client.alock(None)._taken()), f"{A_NAME} None"),
    (lambda client: client.locked(42), f"{A_NAME} int"),
    (lambda client: client.lock(["a", 2]), "a name is str or bytes, not int"),
    (lambda client: client.lock([["a"]]), "a name is str or bytes, not list"),
    (lambda client: client.lock([]), "the set of resources is empty"),
    (lambda client: client.lock(name for name in ()), "the set of resources is empty"),
    (lambda client: client.inspect(None), "a name is str or bytes, not None"),
    (lambda client: client.lock("a", owner=5), "owner: a name is str or bytes, not int"),
    (lambda client: client.lock("a", ttl=None), f"{A_TIME} None"),
    (lambda client: client.lock("a", ttl="10"), f"{A_TIME} '10'"),
    (lambda client: client.lock("a", ttl=timedelta(-1)), f"{A_TIME} datetime.timedelta(days=-1)"),
    (lambda client: client.lock("a", timeout=float("nan")), f"{A_TIME} nan"),
    (lambda client: client.lock("a", timeout=10**400), f"{A_TIME} int"),
    (lambda client: client.lock("a", ttl="x" * 100), f"{A_TIME} str"),
    (lambda client: client.lock("a", max_hold=-1), f"max_hold: {A_TIME} -1"),
    (
        lambda client: client.try_lock("a", ttl=30, max_hold=5, keep_alive=False),
        "a ttl of 30s is longer than max_hold of 5s: it must be at most as long",
    ),
    (lambda client: client.lock("a", fenced=1), "fenced: True or False is needed, not 1"),
    (
        lambda client: client.lock("a", one_of="2"),
        "one_of: a number of holders, 1 or more, is needed, not '2'",
    ),
    (
        lambda client: client.lock("a", one_of=-1),
        "one_of: a number of holders, 1 or more, is needed, not -1",
    ),
    (lambda client: client.resume(b"redlatch1", "a"), "token: a str is needed, not bytes"),
    (
        lambda client: client.register("r").set("text"),
        "new: a value of bytes is needed, not 'text'",
    ),
    (
        lambda client: client.register("r").compare_and_set(7, b""),
        "seen: None, or the version of a value, is needed, not 7",
    ),
    (
        lambda client: client.register("r").write_fenced(-1, b""),
        "token: a fencing token, an int, is needed, not -1",
    ),
    (lambda client: redlatch.Client(None), f"{A_NODE} None"),
    (lambda client: redlatch.Client(42), f"{A_NODE} int"),
    (lambda client: redlatch.Client(SECRET), f"{A_NODE} Url"),
    (lambda client: redlatch.Client([SECRET]), f"{NODES} Url"),
    (lambda client: redlatch.Client(b"redis://:secret@a"), f"{NODES} bytes"),
    (lambda client: redlatch.Client([b"redis://:secret@a"]), f"{NODES} bytes"),
    (lambda client: redlatch.Client([[URL]]), f"{NODES} list"),
    (
        lambda client: redlatch.Client(URL, drift_factor="1"),
        "drift_factor: a number, such as 0.01, is needed, not '1'",
    ),
    (
        lambda client: redlatch.Client(URL, restart_guard=0),
        "restart_guard: True or False is needed, not 0",
    ),
    (lambda client: redlatch.Client(URL, ca_file=5), "ca_file: a path is needed, not 5"),
    (
        lambda client: redlatch.Client(URL, client_certificate="a"),
        "client_certificate: a pair of paths, of a certificate and of its key, is needed, not 'a'",
    ),
    (lambda client: redlatch.Client(URL, client_name=5), "client_name: a str is needed, not 5"),
    (lambda client: testing.Nodes("3"), "count: a number of nodes is needed, not '3'"),
]


@pytest.mark.parametrize("call, text", CONFIG_ERRORS, ids=[text for _, text in CONFIG_ERRORS])
def test_a_config_error_says_what_is_needed(client, call, text):
    with pytest.raises(redlatch.ConfigError) as raised:
        call(client)
    assert str(raised.value) == text


TYPE_ERRORS = [
    (
        lambda client: client.once_per("j", 5, None),
        "the job is a function without arguments, not None",
    ),
    (
        lambda client: client.lock("a").on_lost(None),
        "a callback is a function of one argument, the LockLost, not None",
    ),
    (lambda client: client.force_release("a"), "what inspect() has returned is needed, not 'a'"),
    (
        lambda client: client.locked(print)(5),
        'a lock has a name: write @client.locked("name"); 5 has none',
    ),
    (
        lambda client: client.locked("a")(classmethod(print)),
        "a classmethod is not a function: put @classmethod above @client.locked",
    ),
    (
        lambda client: client.locked("a")(property(print)),
        "a property is not a function: put @property above @client.locked",
    ),
    (
        lambda client: client.locked("a")(cached_property(print)),
        "a cached_property is not a function: put @cached_property above @client.locked",
    ),
    (
        lambda client: client.locked("a")(Decimal),
        "<class 'decimal.Decimal'> is a class, whose methods would run without the lock: decorate "
        "those that need it",
    ),
]


@pytest.mark.parametrize("call, text", TYPE_ERRORS, ids=[text for _, text in TYPE_ERRORS])
def test_what_is_no_function_and_no_object_of_ours_is_a_type_error(client, call, text):
    with pytest.raises(TypeError) as raised:
        call(client)
    assert str(raised.value) == text
    assert client.once_per("j", 5, lambda: 7).ran, "the job counts as run"


@pytest.mark.parametrize("number", [1, Decimal("1.5"), Fraction(3, 2), timedelta(seconds=1)])
def test_whatever_is_a_number_is_one(client, number):
    with client.lock("a", ttl=number, timeout=number) as lock:
        lock.ensure_held()


class timedelta64(int):
    """As numpy's: a number of what only its type knows."""


def takes_a_number(option):
    return any(kind in str(option.annotation) for kind in ("Seconds", "int", "float"))


def options(call):
    return inspect.signature(call).parameters.values()


#: All calls with a number that is not a number for whoever has written it.
NUMBERS = {
    **{
        f"Client {option.name}": lambda _, number, name=option.name: redlatch.Client(
            URL, **{name: number}
        )
        for option in options(redlatch.Client)
        if takes_a_number(option)
    },
    **{
        f"lock {option.name}": lambda client, number, name=option.name: client.lock(
            "a", **{name: number}
        )
        for option in options(redlatch.Client.lock)
        if takes_a_number(option)
    },
    "try_lock timeout": lambda client, number: client.try_lock("a", timeout=number),
    "alock timeout": lambda client, number: client.alock("a", timeout=number),
    "locked ttl": lambda client, number: client.locked("a", ttl=number)(print)(),
    "locked timeout": lambda client, number: client.locked("a", timeout=number)(print)(),
    "once_per period": lambda client, number: client.once_per("a", number, print),
    "once_per tolerance": lambda client, number: client.once_per("a", 9, print, tolerance=number),
    "election ttl": lambda client, number: client.election("a", ttl=number).campaign(),
    "campaign timeout": lambda client, number: client.election("a").campaign(timeout=number),
    "fencing token": lambda client, number: client.register("a").write_fenced(number, b""),
    "nodes": lambda _, number: testing.nodes(number),
}


@pytest.mark.parametrize("number", [True, False, timedelta64(1)])
@pytest.mark.parametrize("call", NUMBERS.values(), ids=NUMBERS)
def test_what_is_no_number_for_its_reader_is_a_config_error(client, call, number):
    with pytest.raises(redlatch.ConfigError, match=f"needed, not|timedelta, not {number}"):
        call(client, number)


def test_a_lock_is_not_extended_by_what_is_no_number(client):
    with client.lock("a", keep_alive=False) as lock:
        with pytest.raises(redlatch.ConfigError):
            lock.extend(True)


def test_there_are_numbers_among_the_options():
    assert {"Client drift_factor", "Client max_ttl", "lock ttl", "lock one_of"} < NUMBERS.keys()


def test_a_node_that_does_not_exist_is_an_index_error():
    with testing.nodes(1) as nodes:
        for number in (1, -1):
            with pytest.raises(IndexError, match=f"no node {number}: there are 1, from 0"):
                nodes.stop(number)


def test_a_parents_lock_says_that_the_client_works_in_the_child(client):
    with client.lock("a") as lock:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with pytest.raises(redlatch.OtherProcess, match="client, which works in this proc"):
                    lock.release()
                with client.lock("b"):
                    code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
