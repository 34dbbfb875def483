"""SET clauses: columns, also inside structs, that get new values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from twinlake.errors import Code, UserError, listed
from twinlake.schema import (
    GENERATION_EXPRESSION_KEY,
    IDENTITY_STEP_KEY,
    Struct,
    parse_path,
    render_path,
    resolve_path,
)
from twinlake.spark.read.columns import visible_field
from twinlake.spark.rows.prepare import default_value, fitted
from twinlake.spark.spark_types import from_spark, quoted, spark_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath, DataType, StructField

__all__ = ["assigned", "checked_assignments", "resolved_assignments"]


def checked_assignments(given: Any, argument: str) -> dict[str, str | Column]:
    """Values by column, as SQL text or Columns; Python's errors for anything else, as in Delta."""
    from pyspark.sql import Column

    if given is None:
        raise ValueError(f"{argument} cannot be None")
    if not isinstance(given, dict):
        raise TypeError(f"{argument} must be a dict, found {type(given).__name__}")
    for name, value in given.items():
        if not isinstance(name, str):
            raise TypeError(f"Keys of dict in {argument} must be str, found {type(name).__name__}")
        if not isinstance(value, (str, Column)):
            raise TypeError(
                f"Values of dict in {argument} must be str or Column, found {type(value).__name__}"
            )
    return dict(given)


def resolved_assignments(
    spark: SparkSession, metadata: Metadata, assignments: Mapping[str, str | Column]
) -> dict[ColumnPath, Column]:
    """The assignments by column path, checked: columns exist, none is set twice or in parts."""
    found: dict[ColumnPath, Column] = {}
    problems: list[str] = []
    for name, value in assignments.items():
        path = resolve_path(metadata.schema, parse_path(name))
        field = metadata.schema.get(path[0]) if len(path) == 1 else None
        if field is not None and _asks_for_default(value, metadata):
            column = default_value(spark, field)
        else:
            column = F.expr(value) if isinstance(value, str) else value
        for other in found:
            shorter, longer = sorted((path, other), key=len)
            if longer[: len(shorter)] == shorter:
                problems.append(f"{render_path(path)} and {render_path(other)} overlap")
        found[path] = column
    if problems:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "Columns are set twice.",
            why=listed(problems),
            fix="Set each column once.",
            delta_class="DELTA_CONFLICT_SET_COLUMN",
            fields={"problems": problems},
        )
    _refuse_identity(metadata, found)
    return found


def _asks_for_default(value: str | Column, metadata: Metadata) -> bool:
    """Whether the value is the word DEFAULT, which a column may have for its name as well."""
    return (
        isinstance(value, str)
        and value.strip().upper() == "DEFAULT"
        and metadata.schema.get("default") is None
    )


def _refuse_identity(metadata: Metadata, found: Mapping[ColumnPath, Column]) -> None:
    for path in found:
        field = metadata.schema.get(path[0])
        if field is not None and IDENTITY_STEP_KEY in field.metadata:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"The identity column {field.name} cannot be updated.",
                why="its values are given out by the table",
                fix="Leave the column out of the assignments.",
                delta_class="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
                fields={"column": field.name},
            )


def assigned(
    frame: DataFrame,
    metadata: Metadata,
    assignments: Mapping[str, str | Column],
    *,
    only: Column | None = None,
) -> DataFrame:
    """The frame with new values in the table's columns; its further columns stay.

    ``only``: the rows that get them, all if not given.
    """
    wanted = resolved_assignments(frame.sparkSession, metadata, assignments)
    # Spark says which types the values have; nothing is run for it.
    values = [column.alias(f"v{n}") for n, column in enumerate(wanted.values())]
    types = [field.type for field in from_spark(frame.select(*values).schema)]
    tree = _Node(None, {})
    for (path, column), kind in zip(wanted.items(), types, strict=True):
        tree.put(path, (column, kind))
    names = {field.name for field in metadata.schema}
    columns: list[Column] = []
    for field in metadata.schema:
        current = F.col(quoted(field.name))
        node = tree.children.get(field.name)
        value = current if node is None else node.value(current, field, (field.name,))
        if node is not None and only is not None:
            value = F.when(only, value).otherwise(current)
        columns.append(value.alias(field.name))
    others = [F.col(quoted(name)) for name in frame.columns if name not in names]
    changed = frame.select(*columns, *others)
    return _regenerated(changed, metadata, frozenset(path[0] for path in wanted))


@dataclass(slots=True)
class _Node:
    """Assignments at and below one column."""

    own: tuple[Column, DataType] | None
    children: dict[str, _Node]

    def put(self, path: ColumnPath, value: tuple[Column, DataType]) -> None:
        node = self
        for part in path:
            node = node.children.setdefault(part, _Node(None, {}))
        node.own = value

    def value(self, current: Column, field: StructField, path: ColumnPath) -> Column:
        if self.own is not None:
            column, kind = self.own
            return fitted(column, kind, field.type, path)
        if not isinstance(field.type, Struct):
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"Parts of {render_path(path)} cannot be set.",
                why="it is not a struct, and elements of arrays and maps have no name",
                fix="Set the whole column.",
                delta_class="DELTA_INVALID_FIELD_SELECTION",
            )
        parts = []
        for child in field.type:
            inner = current.getField(child.name)
            node = self.children.get(child.name)
            here = (*path, child.name)
            parts.append(
                (inner if node is None else node.value(inner, child, here)).alias(child.name)
            )
        return F.struct(*parts)


def _regenerated(frame: DataFrame, metadata: Metadata, given: frozenset[str]) -> DataFrame:
    """Generated columns follow the columns they are made of, unless they were set themselves."""
    made = {
        field.name: F.expr(str(field.metadata[GENERATION_EXPRESSION_KEY])).cast(
            spark_type(Struct((visible_field(field),)))[0].dataType
        )
        for field in metadata.schema
        if GENERATION_EXPRESSION_KEY in field.metadata and field.name not in given
    }
    if not made:
        return frame
    return frame.select(
        *[made[n].alias(n) if n in made else F.col(quoted(n)) for n in frame.columns]
    )
