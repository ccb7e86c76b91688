"""A lock of another library, as the lines that it reads want it.

Arguments: the library, the lock's name, its ttl in seconds, and the ports of the servers, of which
libraries for one server use the first. It says "ready", or "missing" and why the library cannot be
imported. Then it answers each line:

    try      takes the lock if it is free: True or False
    wait     waits for the lock, however long that takes: True
    release  gives it back: None
"""

import sys


def redlock_py(name, ttl, ports):
    from redlock import Redlock

    servers = [{"host": "127.0.0.1", "port": port} for port in ports]
    once = Redlock(servers, retry_count=1)
    patient = Redlock(servers, retry_count=sys.maxsize)
    held = []

    def take(library):
        lock = library.lock(name, ttl * 1000)
        held[:] = [lock]
        return bool(lock)

    return {
        "try": lambda: take(once),
        "wait": lambda: take(patient),
        "release": lambda: once.unlock(held.pop()),
    }


def pottery(name, ttl, ports):
    from pottery import Redlock
    from redis import Redis

    masters = {Redis(port=port) for port in ports}
    lock = Redlock(key=name, masters=masters, auto_release_time=ttl)
    return {
        "try": lambda: lock.acquire(blocking=False),
        "wait": lock.acquire,
        "release": lock.release,
    }


def python_redis_lock(name, ttl, ports):
    from redis import Redis
    from redis_lock import Lock

    # Its wait is one command, which may take longer than the client's own limit.
    lock = Lock(Redis(port=ports[0], socket_timeout=None), name, expire=ttl)
    return {
        "try": lambda: lock.acquire(blocking=False),
        "wait": lock.acquire,
        "release": lock.release,
    }


def redis_py(name, ttl, ports):
    from redis import Redis

    lock = Redis(port=ports[0]).lock(name, timeout=ttl)
    return {
        "try": lambda: lock.acquire(blocking=False),
        "wait": lock.acquire,
        "release": lock.release,
    }


def main():
    library, name, ttl, *ports = sys.argv[1:]
    makers = {
        "redlock-py": redlock_py,
        "pottery": pottery,
        "python-redis-lock": python_redis_lock,
        "redis-py": redis_py,
    }
    try:
        calls = makers[library](name, int(ttl), [int(port) for port in ports])
    except ImportError as error:
        print("missing", error, flush=True)
        return
    print("ready", flush=True)
    for line in sys.stdin:
        print(calls[line.strip()](), flush=True)


main()
