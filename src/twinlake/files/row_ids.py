"""Row ids and commit versions of row tracking, as a data file has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.files.unreadable import damaged_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.actions import AddFile

__all__ = ["RowIds"]


@dataclass(frozen=True, slots=True)
class RowIds:
    """Row ids and commit versions: those that rows carry, else those that follow from the file."""

    makers: tuple[Callable[[pa.RecordBatch, Any], pa.Array], ...] = ()
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, file: pa.Schema, add: AddFile, columns: tuple[str, str] | None) -> RowIds:
        """Those of a file; none where they are not wanted."""
        if columns is None:
            return cls()
        first, version = add.base_row_id, add.default_row_commit_version
        if first is None or version is None:
            raise damaged_file(add, "it has no row ids although row tracking is on")
        there = set(file.names)
        id_name, version_name = (name if name in there else None for name in columns)

        def number(batch: pa.RecordBatch, positions: Any) -> pa.Array:
            fresh = pa.array(first + positions)
            return fresh if id_name is None else pc.coalesce(batch.column(id_name), fresh)

        def made_in(batch: pa.RecordBatch, positions: Any) -> pa.Array:
            del positions
            default = pa.scalar(version, pa.int64())
            if version_name is None:
                return pa.repeat(default, batch.num_rows)
            return pc.fill_null(batch.column(version_name), default)

        names = tuple(name for name in (id_name, version_name) if name is not None)
        return cls((number, made_in), names)

    def arrays(self, batch: pa.RecordBatch, positions: Any) -> list[pa.Array]:
        """The two columns of rows at positions; none where they are not wanted."""
        return [make(batch, positions) for make in self.makers]
