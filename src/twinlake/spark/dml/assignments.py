"""SET clauses: columns, also inside structs, that get new values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from twinlake.errors import Code, UserError, listed
from twinlake.schema import (
    GENERATION_EXPRESSION_KEY,
    Struct,
    parse_path,
    render_path,
    resolve_path,
)
from twinlake.spark.read.columns import visible_type
from twinlake.spark.rows.projection import cast_column, default_value
from twinlake.spark.spark_types import from_spark, quoted
from twinlake.table.rows import refuse_update

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath, DataType, StructField

T = TypeVar("T")

__all__ = ["AssignmentTree", "assign_columns", "check_assignments", "resolve_assignments"]


def check_assignments(given: Any, argument: str) -> dict[str, str | Column]:
    """Values by column, as SQL text or Columns; Python's errors for anything else, as in Delta."""
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


def resolve_assignments(
    spark: SparkSession, metadata: Metadata, assignments: Mapping[str, str | Column]
) -> dict[ColumnPath, Column]:
    """The assignments by column path, checked: columns exist, none is set twice or in parts."""
    found: dict[ColumnPath, Column] = {}
    problems: list[str] = []
    for name, value in assignments.items():
        path = resolve_path(metadata.schema, parse_path(name))
        own = metadata.schema.get(path[0]) if len(path) == 1 else None
        if own is not None and _asks_for_default(value, metadata):
            column = default_value(spark, own)
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
    refuse_update(metadata.schema, {path[0] for path in found})
    return found


def _asks_for_default(value: str | Column, metadata: Metadata) -> bool:
    """Whether the value is the word DEFAULT, which a column may have for its name as well."""
    return (
        isinstance(value, str)
        and value.strip().upper() == "DEFAULT"
        and metadata.schema.get("default") is None
    )


def assign_columns(
    frame: DataFrame,
    metadata: Metadata,
    assignments: Mapping[str, str | Column],
    *,
    only: Column | None = None,
) -> DataFrame:
    """The frame with new values in the table's columns; its further columns stay.

    ``only``: the rows that get them, all if not given.
    """
    wanted = resolve_assignments(frame.sparkSession, metadata, assignments)
    # Spark says which types the values have; nothing is run for it.
    values = [column.alias(f"v{n}") for n, column in enumerate(wanted.values())]
    types = [own.type for own in from_spark(frame.select(*values).schema)]
    typed = zip(wanted.values(), types, strict=True)
    tree = AssignmentTree.of(dict(zip(wanted, typed, strict=True)))
    names = set(metadata.schema.names())
    columns: list[Column] = []
    for own in metadata.schema:
        current = F.col(quoted(own.name))
        node = tree.children.get(own.name)
        value = _value(frame.sparkSession, node, current, own, (own.name,))
        if node is not None and only is not None:
            value = F.when(only, value).otherwise(current)
        columns.append(value.alias(own.name))
    others = [F.col(quoted(name)) for name in frame.columns if name not in names]
    changed = frame.select(*columns, *others)
    return _regenerated(changed, metadata, frozenset(path[0] for path in wanted))


@dataclass(slots=True)
class AssignmentTree(Generic[T]):
    """The values that are assigned to a column, or to the fields below it."""

    own: T | None = None
    children: dict[str, AssignmentTree[T]] = field(default_factory=dict)

    @classmethod
    def of(cls, assignments: Mapping[ColumnPath, T]) -> AssignmentTree[T]:
        """The assignments of all columns."""
        root: AssignmentTree[T] = cls()
        for path, value in assignments.items():
            node = root
            for part in path:
                node = node.children.setdefault(part, cls())
            node.own = value
        return root


def _value(
    spark: SparkSession,
    node: AssignmentTree[tuple[Column, DataType]] | None,
    current: Column,
    wanted: StructField,
    path: ColumnPath,
) -> Column:
    """The column after the assignments at and below it."""
    if node is None:
        return current
    if node.own is not None:
        column, kind = node.own
        return cast_column(spark, column, kind, wanted.type, path)
    if not isinstance(wanted.type, Struct):
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"Fields of {render_path(path)} cannot be assigned.",
            why="it is not a struct, and elements of arrays and maps have no name",
            fix="Assign the whole column.",
            delta_class="DELTA_UNSUPPORTED_FIELD_UPDATE_NON_STRUCT",
        )
    return F.struct(
        *(
            _value(
                spark,
                node.children.get(child.name),
                current.getField(child.name),
                child,
                (*path, child.name),
            ).alias(child.name)
            for child in wanted.type
        )
    )


def _regenerated(frame: DataFrame, metadata: Metadata, given: frozenset[str]) -> DataFrame:
    """Generated columns follow the columns they are made of, unless they were set themselves."""
    made = {
        own.name: F.expr(str(own.metadata[GENERATION_EXPRESSION_KEY])).cast(visible_type(own))
        for own in metadata.schema
        if GENERATION_EXPRESSION_KEY in own.metadata and own.name not in given
    }
    if not made:
        return frame
    return frame.select(
        *[made[n].alias(n) if n in made else F.col(quoted(n)) for n in frame.columns]
    )
