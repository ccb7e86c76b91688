"""Kazoo clients that share a lock: each takes it so often, and prints when it held it.

Arguments: hosts, the path of the lock, the layout, the number of clients and of grants for each.
It says "ready" when all are connected, and begins when it is sent a line. Each line of the output
behind it has the nanoseconds of the monotonic clock at which a hold began and ended.
"""

import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock


class CuratorLock(Lock):
    """A lock with the names of Curator."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


def contend(client, path, layout, grants, holds):
    for _ in range(grants):
        lock = layout(client, path)
        lock.acquire(timeout=60)
        begin = time.monotonic_ns()
        time.sleep(0.001)
        holds.append((begin, time.monotonic_ns()))
        lock.release()
    client.stop()


def main():
    hosts, path, layout, clients, grants = sys.argv[1:]
    layouts = {"curator": CuratorLock, "kazoo": Lock}
    holds = []
    threads = []
    for _ in range(int(clients)):
        client = KazooClient(hosts=hosts)
        client.start(timeout=60)
        arguments = (client, path, layouts[layout], int(grants), holds)
        threads.append(threading.Thread(target=contend, args=arguments))
    print("ready", flush=True)
    sys.stdin.readline()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for begin, end in holds:
        print(begin, end)


main()
