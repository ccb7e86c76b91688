"""The blocking calls, in Rust."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Callable, final

from typing_extensions import Self

from ._request import Seconds
from ._views import Holder, Inspection, NodeStatus, OncePerRun, Value

_Name = str | bytes

__version__: str

@final
class CallingThread: ...

@final
class CancelToken:
    def cancel(self) -> None: ...

@final
class Callback:
    def begin(self) -> None: ...

@final
class Records:
    def next(self) -> tuple[int, str, str] | None: ...

@final
class Version:
    def __new__(cls, number: int) -> Self: ...
    def __getnewargs__(self) -> tuple[int]: ...

@final
class Seen: ...

@final
class Client:
    def __new__(cls, nodes: list[str], **settings: Any) -> Self: ...
    def acquire(
        self,
        names: _Name | list[_Name],
        ttl: Seconds,
        wait: Seconds | None,
        cancelled_by: CancelToken | None,
        log_calls: bool,
        goes_on: bool,
        shared: bool,
        **request: Any,
    ) -> Lock | None: ...
    @property
    def made_of(self) -> tuple[list[str], dict[str, Any]]: ...
    @property
    def id(self) -> int: ...
    def obstacle(
        self, names: _Name | list[_Name], ttl: Seconds, shared: bool, **request: Any
    ) -> tuple[str | None, str | None]: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...
    def asked(self) -> Client: ...
    def redirect(self, to: Client) -> None: ...
    def end_redirect(self, to: Client) -> None: ...

@final
class Lock:
    """A lock that is held: until it is released, lost, or not referred to any more, which a
    ``ResourceWarning`` tells."""

    @property
    def _client(self) -> int: ...
    @property
    def _is_shared(self) -> bool: ...
    def _begin_block(self) -> bool: ...
    def _leave_block(self) -> None: ...
    @property
    def _has_left_block(self) -> bool: ...
    @property
    def names(self) -> list[str | bytes]:
        """The names of the locks: one, unless several were taken at once."""
    @property
    def fencing_token(self) -> int | None:
        """The number by which a resource rejects a stale writer, if ``fenced`` was asked for."""
    @property
    def slot(self) -> int | None:
        """Which slot of ``one_of`` it is, from 0."""
    @property
    def remaining(self) -> float:
        """For how many seconds the lock is certainly held; 0 if it is not. Asks no node."""
    @property
    def is_held(self) -> bool: ...
    def ensure_held(self) -> None:
        """Raises ``LockLost`` if the lock is not held any more. Asks no node, and takes less than
        a microsecond: call it before each step that must not run twice."""
    def extend(self, ttl: Seconds) -> None:
        """Sets the rest of its time, of a lock that is not kept alive. Other threads that ask
        whether the lock is held wait for the end of this.

        Raises ``LockLost``; or ``NoQuorum``, and the lock is held as before.
        """
    def release(self) -> None:
        """Releases the lock on the nodes. Raises ``LockLost`` if it was lost before."""
    def let_expire(self) -> None:
        """Gives it up without releasing it: it ends with its ttl."""
    def into_token(self) -> str:
        """Gives the lock to another process, which calls ``Client.resume`` with this text."""
    def on_lost(self, callback: Callable[[Exception], object]) -> None:
        """Calls ``callback(error)`` in another thread as soon as the lock is lost, with the
        ``LockLost`` that ``ensure_held`` raises from then on."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

@final
class Register:
    """A value of up to 16 KiB that a majority of the nodes agrees on."""

    def get(self) -> Value | None: ...
    def set(self, new: bytes) -> None: ...
    def compare_and_set(self, seen: Version | None, new: bytes) -> bool:
        """Sets it if its version is still ``seen``; ``None``: if it has no value."""
    def write_fenced(self, token: int, new: bytes) -> bool:
        """Sets it unless somebody with a later fencing token did."""
    def delete(self) -> None: ...

@final
class Nodes:
    def __new__(cls, count: int) -> Self: ...
    @property
    def urls(self) -> list[str]: ...
    def stop(self, node: int) -> None: ...
    def restart(self, node: int) -> None: ...
    def pause(self, node: int) -> None: ...
    def resume(self, node: int) -> None: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_error: object) -> None: ...

@final
class Ensemble:
    @property
    def url(self) -> str: ...

@final
class OncePerCall:
    def __new__(
        cls,
        client: Client,
        name: _Name,
        period: Seconds,
        tolerance: Seconds | None,
        retry_failed: bool,
        exact: bool,
    ) -> Self: ...
    def next(self) -> OncePerRun | None: ...
    def tell(self, succeeded: bool) -> None: ...

def end(clients: Callable[[], list[Client]], limit: Seconds) -> None: ...
def forked() -> None: ...
def limit(timeout: Seconds | None) -> float | None: ...
def resume(
    client: Client, token: str, names: _Name | list[_Name], ttl: Seconds, shared: bool, **request: Any
) -> Lock: ...
def forget(client: Client, name: _Name, exact: bool) -> None: ...
def campaign(
    client: Client,
    name: _Name,
    candidate: _Name | None,
    ttl: Seconds,
    wait: Seconds | None,
    cancelled_by: CancelToken | None,
) -> Lock | None: ...
def leader(client: Client, name: _Name) -> Holder | None: ...
def register(client: Client, name: _Name) -> Register: ...
def form_registers(client: Client, in_memory: bool) -> None: ...
def inspect(client: Client, name: _Name) -> Inspection: ...
def force_release(client: Client, seen: Seen) -> bool: ...
def locks(client: Client, pattern: _Name) -> list[str | bytes]: ...
def nodes(client: Client) -> list[NodeStatus]: ...
