"""From a URL to a store, and from a path of the log to a store and a key."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from twinlake.errors import Code, UserError
from twinlake.storage.interface import Reopenable
from twinlake.storage.local import LocalStore
from twinlake.storage.memory import MemoryStore
from twinlake.storage.object_store import ObjectStore
from twinlake.storage.paths import (
    ALIASES,
    Location,
    decode_path,
    locate,
    normal_segments,
    parse_location,
    split_scheme,
    unsafe_path,
)

if TYPE_CHECKING:
    from twinlake.storage.interface import Store

__all__ = ["Opener", "open_store", "register_scheme", "resolve", "schemes"]

Opener = Callable[[Location, bool, Mapping[str, Any]], "Store"]
"""Makes a store from a place, whether to sync, and options."""

_shared_memory: dict[str, MemoryStore] = {}
_shared_memory_lock = threading.Lock()


def _open_local(location: Location, durable: bool, options: Mapping[str, Any]) -> Store:
    if options:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{location.url} takes no options.",
            why=f"given: {', '.join(sorted(options))}",
            fix="Leave the options out for a folder of the file system.",
            fields={"url": location.url, "options": sorted(options)},
        )
    return LocalStore(location.url, durable=durable)


def _open_memory(location: Location, durable: bool, options: Mapping[str, Any]) -> Store:
    del durable, options  # memory has neither
    with _shared_memory_lock:
        shared = _shared_memory.setdefault(location.authority, MemoryStore(location.authority))
    return shared.reopen(location.url) if location.path else shared


def _open_object_store(location: Location, durable: bool, options: Mapping[str, Any]) -> Store:
    del durable  # an object store acknowledges only what it keeps
    return ObjectStore(location.url, options=options)


_OPENERS: dict[str, Opener] = {
    "file": _open_local,
    "memory": _open_memory,
    **dict.fromkeys(("s3", "gs", "az", "abfss"), _open_object_store),
}


def schemes() -> tuple[str, ...]:
    """Every scheme that ``open_store`` takes."""
    return tuple(sorted(ALIASES))


def register_scheme(name: str, opener: Opener, *, aliases: tuple[str, ...] = ()) -> None:
    """Teach ``open_store`` one more kind of URL."""
    for spelling in (name, *aliases):
        ALIASES[spelling.lower()] = name
    _OPENERS[name] = opener


def open_store(
    url_or_path: str | os.PathLike[str],
    *,
    durable: bool = True,
    options: Mapping[str, Any] | None = None,
) -> Store:
    """The store at a plain path or at a URL of one of ``schemes()``.

    ``durable`` makes a local store sync what it writes. ``options`` are the settings of
    an object store. Stores of one ``memory://name`` share their objects within the process.

    >>> open_store("memory://docs").url
    'memory://docs'
    """
    location = parse_location(os.fspath(url_or_path))
    return _OPENERS[location.scheme](location, durable, options or {})


def resolve(store: Store, encoded_path: str, *, allow_outside: bool = True) -> tuple[Store, str]:
    """The store and the key that a path of the log means, seen from the table's own store.

    A relative path is below the table. An absolute one below the table maps to the same
    store; any other opens its own at the root of the bucket or file system, or is
    refused if ``allow_outside`` is false. ``..`` must not leave the root.

    >>> store = open_store("memory://docs/t")
    >>> resolve(store, "day=1%20May/x.parquet")[1]
    'day=1 May/x.parquet'
    """
    decoded = decode_path(encoded_path)
    # The scheme is judged on the text as written: an encoded colon is part of a name.
    scheme = split_scheme(encoded_path)
    if scheme is None and not encoded_path.startswith("/"):
        return store, normal_segments(decoded, original=encoded_path)
    home = parse_location(store.url)
    place = locate(home, encoded_path)
    key = home.relative(place)
    if key is not None:
        return store, key
    if not place.path or not allow_outside:
        why = "it is outside the table" if place.path else "it names no file"
        raise unsafe_path(encoded_path, why)
    return _elsewhere(store, home, place.root.url, place.scheme), place.path


def _elsewhere(store: Store, home: Location, root: str, scheme: str) -> Store:
    if scheme == home.scheme and isinstance(store, Reopenable):
        return store.reopen(root)
    return _foreign_store(root)


@functools.lru_cache(maxsize=64)
def _foreign_store(root: str) -> Store:
    return open_store(root)
