"""Deletion vectors of many files at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from twinlake.actions import DeletionVectorDescriptor

if TYPE_CHECKING:
    import pyarrow as pa
    from pyroaring import BitMap64

    from twinlake.storage import Store

__all__ = ["read_vectors"]

_THREADS = 8


def read_vectors(store: Store, files: pa.Table) -> dict[str, BitMap64]:
    """The hidden positions of the files that have any, by path in the log."""
    from twinlake.log.deletion_vectors import read_dv

    found = files.select(["path", "deletion_vector"])
    rows = [row for row in found.to_pylist() if row["deletion_vector"] is not None]

    def read(row: dict[str, Any]) -> BitMap64:
        return read_dv(store, DeletionVectorDescriptor(**row["deletion_vector"]))

    if len(rows) < 2:
        return {row["path"]: read(row) for row in rows}
    with ThreadPoolExecutor(_THREADS) as pool:
        return dict(zip((row["path"] for row in rows), pool.map(read, rows), strict=True))
