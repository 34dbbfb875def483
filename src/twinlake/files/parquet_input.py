"""Parquet files of a store, opened for reading: from the disk, or by ranges of an object."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from twinlake.files.unreadable import damaged_file
from twinlake.storage import OS_ERRORS, OnDisk, os_error, resolve

if TYPE_CHECKING:
    from twinlake.actions import AddFile
    from twinlake.storage import Store

__all__ = ["open_parquet"]

#: Smaller objects are fetched by one request; of larger ones only what is asked for.
_WHOLE_OBJECT: Final = 4 << 20


def open_parquet(
    store: Store, add: AddFile, *, footer: pq.FileMetaData | None = None
) -> pq.ParquetFile:
    """The file that an ``add`` names; its footer is read unless it is given."""
    store, key = resolve(store, add.path)
    try:
        if isinstance(store, OnDisk):
            return _opened(pa.OSFile(store.local_path(key)), footer)
        if add.size <= _WHOLE_OBJECT:
            return _opened(pa.BufferReader(store.read(key)), footer)
        return _opened(pa.PythonFile(_ObjectFile(store, key, add.size), mode="r"), footer)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno in OS_ERRORS:
            # The file may be sound: this process may not read it.
            what = f"Could not read {key!r} in {store.url}."
            raise os_error(error, what, {"key": key, "store": store.url}) from error
        raise damaged_file(add, str(error).splitlines()[0] if str(error) else "") from error


def _opened(source: pa.NativeFile, footer: pq.FileMetaData | None) -> pq.ParquetFile:
    return pq.ParquetFile(
        source,
        metadata=footer,
        # As nanoseconds, years before 1677 and after 2262 would wrap around.
        coerce_int96_timestamp_unit="us",
        arrow_extensions_enabled=False,
    )


class _ObjectFile(io.RawIOBase):
    """An object that is read by ranges."""

    def __init__(self, store: Store, key: str, size: int) -> None:
        self._store = store
        self._key = key
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(self._size - self._at, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        data = self._store.read_range(self._key, self._at, wanted) if wanted else b""
        self._at += len(data)
        return data
