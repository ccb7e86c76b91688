"""What programs that check types, and `help()`, see of the package."""

from __future__ import annotations

import asyncio
import inspect
import pydoc
import subprocess
import sys

import pytest

import redlatch
from redlatch import Client, LockTimeout

PROGRAM = """
import asyncio
from datetime import timedelta
from typing import assert_type
from redlatch import AsyncLock, Client, Election, Lock, testing

class Tenant(Client):
    def __init__(self, name: str) -> None:
        super().__init__("redis://a", key_prefix=name, node_timeout=timedelta(seconds=1))
        self.name = name

client = Client(["redis://a"], nodes_from_env="NODES", restart_guard=False)
with testing.redirect(client) as nodes:
    nodes.pause(0)
with testing.redirect(client, testing.Ensemble()) as ensemble:
    ensemble.url
tenant = Tenant("a")
assert_type(tenant, Tenant)

@client.locked("a")
def waits(number: int) -> str: return ""

@client.locked("a", ttl=5, wait=False, fenced=True)
def tries(number: int) -> str: return ""

@client.locked(lambda number: f"a{number}", timeout=5, owner=b"me")
async def waits_async(number: int) -> str: return ""

@client.locked("a", wait=False)
async def tries_async(number: int, *, name: str = "") -> str: return ""

class Worker:
    @client.locked("a", wait=False)
    def tries(self, number: int) -> str: return ""

    @tenant.locked("a")
    async def waits(self, number: int) -> str: return ""

def blocks() -> None:
    assert_type(client.lock("a", 5, timeout=1, one_of=3), Lock)
    assert_type(client.try_lock(["a", b"b"], shared=True), Lock | None)
    assert_type(client.alock("a"), AsyncLock)
    assert_type(client.resume("token", "a", max_hold=timedelta(hours=1)), Lock)
    assert_type(client.election("a"), Election)
    with client.lock("a") as lock:
        assert_type(lock, Lock)

async def main() -> None:
    assert_type(waits(1), str)
    assert_type(tries(1), str | None)
    assert_type(await waits_async(1), str)
    assert_type(await tries_async(1, name="a"), str | None)
    assert_type(Worker().tries(1), str | None)
    assert_type(await Worker().waits(1), str)
    async with client.alock("a") as lock:
        assert_type(lock, Lock)
    assert_type(await client.alock("a"), Lock)

asyncio.run(main())
"""

#: Each is refused.
WRONG = """
tries("1")
waits()
client.lock("a", tll=5)
client.lock(5)
client.lock("a", ttl="5")
client.locked("a", owner=5)
Client("redis://a", node_timout=1)
client.try_lock("a").release()
"""


CHECKERS = {
    "mypy": ["mypy", "--strict"],
    "basedpyright": ["basedpyright", "--level", "error", "--pythonpath", sys.executable],
}


@pytest.mark.parametrize("checker", CHECKERS)
def test_type_checkers_see_what_calls_return_and_refuse_what_is_wrong(tmp_path, checker):
    pytest.importorskip(checker)
    (tmp_path / "pyproject.toml").write_text('[tool.basedpyright]\ntypeCheckingMode = "standard"')

    def check(text):
        (tmp_path / "typed.py").write_text(text)
        # The package as it is installed: an import of this folder's would be found first.
        command = [sys.executable, "-m", *CHECKERS[checker], "typed.py"]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        return ran.returncode, ran.stdout + ran.stderr

    code, said = check(PROGRAM)
    assert code == 0, said
    code, said = check(PROGRAM + WRONG)
    lines = PROGRAM.count("\n") + 1
    refused = [number for number in range(lines, lines + 10) if f"typed.py:{number}:" in said]
    assert refused == list(range(lines + 1, lines + WRONG.count("\n"))), said


def options(call):
    """The keywords of a call, but those that it has alone."""
    found = inspect.signature(call).parameters.values()
    kinds = [each for each in found if each.kind is each.KEYWORD_ONLY]
    return [each for each in kinds if each.name not in ("timeout", "wait")]


def test_all_calls_that_take_a_lock_have_the_same_options():
    expected = options(Client.lock)
    assert len(expected) == 8
    for call in (Client.try_lock, Client.alock, Client.locked, Client.resume):
        assert options(call) == expected, call


def test_no_call_hides_its_options():
    calls = [Client, *vars(Client).values()]
    for call in (each for each in calls if inspect.isfunction(each) or inspect.isclass(each)):
        for each in inspect.signature(call).parameters.values():
            assert each.kind is not each.VAR_KEYWORD, call


def test_help_says_what_each_option_means_and_what_it_is_without_it():
    shown = pydoc.plain(pydoc.render_doc(Client.lock))
    assert "timeout: 'Seconds | None' = None, keep_alive: 'bool' = True" in shown
    for each in options(Client.lock):
        assert f"* ``{each.name}``:" in Client.lock.__doc__, each
    for each in options(Client):
        assert f"* ``{each.name}``:" in Client.__doc__, each


class Everything:
    """Has each name there is, and says which was passed."""

    def __init__(self):
        self.passed = {}

    def asked(self):
        return self

    def acquire(self, **passed):
        self.passed = passed

    def start(self, **passed):
        self.passed = passed
        return self

    def wake_by(self, _wake):
        return False

    def result(self):
        return None

    def cancel(self):
        """It has ended."""

    def obstacle(self, **_asked):
        return None, None


def test_each_option_is_passed_on_under_its_name(client):
    values = {each.name: object() for each in options(Client.lock)}
    values["keep_alive"] = False
    client._core = Everything()
    client.try_lock("a", 7, **values)
    passed = client._core.passed
    assert (passed["names"], passed["ttl"]) == ("a", 7)
    assert {name: passed[name] for name in values} == values
    with pytest.raises(LockTimeout):
        asyncio.run(client.alock("b", 7, timeout=0, **values)._taken())
    assert client._core.passed["names"] == "b"
    assert {name: client._core.passed[name] for name in values} == values
    client.locked("c", 7, wait=False, **values)(print)()
    assert {name: client._core.passed[name] for name in values} == values
