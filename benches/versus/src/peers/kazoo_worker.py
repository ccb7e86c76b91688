"""kazoo as a worker: the orders and answers of work.rs. Its argument is `host:port,host:port`."""

import sys
import time

from kazoo.client import KazooClient

client = KazooClient(hosts=sys.argv[1])
client.start(timeout=120)
print("ready", flush=True)

locks = {}


def sleep_until(end):
    time.sleep(max(0, end - time.monotonic_ns()) / 1e9)


for line in sys.stdin:
    kind, prefix, *numbers = line.split()
    start, end, hold, every = map(int, numbers)
    assert kind == "Contended"
    lock = locks.setdefault(prefix, client.Lock("/kazoo/" + prefix))
    records = []
    sleep_until(start)
    cpu = time.process_time_ns()
    asked = time.monotonic_ns()
    while asked < end:
        assert lock.acquire()
        granted = time.monotonic_ns()
        time.sleep(hold / 1e9)
        releasing = time.monotonic_ns()
        assert lock.release()
        released = time.monotonic_ns()
        times = (asked, granted - asked, releasing - granted, released - releasing)
        records.append(":".join(map(str, times)) + ":0:0")
        sleep_until(asked + every)
        asked = time.monotonic_ns()
    print(time.process_time_ns() - cpu, " ".join(records), sep=";", flush=True)

client.stop()
