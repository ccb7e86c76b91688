"""What a client knows of its own threads: who holds a lock, who waits, and who waits for itself."""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import timedelta

import pytest

import redlatch
from conftest import until


@pytest.fixture
def other(urls):
    return redlatch.Client(urls, restart_guard=False)


def text_of(wait) -> str:
    with pytest.raises(redlatch.LockTimeout) as raised:
        wait()
    return str(raised.value)


def in_thread(call):
    results = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join(60)
    return results[0]


def test_the_text_of_a_timeout_says_who_holds_the_lock(client, other):
    wait = lambda: client.lock("a", timeout=0.3)  # noqa: E731
    lock = other.lock("a")
    assert text_of(wait) == "'a' is held by others, and was for all of the 0.3 s"
    lock.release()
    lock = client.lock("a")
    assert text_of(wait) == "'a' is held by this thread itself, and was for all of the 0.3 s"
    here = "'a' is held by this client itself, and was for all of the 0.3 s"
    assert in_thread(lambda: text_of(wait)) == here
    lock.release()
    # Threads hold what was taken for them: here while another one waited for it, in a thread.
    lock = in_thread(lambda: client.lock("a"))
    assert text_of(wait) == here
    lock.release()
    reader = client.lock("a", shared=True)
    assert text_of(wait).startswith("'a' is held by this thread itself")
    reader.release()
    pair = client.lock(["a", "b"])
    assert text_of(wait).startswith("'a' is held by this thread itself")
    pair.release()

    async def waits() -> None:
        lock = await client.alock("a")
        await client.alock("a", timeout=0.1)

    assert text_of(lambda: asyncio.run(waits())).startswith("'a' is held by this client itself")


def test_the_text_of_a_timeout_of_zero_says_that_nothing_was_waited_for(client, other):
    lock = other.lock("a")
    assert text_of(lambda: client.lock("a", timeout=0)) == "'a' is held by others, and timeout is 0"
    assert text_of(lambda: client.lock("a", timeout=timedelta(seconds=0.1))) == (
        "'a' is held by others, and was for all of the 0.1 s"
    )
    lock.release()

    async def tries() -> None:
        async with client.alock("a", timeout=0):
            await client.alock("a", timeout=0)

    assert text_of(lambda: asyncio.run(tries())) == (
        "'a' is held by this client itself, and timeout is 0"
    )


def test_a_candidate_is_told_that_its_client_leads_itself(client, other):
    election = client.election("e", candidate="one")
    term = election.campaign()
    here = "this client itself leads 'e'"
    assert text_of(lambda: election.campaign(timeout=0.1)) == f"{here}, and did for all of the 0.1 s"
    assert text_of(lambda: election.campaign(timeout=0)) == f"{here}, and timeout is 0"
    again = client.election("e", candidate="two")
    assert in_thread(lambda: text_of(lambda: again.campaign(timeout=0.1))).startswith(here)
    elsewhere = other.election("e")
    there = "another candidate leads 'e'"
    assert text_of(lambda: elsewhere.campaign(timeout=0.1)) == f"{there}, and did for all of the 0.1 s"
    assert text_of(lambda: elsewhere.campaign(timeout=0)) == f"{there}, and timeout is 0"
    with term:
        with pytest.raises(redlatch.AlreadyHeld, match=f"^{here}, in a block that this thread is in"):
            election.campaign(timeout=60)


def warnings(caplog):
    """Those about threads that wait for themselves. Servers of other tests end meanwhile."""
    event = "held_by_this_thread"
    records = [it for it in caplog.records if getattr(it, "redlatch_event", None) == event]
    assert all(record.levelno == logging.WARNING for record in records)
    return [record.getMessage() for record in records]


def test_a_thread_that_waits_for_its_own_lock_is_logged_once(client, other, caplog):
    first = client.lock("a")
    assert client.try_lock("a") is None
    # In the main thread, which waits in another one; and in one of its own.
    told = "'a' is waited for by the thread that took it"
    assert client.try_lock("a", timeout=0.2) is None
    until(lambda: warnings(caplog) == [told])
    first.release()

    def own() -> None:
        with_limit = client.lock("a", timeout=30)
        assert client.try_lock("a", timeout=0.2) is None
        with_limit.release()

    in_thread(own)
    until(lambda: warnings(caplog) == [told] * 2)
    # A lock that the main thread got after it had waited is its own as well.
    held = other.lock("a")
    threading.Timer(0.2, held.release).start()
    lock = client.lock("a", timeout=30)
    assert client.try_lock("a", timeout=0.2) is None
    until(lambda: warnings(caplog) == [told] * 3)
    in_thread(lambda: client.try_lock("a", timeout=0.2))
    assert warnings(caplog) == [told] * 3
    lock.release()


def test_tasks_that_wait_for_each_other_are_not_logged(client, caplog):
    async def both() -> None:
        async def work() -> None:
            async with client.alock("a"):
                await asyncio.sleep(0.05)

        await asyncio.gather(*(work() for _ in range(5)))

    asyncio.run(both())
    with client.lock("a"):
        assert warnings(caplog) == []


def test_an_inspection_shows_the_threads_of_its_own_client(client, other):
    nobody = redlatch.OwnThreads(None, 0, None)
    assert client.inspect("a").own_threads == nobody
    lock = client.lock("a")
    wait = lambda: client.lock("a").release()  # noqa: E731
    threads = [threading.Thread(target=wait) for _ in range(5)]
    for thread in threads:
        thread.start()
    until(lambda: client.inspect("a").own_threads.waiting == 5)
    own = client.inspect("a").own_threads
    assert own.holder == "this_thread" and own.longest_wait and own.longest_wait > 0
    assert in_thread(lambda: client.inspect("a").own_threads.holder) == "other_thread"
    assert other.inspect("a").own_threads == nobody
    lock.release()
    for thread in threads:
        thread.join(60)
    assert client.inspect("a").own_threads == nobody
