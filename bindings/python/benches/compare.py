"""Compares redlatch with other libraries of Python that lock by Redis, in one run.

    pip install redlatch redlock-py pottery python-redis-lock redis
    python benches/compare.py [rounds]

Three redis-servers of its own, on this machine. Rows marked with 1 lock on the first of them alone.
The libraries take turns, and each figure is the median of the rounds. What a library does not wait
for by itself is asked for in a loop, with the pause that it has by default.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable

TTL = 2
WAITERS = 8
WORK = 0.02
PAUSE = 0.03
Take = Callable[[str], Callable[[], Any]]


def redlatch(ports: list[int]) -> Take:
    import redlatch

    urls = [f"redis://127.0.0.1:{port}" for port in ports]
    client = redlatch.Client(urls, restart_guard=False)
    return lambda name: client.lock(name, TTL).release


def redlock_py(ports: list[int]) -> Take:
    from redlock import Redlock

    locks = Redlock([{"host": "127.0.0.1", "port": port} for port in ports])

    def take(name: str) -> Callable[[], Any]:
        while not (lock := locks.lock(name, TTL * 1000)):
            pass  # it has paused three times by itself
        return lambda: locks.unlock(lock)

    return take


def pottery(ports: list[int]) -> Take:
    from pottery import Redlock
    from redis import Redis

    masters = {Redis(port=port) for port in ports}

    def take(name: str) -> Callable[[], Any]:
        lock = Redlock(key=name, masters=masters, auto_release_time=TTL)
        lock.acquire()
        return lock.release

    return take


def redis_lock(ports: list[int]) -> Take:
    import redis_lock
    from redis import Redis

    server = Redis(port=ports[0])

    def take(name: str) -> Callable[[], Any]:
        lock = redis_lock.Lock(server, name, expire=TTL)
        lock.acquire()
        return lock.release

    return take


def redis_py(ports: list[int]) -> Take:
    from redis import Redis

    server = Redis(port=ports[0])

    def take(name: str) -> Callable[[], Any]:
        lock = server.lock(name, timeout=TTL)
        lock.acquire()
        return lock.release

    return take


LIBRARIES = {
    "redlatch": redlatch,
    "redlock-py": redlock_py,
    "pottery": pottery,
    "python-redis-lock (1)": redis_lock,
    "redis-py (1)": redis_py,
}


def pairs(make: Callable[[list[int]], Take], ports: list[int]) -> dict[str, float]:
    """Locks taken and released each second, one after another."""
    take = make(ports)
    take("warm")()
    count, began = 0, time.monotonic()
    while time.monotonic() - began < 1:
        take("pairs")()
        count += 1
    return {"pairs/s": count / (time.monotonic() - began)}


def work(library: str, ports: list[int], number: int, ready: Any, begin: Any, done: Any) -> None:
    take = LIBRARIES[library](ports)
    take(f"warm {number}")()
    ready.put(number)
    while begin.value == 0 or time.monotonic() < begin.value + PAUSE * number:
        time.sleep(0.001)
    release = take("queue")
    taken = time.monotonic()
    time.sleep(WORK)
    ended = time.monotonic()
    release()
    done.put((taken, ended, number))


def queue(library: str, ports: list[int]) -> dict[str, float]:
    """How far from the order in which they came waiting processes are served, of the 28 pairs of
    them, and how long a free lock waits for the next one."""
    context = multiprocessing.get_context("spawn")
    ready, done, begin = context.Queue(), context.Queue(), context.Value("d", 0.0)
    take = LIBRARIES[library](ports)
    processes = []
    for number in range(WAITERS):
        arguments = (library, ports, number, ready, begin, done)
        processes.append(context.Process(target=work, args=arguments))
        processes[-1].start()
    for _ in processes:
        ready.get()
    release = take("queue")
    begin.value = time.monotonic()
    time.sleep(PAUSE * (WAITERS + 2))
    ends = [time.monotonic()]
    release()
    served = sorted(done.get() for _ in processes)
    for process in processes:
        process.join()
    order = [number for _, _, number in served]
    inversions = sum(a > b for i, a in enumerate(order) for b in order[i + 1 :])
    ends += [end for _, end, _ in served]
    gaps = [1000 * (taken - end) for end, (taken, _, _) in zip(ends, served)]
    return {
        "inversions": inversions,
        "handover ms": statistics.median(gaps),
        "longest ms": max(gaps),
    }


def hold(library: str, ports: list[int], ready: Any) -> None:
    kept = LIBRARIES[library](ports)("killed")
    ready.put(os.getpid())
    time.sleep(60)
    kept()


def killed(library: str, ports: list[int]) -> dict[str, float]:
    """How long a waiter waits for a lock after its holder was killed, with a ttl of two seconds."""
    context = multiprocessing.get_context("spawn")
    ready = context.Queue()
    take = LIBRARIES[library](ports)
    take("warm")()
    holder = context.Process(target=hold, args=(library, ports, ready))
    holder.start()
    os.kill(ready.get(), signal.SIGKILL)
    began = time.monotonic()
    take("killed")()
    holder.join()
    return {"after a kill s": time.monotonic() - began}


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    ports, servers = [], []
    program = shutil.which("redis-server") or shutil.which("valkey-server") or "redis-server"
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(3):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                ports.append(probe.getsockname()[1])
            command = [program, "--port", str(ports[-1]), "--save", "", "--dir", folder]
            servers.append(subprocess.Popen([*command, "--logfile", "server.log"]))
        try:
            time.sleep(1)
            measure(rounds, ports)
        finally:
            for server in servers:
                server.kill()
                server.wait()


def measure(rounds: int, ports: list[int]) -> None:
    figures: dict[str, dict[str, list[float]]] = {name: {} for name in LIBRARIES}
    for _ in range(rounds):
        for name, make in LIBRARIES.items():
            for found in (pairs(make, ports), queue(name, ports), killed(name, ports)):
                for what, figure in found.items():
                    figures[name].setdefault(what, []).append(figure)
    columns = list(figures["redlatch"])
    print(f"load {os.getloadavg()[0]:.1f}, {rounds} rounds")
    print("| library | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
    for name, found in figures.items():
        medians = [f"{statistics.median(found[what]):.4g}" for what in columns]
        print(f"| {name} | " + " | ".join(medians) + " |")


if __name__ == "__main__":
    main()
