"""What is asked for, as the native calls take it: names, times and options."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Iterable, NamedTuple, Union, cast

from . import _native
from ._errors import ConfigError, LockTimeout

Seconds = Union[float, timedelta]
Name = Union[str, bytes]
Names = Union[Name, Iterable[Name]]

#: The ttl of locks that none is given for, in seconds: as long as in the description of Redlock.
TTL = 10.0
#: What nodes are, for who passes something else. That is not shown: it may have a password.
URL = 'a node is a URL, such as "redis://10.0.0.1", as str'
#: As long does one attempt take with the default settings, on ZooKeeper, where it takes longest.
ATTEMPT_LIMIT = 4.0


class Request(NamedTuple):
    """What is asked for. The options are those of :meth:`redlatch.Client.lock`, in its order."""

    names: Name | list[Name]
    ttl: Seconds
    keep_alive: bool
    fenced: bool
    shared: bool
    one_of: int | None
    owner: Name | None
    min_validity: Seconds | None
    max_hold: Seconds | None
    hold_at_least: Seconds | None

    def of(self, names: Names) -> Request:
        """The same of other names."""
        return self._replace(names=listed(names))


def listed(name: Names, needed: str = "a name is str or bytes") -> Name | list[Name]:
    """Names that may be read more than once: an attempt may need a second call."""
    if isinstance(name, (str, bytes)):
        return name
    try:
        return list(name)
    except TypeError as error:
        kind = "None" if name is None else type(name).__name__
        raise ConfigError(f"{needed}, or a list of such, not {kind}") from error


def timed_out(
    client: _native.Client,
    request: Request,
    timeout: Seconds | None,
    thread: _native.CallingThread | None,
) -> LockTimeout:
    """The error of a wait that has ended. It says whether ``thread``, or another one of the client,
    holds the lock, or whether other data has its name."""
    names = request.names
    own, other_data = client.obstacle(thread=thread, **request._asdict())
    if own is None and other_data:
        return LockTimeout(
            f"{names!r} is not a lock: {other_data}, {for_all_of(timeout, 'and was none')}"
        )
    by = {"this_thread": "this thread itself", "other_thread": "this client itself"}
    return LockTimeout(
        f"{names!r} is held by {by.get(own or '', 'others')}, {for_all_of(timeout, 'and was')}"
    )


def for_all_of(timeout: Seconds | None, what: str) -> str:
    """The words of an error for how long this was so."""
    limit = _native.limit(timeout)
    return f"{what} for all of the {limit:g} s" if limit else "and timeout is 0"


def urls(nodes: str | Iterable[str] | _native.Nodes | _native.Ensemble) -> list[str]:
    """The URLs of a client's nodes."""
    if isinstance(nodes, _native.Nodes):
        return nodes.urls
    if isinstance(nodes, (str, _native.Ensemble)):
        return [nodes if isinstance(nodes, str) else nodes.url]
    return cast("list[str]", listed(nodes, URL))


def attempt_limit(settings: dict[str, Any]) -> float:
    """For how long one attempt may take if nodes are silent. More than that does no harm."""
    node_timeout = _native.limit(settings.get("node_timeout"))
    longest = [_native.limit(settings.get("connect_timeout")), 10 * (node_timeout or 0)]
    longest += [_native.limit(settings.get("session_timeout")), ATTEMPT_LIMIT]
    return max(limit or 0 for limit in longest)
