"""``--where`` of commands that rewrite files: a predicate on partition columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.errors import Code, UserError
from twinlake.schema.predicates import is_partition_only, parse_predicate

if TYPE_CHECKING:
    from twinlake.actions import AddFile
    from twinlake.table import Table

__all__ = ["partition_files"]


def partition_files(table: Table, where: str | None) -> list[AddFile]:
    """The live files of the partitions that match; all without a predicate."""
    metadata = table.metadata
    chosen = None if where is None else parse_predicate(where, metadata.schema)
    if chosen is not None and not is_partition_only(chosen, metadata.partition_columns):
        columns = ", ".join(metadata.partition_columns)
        raise UserError(
            Code.PREDICATE_INVALID,
            "The predicate has columns that are not partition columns.",
            why=f"the command selects whole files; the partition columns are [{columns}]",
            fix="Use only partition columns in `--where`, or leave it out.",
            delta_class="DELTA_NON_PARTITION_COLUMN_REFERENCE",
            fields={"where": where, "columnList": columns},
        )
    return list(table.snapshot.adds(chosen))
