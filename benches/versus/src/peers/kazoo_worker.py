"""kazoo as a worker: the orders and answers of work.rs. Its argument is `host:port,host:port`."""

import json
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
    order = json.loads(line)
    assert order["kind"] == "Contended"
    lock = locks.setdefault(order["prefix"], client.Lock("/kazoo/" + order["prefix"]))
    records = []
    sleep_until(order["start"])
    cpu = time.process_time_ns()
    asked = time.monotonic_ns()
    while asked < order["end"]:
        assert lock.acquire()
        record = {"asked": asked, "granted": time.monotonic_ns()}
        time.sleep(order["hold"] / 1e9)
        record["releasing"] = time.monotonic_ns()
        assert lock.release()
        record["released"] = time.monotonic_ns()
        record["note"] = {"permit": None, "unknown": 0}
        records.append(record)
        sleep_until(asked + order["every"])
        asked = time.monotonic_ns()
    cpu = time.process_time_ns() - cpu
    print(json.dumps({"cpu": cpu, "clients": [records]}), flush=True)

client.stop()
