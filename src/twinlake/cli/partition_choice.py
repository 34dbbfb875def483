"""``--where`` of commands that rewrite files: a condition that chooses whole partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinlake.actions import AddFile
    from twinlake.table import Table

__all__ = ["chosen_files"]


def chosen_files(table: Table, where: str | None) -> list[AddFile]:
    """The live files of the partitions for which the condition holds; all without one."""
    from twinlake.errors import Code, UserError
    from twinlake.schema.predicates import is_partition_only, parse_predicate

    metadata = table.metadata
    chosen = None if where is None else parse_predicate(where, metadata.schema)
    if chosen is not None and not is_partition_only(chosen, metadata.partition_columns):
        columns = ", ".join(metadata.partition_columns)
        raise UserError(
            Code.PREDICATE_INVALID,
            "The condition speaks of columns by which the table is not partitioned.",
            why=f"files are chosen whole, so only partition columns can choose: [{columns}]",
            fix="Name only partition columns in `--where`, or leave it out.",
            delta_class="DELTA_NON_PARTITION_COLUMN_REFERENCE",
            fields={"where": where, "columnList": columns},
        )
    return list(table.snapshot.adds(chosen))
