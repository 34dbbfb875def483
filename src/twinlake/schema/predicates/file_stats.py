"""What file skipping looks at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from twinlake.schema.types import ColumnPath

__all__ = ["FileStats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStats:
    """What is known of ``num_rows`` files, a column for each fact, by logical column path."""

    num_rows: int
    partition: Mapping[ColumnPath, pa.Array] = field(default_factory=dict)
    min: Mapping[ColumnPath, pa.Array] = field(default_factory=dict)
    max: Mapping[ColumnPath, pa.Array] = field(default_factory=dict)
    null_count: Mapping[ColumnPath, pa.Array] = field(default_factory=dict)
    num_records: pa.Array | None = None
    tight_bounds: pa.Array | None = None
