"""Which files carry field ids, by their footers, in a cache of this process."""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.log import read_footer
from twinlake.schema import PARQUET_FIELD_ID
from twinlake.storage import resolve

if TYPE_CHECKING:
    from twinlake.storage import Store

__all__ = ["split_by_field_ids"]

_REMEMBERED: Final = 200_000
_LOOKED_AT: Final = 2_000
"""More unseen files than this are read by name, which is always right and only prunes less."""
_THREADS: Final = 8

_seen: OrderedDict[tuple[str, str], bool] = OrderedDict()
_lock = Lock()


def split_by_field_ids(store: Store, files: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The files whose columns have ids, and the others."""
    paths = files["path"].to_pylist()
    with _lock:
        unseen = [path for path in paths if (store.url, path) not in _seen]
    if len(unseen) > _LOOKED_AT:
        return files.slice(0, 0), files
    with ThreadPoolExecutor(_THREADS) as pool:
        found = dict(zip(unseen, pool.map(lambda p: _has_ids(store, p), unseen), strict=True))
    with _lock:
        _seen.update({(store.url, path): has for path, has in found.items()})
        known = [_seen.get((store.url, path), False) for path in paths]
        while len(_seen) > _REMEMBERED:
            _seen.popitem(last=False)
    mask = pa.array(known, pa.bool_())
    return files.filter(mask), files.filter(pc.invert(mask))


def _has_ids(store: Store, path: str) -> bool:
    """Whether every column of the file's top level has an id."""
    footer = read_footer(*resolve(store, path))
    schema = footer.metadata.schema.to_arrow_schema()
    return all(PARQUET_FIELD_ID in (field.metadata or {}) for field in schema)
