"""Elections of a leader."""

from __future__ import annotations

from . import _native
from ._blocks import refuse_own
from ._errors import LockTimeout
from ._native import Lock
from ._request import Name, Seconds
from ._views import Holder
from ._waiting import wait


class Election:
    """See :meth:`redlatch.Client.election`."""

    def __init__(
        self, client: _native.Client, name: Name, candidate: Name | None, ttl: Seconds
    ) -> None:
        self._client, self._name, self._candidate, self._ttl = client, name, candidate, ttl

    def campaign(self, *, timeout: Seconds | None = None) -> Lock:
        """Waits until this candidate leads: for as long as it has the lock that is returned.

        ``fencing_token`` is the number of its term, ``ensure_held`` raises if it leads no more, and
        ``release`` or the end of a ``with`` block resigns. Raises :class:`LockTimeout` if another
        one leads after ``timeout``.
        """
        if _native.limit(timeout) != 0:
            refuse_own(self._client, self._name)
        lock = wait(
            lambda cancel: _native.campaign(
                self._client, self._name, self._candidate, self._ttl, timeout, cancel
            )
        )
        if lock is None:
            raise LockTimeout(f"another candidate leads {self._name!r}, and did for {timeout} s")
        return lock

    def leader(self) -> Holder | None:
        """Who leads; its ``owner`` is the name of the candidate."""
        return _native.leader(self._client, self._name)
