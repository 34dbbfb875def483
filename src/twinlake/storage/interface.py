"""What twinlake asks of a store: bytes under keys, with an atomic create.

Keys are relative to the store's root, decoded (never URL-encoded) and use ``/``.
Conditional create is the one primitive that commits stand on. A store's answer is one of
three values, because "unknown" is a real answer of an object store: the reply may be lost
after the effect.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from twinlake.errors import StorageError

__all__ = [
    "Committed",
    "Configured",
    "Conflict",
    "CreateOutcome",
    "Durable",
    "ObjectMeta",
    "OnDisk",
    "Reopenable",
    "Store",
    "StoreConfig",
    "Unknown",
    "store_config",
]


@dataclass(frozen=True, slots=True)
class Committed:
    """The object was created by this call."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """The store says an object is already there.

    It may be our own, written by an attempt whose reply was lost: settle by reading it back.
    """


@dataclass(frozen=True, slots=True)
class Unknown:
    """The store failed in a way that leaves open whether the object was created.

    ``refusal`` is set where the store clearly said no (no permission, no such bucket): then
    *this* call created nothing, though an earlier one may have.
    """

    reason: str
    refusal: StorageError | None = field(default=None, compare=False)


CreateOutcome = Committed | Conflict | Unknown


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """One object of a listing."""

    key: str
    size: int
    modified_ms: int
    e_tag: str | None = None
    """Another one when the content changes, as far as the store can tell; None without any."""


class Store(Protocol):
    """Bytes under keys. Every method may raise ``StorageError``."""

    @property
    def url(self) -> str:
        """The root, as a URL without credentials and without a trailing slash."""
        ...

    def read(self, key: str) -> bytes:
        """The whole object; ``StorageError`` with code STORAGE_NOT_FOUND if there is none."""
        ...

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """At most ``length`` bytes from ``start``."""
        ...

    def head(self, key: str) -> ObjectMeta | None:
        """Size and time of one object, or None if there is none."""
        ...

    def list_from(self, folder: str, start_after: str = "") -> Iterator[ObjectMeta]:
        """The objects directly or deeply below ``folder/`` whose key sorts after ``start_after``.

        ``start_after`` is a full key (``folder/name``). Ascending by key.
        """
        ...

    def create(self, key: str, data: bytes) -> CreateOutcome:
        """Create the object if and only if none is there; never a partial object."""
        ...

    def put(self, key: str, *pieces: bytes | memoryview) -> None:
        """Create or replace the object, atomically; its bytes may come in pieces."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; one that is not there counts as deleted."""
        ...


@runtime_checkable
class Reopenable(Protocol):
    """A store that can open another root of its kind with its own settings."""

    def reopen(self, url: str) -> Store:
        """A store rooted at ``url``, which has the same scheme."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """What another process opens the same store by; it can be pickled."""

    url: str
    durable: bool = True
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The settings of an object store, secrets among them."""


@runtime_checkable
class Configured(Protocol):
    """A store that takes more than its URL to be opened elsewhere."""

    @property
    def config(self) -> StoreConfig:
        """How to open this store in another process."""
        ...


def store_config(store: Store) -> StoreConfig:
    """How to open a store in another process; its URL says all unless it says more itself."""
    return store.config if isinstance(store, Configured) else StoreConfig(url=store.url)


@runtime_checkable
class OnDisk(Protocol):
    """A store whose objects are files that other code may open by path."""

    def local_path(self, key: str) -> str:
        """The path of the object in the file system."""
        ...


@runtime_checkable
class Durable(Protocol):
    """A store that can be asked to bring an object that is there to safety."""

    def sync(self, key: str) -> None:
        """Return once the object would survive a power cut, as far as the store promises that."""
        ...
