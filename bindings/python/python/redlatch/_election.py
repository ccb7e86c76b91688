"""Elections of a leader."""

from __future__ import annotations

from . import _native
from ._blocks import refuse_own
from ._errors import AlreadyHeld, LockTimeout
from ._native import Lock
from ._request import Name, Seconds, for_all_of
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
        one leads after ``timeout``, or this client itself, as the text says then.
        """
        # One for all of the call: a redirect may end meanwhile, and the program's own nodes must
        # not be asked then.
        client = self._client.asked()
        if _native.limit(timeout) != 0:
            try:
                refuse_own(client, self._name)
            except AlreadyHeld:
                raise AlreadyHeld(
                    f"this client itself leads {self._name!r}, in a block that this thread is in: "
                    "another term would wait for the end of this one"
                ) from None
        candidacy = _native.Candidacy(client, self._name, self._candidate, self._ttl, timeout)
        lock = wait(candidacy.start, candidacy.campaign)
        if lock is None:
            own, _ = client.obstacle(self._name, self._ttl, shared=False)
            leader = "another candidate" if own is None else "this client itself"
            raise LockTimeout(f"{leader} leads {self._name!r}, {for_all_of(timeout, 'and did')}")
        return lock

    def leader(self) -> Holder | None:
        """Who leads; its ``owner`` is the name of the candidate."""
        return _native.leader(self._client, self._name)
