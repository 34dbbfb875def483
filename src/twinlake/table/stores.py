"""Stores of tables: one for each location, and whether there is a table in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from twinlake.storage import open_store, parse_location

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.storage import Store

__all__ = ["shared_store", "table_exists"]


@dataclass(frozen=True, slots=True)
class _StoreKey:
    """A store's location and settings: what two tables must share to share a store."""

    url: str
    durable: bool
    settings: bytes
    """The options as text, because their values may be mappings themselves."""
    options: Mapping[str, Any] = field(compare=False)


@lru_cache(maxsize=256)
def _cached_store(key: _StoreKey) -> Store:
    return open_store(key.url, durable=key.durable, options=key.options or None)


def shared_store(path: str, durable: bool, options: Mapping[str, Any] | None) -> Store:
    """One store for a location and settings, so that tables opened twice share their snapshot."""
    # The whole URL: a relative path means another location in another working directory.
    url = parse_location(path).url
    given = dict(options or {})
    try:
        settings = msgspec.json.encode(given, order="deterministic")
    except (TypeError, RecursionError):
        # Callables and the like cannot be compared; such a store is not shared.
        return open_store(url, durable=durable, options=given)
    return _cached_store(_StoreKey(url, durable, settings, given))


def table_exists(store: Store) -> bool:
    """Whether the store holds a Delta log."""

    def found() -> Iterator[bool]:
        from twinlake.log import LOG_FOLDER, parse_log_file

        for item in store.list_from(LOG_FOLDER):
            if parse_log_file(item.key) is not None:
                yield True

    return next(found(), False)
