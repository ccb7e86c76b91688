"""What the calls of a lock do, on real servers."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import pydoc
import threading
import time
import warnings
from datetime import timedelta

import pytest

import redlatch
from conftest import until
from redlatch import testing


def test_a_block_holds_the_lock_and_releases_it(client, urls):
    other = redlatch.Client(urls, restart_guard=False)
    with client.lock("orders:42", ttl=10) as lock:
        lock.ensure_held()
        assert lock.is_held and 2 < lock.remaining < 10
        assert lock.names == ["orders:42"]
        assert other.try_lock("orders:42") is None
    assert not lock.is_held
    with pytest.raises(redlatch.RedlatchError, match="released already"):
        lock.ensure_held()
    assert other.try_lock("orders:42") is not None


def test_an_exception_of_the_block_passes_through_and_releases(client):
    with pytest.raises(KeyError):
        with client.lock("a"):
            raise KeyError("a")
    assert client.inspect("a").state == "free"


def test_names_are_text_or_bytes_and_several_are_taken_together(client):
    with client.lock(b"\xff"):
        assert client.locks() == [b"\xff"]
    both = client.lock(name for name in ["a", b"b"])
    assert both.names == ["a", "b"]
    assert client.try_lock("b") is None
    with pytest.raises(redlatch.LockTimeout):
        client.lock(iter(["b", "c"]), timeout=0.05)
    both.release()
    assert client.try_lock(["b", "c"]) is not None


@pytest.mark.parametrize("ttl", [5, 5.0, timedelta(seconds=5)])
def test_times_are_seconds_or_a_timedelta(client, ttl):
    with client.lock("a", ttl) as lock:
        assert 1 < lock.remaining < 5


def test_a_lock_that_others_hold_is_waited_for_as_long_as_is_said(client):
    held = client.lock("a")
    began = time.monotonic()
    with pytest.raises(redlatch.LockTimeout) as raised:
        client.lock("a", timeout=timedelta(milliseconds=150))
    assert isinstance(raised.value, TimeoutError)
    assert client.try_lock("a", timeout=0.05) is None
    assert time.monotonic() - began >= 0.2
    threading.Timer(0.1, held.release).start()
    with client.lock("a", timeout=60):
        pass


def test_a_lock_is_kept_alive_and_without_that_it_ends(client):
    kept = client.lock("kept", ttl=2)
    ended = client.lock("ended", ttl=0.5, keep_alive=False)
    until(lambda: not ended.is_held)
    with pytest.raises(redlatch.LockLost) as raised:
        ended.ensure_held()
    assert raised.value.reason == "expired"
    time.sleep(2)
    kept.release()


def test_code_that_keeps_the_interpreter_for_long_does_not_lose_a_lock(client, caplog):
    caplog.set_level("DEBUG", "redlatch")  # its records are made by a thread that waits
    keeps_it = ctypes.PyDLL(None).usleep
    with client.lock("a", ttl=2) as lock:
        keeps_it(2_500_000)
        lock.ensure_held()


def test_a_lock_may_be_extended(client):
    lock = client.lock("a", ttl=5, keep_alive=False)
    lock.extend(30)
    assert lock.remaining > 20


def test_a_lock_that_nothing_refers_to_is_released_with_a_warning(client):
    lock = client.lock("a")
    assert client.try_lock("a") is None
    with pytest.warns(ResourceWarning, match="unreleased lock 'a'"):
        del lock
        gc.collect()
    with pytest.warns(ResourceWarning, match="unreleased lock 'a', 'b'") as warned:
        assert client.try_lock(["a", "b"], timeout=30)
    assert warned[0].filename == __file__
    with pytest.warns(ResourceWarning, match="unreleased lock 'leader'"):
        client.election("leader").campaign()
    # Amid an exception, which goes on.
    with pytest.warns(ResourceWarning), pytest.raises(KeyError):
        {}[client.lock("c", timeout=30)]


def test_a_lock_that_was_given_up_or_lost_is_collected_without_a_warning(client, urls, program):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with client.lock("block"):
            pass
        client.lock("released").release()
        client.lock("expires", ttl=0.5).let_expire()
        client.resume(client.lock("given").into_token(), "given").release()
        expired = client.lock("expired", ttl=0.1, keep_alive=False)
        until(lambda: not expired.is_held)
        del expired
        lost = client.lock("lost", ttl=2)
        client.force_release(client.inspect("lost"))
        until(lambda: not lost.is_held)
        del lost
        held = client.lock("held")
        with pytest.raises(redlatch.LockTimeout):
            client.lock("held", timeout=0.05)
        child = os.fork()
        if child == 0:
            del held
            gc.collect()
            os._exit(len(warned))
        assert os.waitpid(child, 0)[1] == 0
        held.release()
        gc.collect()
    assert [str(each.message) for each in warned if each.category is ResourceWarning] == []
    ended = program(
        "import sys, warnings, redlatch; warnings.simplefilter('always')\n"
        "client = redlatch.Client(sys.argv[1].split(','), restart_guard=False)\n"
        "with client.lock('a'): sys.exit(3)",
        ",".join(urls),
    )
    assert ended.end() == (3, "")


def test_a_loss_is_told_and_raised_at_the_end_of_the_block(client, servers):
    told = []
    with pytest.raises(redlatch.LockLost) as raised:
        with client.lock("a", ttl=4) as lock:
            lock.on_lost(told.append)
            for server in servers[:2]:
                server.ask("DEL", "a")
            until(lambda: told)
    assert raised.value.reason == "gone"
    assert isinstance(told[0], redlatch.LockLost)


def test_a_callback_that_raises_is_reported_and_harms_nothing(client, servers, capsys, monkeypatch):
    reported = []
    monkeypatch.setattr("sys.unraisablehook", reported.append)
    lock = client.lock("a", ttl=1)
    lock.on_lost(lambda lost: 1 / 0)
    for server in servers:
        server.ask("FLUSHALL")
    until(lambda: reported)
    assert reported[0].exc_type is ZeroDivisionError
    with client.lock("b") as other:
        other.ensure_held()


def test_readers_permits_and_fencing_tokens(client):
    with client.lock("a", shared=True), client.lock("a", shared=True):
        assert client.try_lock("a") is None
        assert client.inspect("a").state == "shared"
    with client.lock("p", one_of=2) as one, client.lock("p", one_of=2) as two:
        assert {one.slot, two.slot} == {0, 1}
        assert client.try_lock("p", one_of=2) is None
    tokens = []
    for _ in range(3):
        with client.lock("f", fenced=True) as lock:
            tokens.append(lock.fencing_token)
    assert tokens == sorted(set(tokens)) and all(tokens)
    assert client.lock("g").fencing_token is None


def test_a_lock_passes_to_another_process_by_its_token(client, urls):
    token = client.lock("a").into_token()
    other = redlatch.Client(urls, restart_guard=False)
    assert other.try_lock("a") is None
    with other.resume(token, "a") as lock:
        lock.ensure_held()
    with pytest.raises(redlatch.ConfigError):
        other.resume("no token", "a")


def test_a_decorated_function_runs_under_the_lock(client):
    @client.locked(lambda order: f"orders:{order}", ttl=5)
    def charge(order: int) -> str:
        """Charges."""
        assert client.inspect(f"orders:{order}").state == "held"
        return f"charged {order}"

    assert charge(7) == "charged 7"
    assert (charge.__name__, charge.__doc__) == ("charge", "Charges.")

    @client.locked("nightly", wait=False)
    def nightly() -> str:
        return "ran"

    assert nightly() == "ran"
    with client.lock("nightly"):
        assert nightly() is None


NOT_A_TIME = [-1, float("nan"), float("-inf"), 10**400, "10", b"1", [], object()]
#: Of what has an end: not a timeout, which may be for ever.
NOT_A_TTL = [*NOT_A_TIME, float("inf"), 1e300, timedelta(seconds=-1), None, True - 1]


def all_are_config_errors(client, calls, values):
    for name, call in calls.items():
        for value in values:
            try:
                call(client, value)
            except redlatch.ConfigError as error:
                assert isinstance(error, ValueError) and "secret" not in str(error)
            else:
                pytest.fail(f"{name} takes {value!r}")


WRONG_TIMES = {
    "lock": lambda client, time: client.lock("a", time),
    "try_lock": lambda client, time: client.try_lock("a", time),
    "alock": lambda client, time: asyncio.run(client.alock("a", time)._taken()),
    "locked": lambda client, time: client.locked("a", time)(print)(),
    "resume": lambda client, time: client.resume("", "a", time),
    "extend": lambda client, time: client.lock("e", keep_alive=False).extend(time),
    "period": lambda client, time: client.once_per("a", time, print),
    "election": lambda client, time: client.election("a", ttl=time).campaign(timeout=0),
    "max_ttl": lambda client, time: redlatch.Client("redis://localhost", max_ttl=time or 0),
}


def test_what_is_no_ttl_is_a_config_error(client):
    all_are_config_errors(client, WRONG_TIMES, NOT_A_TTL)


WRONG_TIMEOUTS = {
    "lock": lambda client, time: client.lock("a", timeout=time),
    "try_lock": lambda client, time: client.try_lock("a", timeout=time),
    "alock": lambda client, time: asyncio.run(client.alock("a", timeout=time)._taken()),
    "campaign": lambda client, time: client.election("a").campaign(timeout=time),
    "tolerance": lambda client, time: client.once_per("a", 5, print, tolerance=time),
    "max_hold": lambda client, time: client.lock("a", max_hold=time),
    "node_timeout": lambda client, time: redlatch.Client("redis://a", node_timeout=time),
}


def test_what_is_no_timeout_is_a_config_error(client):
    all_are_config_errors(client, WRONG_TIMEOUTS, NOT_A_TIME)


WRONG_NAMES = {
    "lock": lambda client, name: client.lock(name),
    "try_lock": lambda client, name: client.try_lock(name),
    "alock": lambda client, name: asyncio.run(client.alock(name)._taken()),
    "locked": lambda client, name: client.locked(name)(print)(),
    "of several": lambda client, name: client.lock(["a", name]),
    "resume": lambda client, name: client.resume("", name),
    "once_per": lambda client, name: client.once_per(name, 5, print),
    "forget": lambda client, name: client.forget(name),
    "election": lambda client, name: client.election(name).leader(),
    "candidate": lambda client, name: client.election("a", candidate=name or 0).campaign(),
    "register": lambda client, name: client.register(name),
    "inspect": lambda client, name: client.inspect(name),
    "locks": lambda client, name: client.locks(name),
    "owner": lambda client, name: client.lock("a", owner=name or 0),
    "nodes": lambda client, name: redlatch.Client(name),
    "one of the nodes": lambda client, name: redlatch.Client([name]),
    "key_prefix": lambda client, name: redlatch.Client("redis://a", key_prefix=name or 0),
    "client_name": lambda client, name: redlatch.Client("redis://a", client_name=name or 0),
}


@pytest.mark.parametrize("name", [5, None, 1.5, "\ud800", object], ids=repr)
@pytest.mark.parametrize("call", WRONG_NAMES.values(), ids=WRONG_NAMES)
def test_what_is_no_name_is_a_config_error(client, call, name):
    with pytest.raises(redlatch.ConfigError):
        call(client, name)


def test_a_static_method_is_one_on_either_side_of_the_decorator(client):
    class Shop:
        @client.locked("a")
        @staticmethod
        def above(item):
            return item, client.inspect("a").state

        @staticmethod
        @client.locked("a")
        def below(item):
            return item, client.inspect("a").state

        @client.locked("a")
        @staticmethod
        async def awaited(item):
            return item, client.inspect("a").state

        @classmethod
        @client.locked(lambda kind, item: f"{kind.__name__}:{item}")
        def of_class(cls, item):
            return cls, client.inspect(f"Shop:{item}").state

    for shop in (Shop, Shop()):
        assert shop.above(1) == (1, "held")
        assert shop.below(2) == (2, "held")
        assert asyncio.run(shop.awaited(3)) == (3, "held")
        assert shop.of_class(4) == (Shop, "held")


WRONG_OTHERWISE = dict(
    enumerate([
        lambda client, _: client.lock(""),
        lambda client, _: client.lock([]),
        lambda client, _: client.lock("a", ttl=1e6),
        lambda client, _: client.lock("a", one_of=0),
        lambda client, _: client.lock("a", one_of=-1),
        lambda client, _: client.lock("a", one_of=1.5),
        lambda client, _: client.lock("a", one_of="2"),
        lambda client, _: client.lock("a", fenced="yes"),
        lambda client, _: client.lock("a", shared="yes"),
        lambda client, _: client.resume("", "a", shared="yes"),
        lambda client, _: client.register("a").write_fenced(-1, b""),
        lambda client, _: client.register("a").write_fenced("1", b""),
        lambda client, _: redlatch.Client([]),
        lambda client, _: redlatch.Client(b"redis://localhost"),
        lambda client, _: redlatch.Client("http://localhost"),
        lambda client, _: redlatch.Client("redis://:secret@localhost:x"),
        lambda client, _: redlatch.Client("redis://localhost", node_timeout=0),
        lambda client, _: redlatch.Client("redis://localhost", drift_factor="much"),
        lambda client, _: redlatch.Client("redis://localhost", restart_guard="no"),
        lambda client, _: redlatch.Client("redis://localhost", ca_file=5),
        lambda client, _: redlatch.Client("redis://localhost", client_certificate="a"),
    ])
)


def test_what_cannot_be_used_is_a_config_error(client):
    all_are_config_errors(client, WRONG_OTHERWISE, [None])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda client: client.lock("a", tll=1),
        lambda client: redlatch.Client("redis://localhost", node_timout=1),
    ],
)
def test_an_option_that_does_not_exist_is_the_error_of_python(client, wrong):
    with pytest.raises(TypeError):
        wrong(client)


@pytest.mark.parametrize("timeout", [None, float("inf"), 1e300, timedelta.max])
def test_a_timeout_may_be_for_ever(client, timeout):
    held = client.lock("a")
    threading.Timer(0.1, held.release).start()
    with client.lock("a", timeout=timeout):
        pass
    term = client.election("leader").campaign()
    threading.Timer(0.1, term.release).start()
    assert client.election("leader").campaign(timeout=timeout)


def test_too_few_nodes_are_an_error_with_a_report_of_each(client, servers):
    with client.lock("warm"):
        pass
    for server in servers[:2]:
        server.process.kill()
        server.process.wait()
    with pytest.raises(redlatch.NoQuorum) as raised:
        client.try_lock("a")
    error = raised.value
    assert error.needed == 2 and error.answered < 2 and error.quarantine is None
    assert [report.url for report in error.reports] == [f"{server.url}/0" for server in servers]
    assert [report.has_failed for report in error.reports] == [True, True, False]


def test_nodes_that_have_just_begun_do_not_count_yet(urls):
    client = redlatch.Client(urls)
    with pytest.raises(redlatch.NoQuorum) as raised:
        client.try_lock("a")
    assert 30 < raised.value.quarantine <= 60
    began = time.monotonic()
    with pytest.raises(redlatch.NoQuorum) as raised:
        client.lock("a", timeout=25)
    # At once: waiting could not help.
    assert 25 < raised.value.quarantine <= 60 and time.monotonic() - began < 20


def test_what_an_operator_sees_and_does(client, servers):
    lock = client.lock("a", owner="me")
    seen = client.inspect("a")
    assert (seen.state, seen.holders[0].owner) == ("held", "me")
    assert client.locks("a*") == ["a"]
    assert client.force_release(seen) and not client.force_release(seen)
    with pytest.raises(redlatch.LockLost):
        lock.release()
    servers[0].process.kill()
    servers[0].process.wait()
    nodes = client.nodes()
    assert [node.is_connected for node in nodes] == [False, True, True]
    assert nodes[0].last_error and nodes[1].server == "redis"


def test_a_key_that_is_no_lock_is_told_at_once_and_logged(client, servers, caplog):
    for server in servers:
        server.ask("SET", "app:x", "data")
        server.ask("HSET", "cached", "field", "data")
        server.ask("PEXPIRE", "cached", "60000")
    for call in (
        lambda: client.try_lock("app:x"),
        lambda: client.lock("app:x"),
        lambda: client.lock("app:x", timeout=25),
        lambda: asyncio.run(client.alock("app:x").__aenter__()),
    ):
        with pytest.raises(redlatch.ConfigError, match="not a lock: it has no ttl.*key_prefix"):
            call()
    # It ends by itself, and is waited for.
    for wait in (
        lambda: client.lock("cached", timeout=0.1),
        lambda: asyncio.run(client.alock("cached", timeout=0.1).__aenter__()),
    ):
        with pytest.raises(redlatch.LockTimeout, match="is not a lock: it is not a string"):
            wait()
    told = "'cached' is not a lock: it is not a string"
    until(lambda: any(told in record.getMessage() for record in caplog.records))


def test_the_owner_is_this_host_and_process_unless_it_is_named(urls):
    here = f"{os.uname().nodename}:"

    def owner(client, **options):
        with client.lock("a", **options):
            return client.inspect("a").holders[0].owner

    settings = {"restart_guard": False}
    client = redlatch.Client(urls, **settings)
    assert owner(client) == f"{here}{os.getpid()}"
    assert owner(client, owner="me") == "me" and owner(client, owner="") is None
    with client.election("leader").campaign():
        assert client.election("leader").leader().owner == f"{here}{os.getpid()}"
    assert owner(redlatch.Client(urls, owner="all", **settings)) == "all"
    assert owner(redlatch.Client(urls, owner="", **settings)) is None
    child = os.fork()
    if child == 0:
        os._exit(0 if owner(client) == f"{here}{os.getpid()}" else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_job_runs_once_in_each_period(client):
    ran = client.once_per("report", timedelta(days=1), lambda: 5)
    assert (ran.ran, ran.value) == (True, 5)
    again = client.once_per("report", timedelta(days=1), lambda: 5)
    assert not again.ran and again.left > 70_000 and again.next.tzinfo
    client.forget("report")
    with pytest.raises(KeyError):
        client.once_per("report", 3600, lambda: {}["x"])
    assert not client.once_per("report", 3600, lambda: 5).ran, "a run that failed counts"
    for _ in range(2):
        with pytest.raises(KeyError):
            client.once_per("again", 3600, lambda: {}["x"], retry_failed=True)
    with pytest.raises(redlatch.ConfigError):
        client.once_per("never", 5, lambda: 5, tolerance=5)

    async def job():
        pass

    with pytest.raises(TypeError):
        client.once_per("coroutine", 5, job)
    with client.lock("busy"):
        assert client.once_per("busy", 3600, lambda: 5).is_held_by_other


def test_a_leader_is_elected_and_resigns(client, urls):
    election = client.election("leader", candidate="one", ttl=5)
    with election.campaign() as term:
        assert election.leader().owner == "one"
        other = redlatch.Client(urls, restart_guard=False).election("leader", candidate="two")
        with pytest.raises(redlatch.LockTimeout):
            other.campaign(timeout=0.05)
    assert other.campaign(timeout=30).fencing_token > term.fencing_token


def test_registers_keep_what_a_majority_agrees_on(client):
    with pytest.raises(redlatch.RegisterError):
        client.register("config").get()
    client.form_registers(in_memory=True)
    register = client.register("config")
    assert register.get() is None
    assert register.compare_and_set(None, b"1")
    value = register.get()
    assert value.data == b"1"
    register.set(b"2")
    assert not register.compare_and_set(value.version, b"3")
    assert register.write_fenced(7, b"7") and not register.write_fenced(6, b"6")
    assert register.get().fence == 7
    register.delete()
    assert register.get() is None
    with pytest.raises(redlatch.RegisterError) as raised:
        register.set(b"x" * 20_000)
    assert not raised.value.may_have_happened


def test_events_are_records_of_logging(client, servers, caplog):
    caplog.set_level("DEBUG", "redlatch")
    with client.lock("a"):
        pass
    until(lambda: {"acquired", "released"} <= {each.redlatch_event for each in caplog.records})
    caplog.set_level("INFO", "redlatch")
    with client.lock("a"):
        pass
    caplog.clear()
    servers[0].process.kill()
    servers[0].process.wait()
    until(lambda: client.try_lock("b") and caplog.records)
    assert {record.levelname for record in caplog.records} == {"WARNING"}


def test_a_generator_is_not_decorated_since_it_would_run_without_the_lock(client):
    def rows():
        yield 1

    async def more_rows():
        yield 1

    for function in (rows, more_rows):
        with pytest.raises(TypeError):
            client.locked("a")(function)

    @client.locked(name for name in ("a", "b"))
    def work():
        return [client.inspect(name).state for name in ("a", "b")]

    assert [work(), work()] == [["held", "held"]] * 2


def test_a_cycle_through_a_callback_does_not_keep_a_lock(client):
    class Worker:
        def __init__(self):
            self.lock = client.lock("a")
            self.lock.on_lost(self.stop)

        def stop(self, error):
            pass

    Worker()
    gc.collect()
    until(lambda: client.inspect("a").state == "free")


def public_names():
    """Every public name of the package and of its classes, but what Python itself gives them."""
    yield "redlatch", redlatch
    for module in (redlatch, testing):
        for name in getattr(module, "__all__", ("nodes", "Nodes", "Ensemble")):
            thing = getattr(module, name)
            yield name, thing
            members = vars(thing).items() if isinstance(thing, type) else ()
            for member, value in members:
                if not member.startswith("_") and (callable(value) or hasattr(value, "__get__")):
                    yield f"{name}.{member}", getattr(thing, member)
    yield "Client.cancel", redlatch.Client.cancel


def test_help_says_of_every_public_name_what_it_is():
    names = {name: thing for name, thing in public_names() if not isinstance(thing, str)}
    some = {"Lock.release", "Lock.remaining", "Client.lock", "Register.set", "Nodes.stop"}
    assert some < set(names)
    # A class without a text of its own would show that of its base.
    silent = [name for name, thing in names.items() if not (thing.__doc__ or "").strip()]
    assert silent == []
    assert "held" in pydoc.render_doc(redlatch.Lock)


def test_a_lock_that_is_waited_for_while_nodes_are_silent_logs_no_failed_call(urls, caplog):
    waiting = redlatch.Client(urls, node_timeout=0.02)  # they were just started: no vote
    with pytest.raises(redlatch.NoQuorum):
        waiting.lock("a", timeout=waiting._attempt_limit + 0.1)
    until(lambda: "failed" in {each.redlatch_event for each in caplog.records})
    assert [each.redlatch_event for each in caplog.records].count("failed") == 1
