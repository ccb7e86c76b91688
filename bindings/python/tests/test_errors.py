"""Exceptions and views that leave the process in which they were made."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timezone

import pytest

import redlatch
from conftest import until
from redlatch import NodeReport

REPORTS = [NodeReport("redis://a", "refused", True, False), NodeReport("redis://b", "ok", False, False)]
ERRORS = [
    redlatch.RedlatchError("text"),
    redlatch.ConfigError("text"),
    redlatch.NoQuorum("text", REPORTS, needed=2, answered=1, quarantine=3.5),
    redlatch.LockLost("text", "gone"),
    redlatch.LockTimeout("text"),
    redlatch.AlreadyHeld("text"),
    redlatch.Cancelled("text"),
    redlatch.OtherProcess("text"),
    redlatch.RegisterError("text", True),
]
IDS = [type(error).__name__ for error in ERRORS]


def assert_same(error, other):
    assert (type(other), str(other), other.args) == (type(error), "text", error.args)
    assert vars(other) == vars(error)


def fail(number):
    raise ERRORS[number]


def test_these_are_all_exceptions():
    kinds = (redlatch.RedlatchError, *redlatch.RedlatchError.__subclasses__())
    assert {type(error) for error in ERRORS} == set(kinds)


@pytest.mark.parametrize("error", ERRORS, ids=IDS)
def test_an_exception_is_pickled_and_copied_with_all_that_it_says(error):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert_same(error, pickle.loads(pickle.dumps(error, protocol)))
    assert_same(error, copy.copy(error))
    assert_same(error, copy.deepcopy(error))


@pytest.mark.parametrize("error", ERRORS, ids=IDS)
def test_an_exception_is_made_anew_of_its_arguments_as_json(error):
    # So do task queues that send results as JSON.
    again = type(error)(*json.loads(json.dumps(error.args)))
    assert (str(again), vars(again)) == ("text", vars(error))


def test_tracebacks_name_the_package():
    for kind in map(type, ERRORS):
        assert kind.__module__ == "redlatch"


def test_pools_of_processes_hand_exceptions_to_the_parent():
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        for number, error in enumerate(ERRORS):
            assert_same(error, pool.submit(fail, number).exception(timeout=60))
    with context.Pool(1) as pool:
        for number, error in enumerate(ERRORS):
            with pytest.raises(type(error)) as raised:
                pool.apply(fail, (number,))
            assert_same(error, raised.value)


CELERY = """
import celery
from redlatch import *

app = celery.Celery("app", broker={url!r}, backend={url!r})
app.conf.update(result_serializer={serializer!r}, accept_content=["json", "pickle"])

@app.task
def fail(number):
    raise {errors}[number]
"""
ASKS = """
import pickle, sys, tasks
results = [tasks.fail.delay(number) for number in range(int(sys.argv[1]))]
errors = [result.get(timeout=60, propagate=False) for result in results]
sys.stdout.buffer.write(pickle.dumps(errors))
"""


@pytest.mark.parametrize("serializer", ["json", "pickle"])
def test_celery_hands_exceptions_to_who_asks_for_the_result(tmp_path, servers, serializer):
    pytest.importorskip("celery")
    pytest.importorskip("redis")
    text = CELERY.format(url=servers[0].url, serializer=serializer, errors=ERRORS)
    (tmp_path / "tasks.py").write_text(text)
    command = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "--pool=prefork", "-c1"]
    as_root = {**os.environ, "C_FORCE_ROOT": "1"}
    with (tmp_path / "log").open("w") as log:
        worker = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log, env=as_root)
    try:
        asks = [sys.executable, "-c", ASKS, str(len(ERRORS))]
        asked = subprocess.run(asks, cwd=tmp_path, capture_output=True, timeout=100)
        assert asked.returncode == 0, asked.stderr.decode()
    finally:
        worker.terminate()
        worker.wait(60)
    for error, other in zip(ERRORS, pickle.loads(asked.stdout)):
        assert_same(error, other)


def test_views_are_pickled_and_compared(client):
    with client.lock("a", owner="me"):
        until(lambda: client.inspect("a").state == "held")
        seen = client.inspect("a")
        views = [seen, seen.holders[0], client.nodes()[0], *REPORTS]
    client.form_registers(in_memory=True)
    client.register("r").set(b"1")
    views += [client.register("r").get(), redlatch.OncePerRun(True, 5)]
    views += [redlatch.Waiter("me", datetime.now(timezone.utc), False)]
    for view in views:
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(view, protocol))
            assert again == view and type(again) is type(view) and repr(again) == repr(view)
            assert type(view).__module__ == "redlatch"


def test_a_version_may_be_used_in_another_process(client):
    client.form_registers(in_memory=True)
    register = client.register("r")
    register.set(b"1")
    version = pickle.loads(pickle.dumps(register.get().version))
    assert register.compare_and_set(version, b"2")
    assert not register.compare_and_set(version, b"3")


def test_an_inspection_that_was_pickled_releases_nothing(client):
    with client.lock("a") as lock:
        seen = pickle.loads(pickle.dumps(client.inspect("a")))
        with pytest.raises(redlatch.ConfigError, match="inspect the lock in this process"):
            client.force_release(seen)
        lock.ensure_held()
