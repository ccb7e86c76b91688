"""Compares redlatch's lock for asyncio with that of redis.asyncio, in one run.

    pip install redlatch redis
    python benches/tasks.py [rounds]

One redis-server of its own, on this machine. All tasks begin at once, and each takes a lock, holds
it for no time and releases it. The libraries take turns, and each figure is the median of the
rounds; a ratio is that of the round, redlatch's time to redis-py's.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from typing import Any, AsyncContextManager, AsyncIterator, Callable

TTL = 10
#: How many tasks, and on how many locks.
SHAPES = {
    "one, 200 times": (1, 1),
    "100 tasks on 100 locks": (100, 100),
    "100 tasks on 1 lock": (100, 1),
    "1000 tasks on 1000 locks": (1000, 1000),
    "1000 tasks on 10 locks": (1000, 10),
}
#: How often each of them does it.
TURNS = {"one, 200 times": 200}
Make = Callable[[str], AsyncContextManager[Any]]


@asynccontextmanager
async def redlatch(port: int) -> AsyncIterator[Make]:
    import redlatch

    client = redlatch.Client(f"redis://127.0.0.1:{port}", restart_guard=False)
    yield lambda name: client.alock(name, TTL)


@asynccontextmanager
async def redis_py(port: int) -> AsyncIterator[Make]:
    from redis.asyncio import Redis

    # As many connections as there are tasks: by default, 100 are an error for the next one.
    server = Redis(port=port, max_connections=2000)
    yield lambda name: server.lock(name, timeout=TTL)
    await server.aclose()


LIBRARIES = {"redlatch": redlatch, "redis-py": redis_py}


async def seconds(library: str, port: int, shape: str) -> float:
    """For how long all tasks take, after a first time on other locks, for which connections and
    threads are made."""
    tasks, locks = SHAPES[shape]
    inside = [0] * locks

    async def work(make: Make, kind: str, number: int) -> None:
        for _ in range(TURNS.get(shape, 1)):
            async with make(f"{shape}, {kind} {number}"):
                inside[number] += 1
                assert inside[number] == 1, "two tasks hold one lock"
                await asyncio.sleep(0)
                inside[number] -= 1

    async with LIBRARIES[library](port) as make:
        inside *= tasks // locks
        await asyncio.gather(*(work(make, "warm", number) for number in range(tasks)))
        began = time.monotonic()
        await asyncio.gather(*(work(make, "measured", number % locks) for number in range(tasks)))
        return time.monotonic() - began


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = shutil.which("redis-server") or shutil.which("valkey-server") or "redis-server"
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--port", str(port), "--save", "", "--dir", folder]
        server = subprocess.Popen([*command, "--logfile", "server.log"])
        try:
            time.sleep(1)
            measure(rounds, port)
        finally:
            server.kill()
            server.wait()


def measure(rounds: int, port: int) -> None:
    print(f"load {os.getloadavg()[0]:.1f}, {rounds} rounds")
    print("| tasks | redlatch, ms | redis-py, ms | ratio |\n|---|---:|---:|---:|")
    for shape in SHAPES:
        figures: dict[str, list[float]] = {name: [] for name in LIBRARIES}
        for _ in range(rounds):
            for name in LIBRARIES:
                figures[name].append(asyncio.run(seconds(name, port, shape)))
        ratios = [ours / theirs for ours, theirs in zip(*figures.values())]
        medians = [f"{1000 * statistics.median(found):.4g}" for found in figures.values()]
        print(f"| {shape} | {' | '.join(medians)} | {statistics.median(ratios):.2f} |", flush=True)


if __name__ == "__main__":
    main()
