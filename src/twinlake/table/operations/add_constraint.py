"""CHECK constraints against the rows that are already there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from twinlake.log import Snapshot
    from twinlake.table.operations.context import OperationContext

__all__ = ["check_rows"]

_SAMPLE: Final = 5


def check_rows(context: OperationContext, snapshot: Snapshot, name: str, expression: str) -> None:
    """Raise unless an engine finds that every row satisfies the expression."""
    engine = context.engine
    if engine is None:
        raise UserError(
            Code.SPARK_REQUIRED,
            f"Constraint {name!r} cannot be added to a table with rows without an engine.",
            why="the rows that are there have to satisfy it, and checking them takes a data engine",
            fix="Run `Table.add_constraint(NAME, EXPRESSION, spark=spark)` with a "
            "SparkSession, or add the constraint while the table is empty.",
            fields={"constraint": name, "files": snapshot.num_files},
        )
    found = engine.offending_rows(snapshot, expression, _SAMPLE)
    if found.count:
        sample = f", for example {'; '.join(found.shown)}" if found.shown else ""
        raise UserError(
            Code.CONSTRAINT,
            f"Constraint {name!r} cannot be added: rows of the table violate it.",
            why=f"{expression} is not true for {_rows(found.count)}{sample}",
            fix="Correct or delete those rows first, or choose another expression.",
            delta_class="DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
            fields={
                "constraint": name,
                "expression": expression,
                "count": found.count,
                "rows": list(found.shown),
            },
        )


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
