"""kazoo as a contender: the orders and records of contender.rs, in the order of their fields.

Its arguments are `lock` or the number of permits, and the servers, `host:port,host:port`.
"""

import random
import sys
import time

from kazoo.client import KazooClient

kind, hosts = sys.argv[1:]
client = KazooClient(hosts=hosts)
client.start(timeout=120)
print("ready", flush=True)

resources = {}


def resource(name):
    if name not in resources:
        if kind == "lock":
            resources[name] = client.Lock("/kazoo/" + name)
        else:
            resources[name] = client.Semaphore("/kazoo/" + name, max_leases=int(kind))
    return resources[name]


def sleep_until(end):
    time.sleep(max(0, end - time.monotonic_ns()) / 1e9)


for line in sys.stdin:
    name, *numbers = line.split()
    start, end, hold, pause, every, asks = map(int, numbers)
    lock = resource(name)
    records = []
    sleep_until(start)
    asked = time.monotonic_ns()
    while asked < end and len(records) < asks:
        assert lock.acquire()
        granted = time.monotonic_ns()
        if hold:
            time.sleep(hold / 1e9)
        releasing = time.monotonic_ns()
        assert lock.release()
        released = time.monotonic_ns()
        records.append(f"{asked}:{granted}:{releasing}:{released}:0:0")
        if pause:
            time.sleep(random.random() * pause / 1e9)
        sleep_until(asked + every)
        asked = time.monotonic_ns()
    print(" ".join(records), flush=True)

client.stop()
