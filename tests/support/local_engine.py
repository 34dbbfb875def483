"""A data engine without Spark: rewrites small tables in this process with pyarrow.

It does what the ports ask for, for flat and nested structs; row ids it refuses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from tests.support.data_files import write_file
from twinlake.actions import AddFile
from twinlake.log.deletion_vectors import read_dv
from twinlake.runtime import (
    ContentReader,
    Executor,
    InProcess,
    OffendingRows,
    Rewriter,
    RewriteRequest,
)
from twinlake.schema import (
    Array,
    Map,
    Struct,
    parse_partition_value,
    physical_name,
    physical_schema,
)
from twinlake.storage import LocalStore, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from twinlake.log import Snapshot

__all__ = ["LocalEngine", "rows_of"]

Row = dict[str, Any]


def rows_of(snapshot: Snapshot) -> list[Row]:
    """All rows of a table of local files, by logical names, in the order of their text."""
    rows = [row for add in snapshot.adds() for row in _rows_in(snapshot, add)]
    return sorted(rows, key=str)


def _rows_in(snapshot: Snapshot, add: AddFile) -> list[Row]:
    metadata = snapshot.metadata
    store, key = resolve(snapshot.store, add.path)
    assert isinstance(store, LocalStore)
    hidden = read_dv(snapshot.store, add.deletion_vector) if add.deletion_vector else ()
    # The file's own schema: pyarrow would take `name=value` folders for columns.
    found = pq.ParquetFile(store.local_path(key)).read().to_pylist()
    partition = {
        f.name: parse_partition_value(add.partition_values.get(physical_name(f)), f.type)
        for f in metadata.schema
        if f.name in metadata.partition_columns
    }
    physical = physical_schema(metadata.schema, metadata.column_mapping_mode)
    return [
        {**_logical(row, metadata.schema, physical), **partition}
        for position, row in enumerate(found)
        if position not in hidden
    ]


def _logical(value: Any, logical: Any, physical: Any) -> Any:
    if value is None:
        return None
    match logical:
        case Struct():
            return {
                f.name: _logical(value.get(p.name), f.type, p.type)
                for f, p in zip(logical, physical, strict=True)
            }
        case Array():
            return [_logical(item, logical.element, physical.element) for item in value]
        case Map():
            return [
                (_logical(k, logical.key, physical.key), _logical(v, logical.value, physical.value))
                for k, v in value
            ]
        case _:
            return value


@dataclass(frozen=True)
class LocalRewriter:
    """Writes every bin as one file."""

    requests: list[RewriteRequest] = field(default_factory=list)

    def rewrite(self, request: RewriteRequest) -> Sequence[Sequence[AddFile]]:
        assert not request.row_ids
        self.requests.append(request)
        return [self._written(request, files) for files in request.bins]

    @staticmethod
    def _written(request: RewriteRequest, files: Sequence[AddFile]) -> list[AddFile]:
        store = request.snapshot.store
        assert isinstance(store, LocalStore)
        rows = [row for add in files for row in _rows_in(request.snapshot, add)]
        after: Any = SimpleNamespace(metadata=request.metadata, schema=request.metadata.schema)
        return [write_file(after, Path(store.path), rows)] if rows else []


@dataclass(frozen=True)
class LocalEngine:
    """An engine whose expressions are Python functions on a row, by their SQL text."""

    predicates: dict[str, Callable[[Row], bool]] = field(default_factory=dict)
    rewriter: Rewriter = field(default_factory=LocalRewriter)
    executor: Executor = field(default_factory=InProcess)
    contents: ContentReader | None = None

    shows_values: bool = False

    def offending_rows(self, snapshot: Snapshot, expression: str, limit: int) -> OffendingRows:
        holds = self.predicates[expression]
        found = [str(row) for row in rows_of(snapshot) if not holds(row)]
        return OffendingRows(
            count=len(found), shown=tuple(found[:limit]) if self.shows_values else ()
        )
