"""A data engine without Spark: rewrites small tables in this process with pyarrow.

Rows are read as the package reads them; what is written here is a plain file, and row ids are
refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.support.data_files import write_file
from twinlake.files import DataFileReader
from twinlake.runtime import (
    ContentReader,
    Executor,
    InProcess,
    OffendingRows,
    Rewriter,
    RewriteRequest,
)
from twinlake.storage import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from twinlake.actions import AddFile
    from twinlake.log import Snapshot

__all__ = ["LocalEngine", "rows_of"]

Row = dict[str, Any]


def rows_of(snapshot: Snapshot) -> list[Row]:
    """All rows of a table of local files, by logical names, in the order of their text."""
    rows = [row for add in snapshot.adds() for row in _rows_in(snapshot, add)]
    return sorted(rows, key=str)


def _rows_in(snapshot: Snapshot, add: AddFile) -> list[Row]:
    reader = DataFileReader(store=snapshot.store, metadata=snapshot.metadata, pads_chars=False)
    return [row for batch in reader.batches(add) for row in batch.to_pylist()]


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
