"""The exceptions. Each text includes what the nodes have said; none shows a password.

The arguments of each are all that it says, as values that JSON has: of these, task queues such as
Celery make it anew in another process.
"""

from __future__ import annotations

from typing import Iterable

from ._views import NodeReport


class RedlatchError(Exception):
    """The base of all exceptions of this package."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ConfigError(RedlatchError, ValueError):
    """A setting, a URL, a name, a ttl or a token cannot be used. Trying again is of no use."""


class NoQuorum(RedlatchError):
    """Too few nodes gave an answer that counts: whether the lock is free is not known.

    That others hold the lock is not an error of this kind. Of ``extend``: the lock is held as before,
    until ``remaining`` has passed. Of ``release``: the nodes that could not be reached end the
    lock with its ttl.
    """

    #: What each node has answered.
    reports: list[NodeReport]
    #: How many answers would have counted as a majority, and how many counted.
    needed: int
    answered: int
    #: For how many seconds nodes that restarted do not count yet; ``None`` if that is not why.
    quarantine: float | None

    def __init__(
        self,
        text: str,
        reports: Iterable[NodeReport | tuple[str, str, bool, bool]] = (),
        needed: int = 0,
        answered: int = 0,
        quarantine: float | None = None,
    ) -> None:
        self.reports = [NodeReport(*report) for report in reports]
        super().__init__(text, self.reports, needed, answered, quarantine)
        self.needed, self.answered, self.quarantine = needed, answered, quarantine


class LockLost(RedlatchError):
    """The lock was held and is not any more: somebody else may hold it.

    What was done since ``ensure_held`` last returned may have run beside another holder.
    """

    #: ``"expired"``: its time has passed, as the nodes could not be reached or this process was
    #: stopped, or it was kept alive for as long as ``max_hold`` allows. ``"gone"``: the nodes do
    #: not have it any more. ``"other_process"``: it is its parent's.
    reason: str

    def __init__(self, text: str, reason: str = "other") -> None:
        super().__init__(text, reason)
        self.reason = reason


class LockTimeout(RedlatchError, TimeoutError):
    """The lock was held for all of the time that was to be waited: by others, or, as the text says
    then, by this thread or this client itself."""


class AlreadyHeld(RedlatchError):
    """The lock is held by a ``with`` statement that the calling thread is in, of the same client:
    the call would have waited for ever. Under gevent a greenlet counts as a thread, and of
    :meth:`Client.alock` a task. Or this :class:`Lock` itself is in a block already, of whatever
    thread, and would have been released by the end of a second one."""


class Cancelled(RedlatchError):
    """``Client.cancel`` was called, or the interpreter ends."""


class OtherProcess(RedlatchError):
    """The lock was taken by the process that this one was forked from, and is not held here."""


class RegisterError(RedlatchError):
    """A register could not be read or changed."""

    #: Whether the change may have been made all the same.
    may_have_happened: bool

    def __init__(self, text: str, may_have_happened: bool = False) -> None:
        super().__init__(text, may_have_happened)
        self.may_have_happened = may_have_happened
