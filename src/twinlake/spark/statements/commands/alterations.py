"""ALTER TABLE as Spark's parser reads it: columns and properties."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UnsupportedFeature, UserError
from twinlake.schema import (
    COMMENT_KEY,
    CURRENT_DEFAULT_KEY,
    StructField,
    parse_schema,
    render_path,
)
from twinlake.spark.statements.syntax.plan_tree import items, option, texts
from twinlake.table.operations import NewColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from twinlake.spark.statements.queries.statement import SparkStatement
    from twinlake.table import Table

__all__ = [
    "add_columns",
    "alter_columns",
    "drop_columns",
    "rename_column",
    "set_properties",
    "unset_properties",
]


def set_properties(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``ALTER TABLE table SET TBLPROPERTIES (...)``."""
    table = altered_table(statement, plan)
    if table is None:
        return None
    table.set_properties(string_map(plan.properties()))
    return statement.nothing()


def unset_properties(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``ALTER TABLE table UNSET TBLPROPERTIES [IF EXISTS] (...)``."""
    table = altered_table(statement, plan)
    if table is None:
        return None
    # Spark does not tell a table whether IF EXISTS was written; Delta Spark takes it for granted.
    table.unset_properties(texts(plan.propertyKeys()), if_exists=True)
    return statement.nothing()


def add_columns(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``ALTER TABLE table ADD COLUMNS (...)``."""
    table = altered_table(statement, plan)
    if table is None:
        return None
    with _spark_classes():
        table.add_columns([_new_column(each) for each in items(plan.columnsToAdd())])
    return statement.nothing()


def _new_column(column: Any) -> NewColumn:
    parent = option(column.path())
    metadata = {
        COMMENT_KEY: option(column.comment()),
        CURRENT_DEFAULT_KEY: _default_text(option(column.default())),
    }
    first, after = _position(option(column.position()))
    (field,) = parse_schema(
        json.dumps(
            {
                "type": "struct",
                "fields": [
                    {
                        "name": str(column.colName()),
                        "type": json.loads(column.dataType().json()),
                        "nullable": bool(column.nullable()),
                        "metadata": {k: v for k, v in metadata.items() if v is not None},
                    }
                ],
            }
        )
    )
    return NewColumn(
        field=field, parent=() if parent is None else texts(parent.name()), first=first, after=after
    )


def _default_text(default: Any) -> str | None:
    return None if default is None else str(default.originalSQL())


def _position(position: Any) -> tuple[bool, str | None]:
    """Whether a column comes first, and the one that it comes after."""
    if position is None:
        return False, None
    found = position.position()
    if str(found.getClass().getSimpleName()).startswith("First"):
        return True, None
    return False, str(found.column())


def alter_columns(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``ALTER TABLE table ALTER COLUMN column ...``."""
    table = altered_table(statement, plan)
    if table is None:
        return None
    specs = items(plan.specs())
    if len(specs) > 1:
        raise UnsupportedFeature(
            Code.NOT_YET,
            "Several columns cannot be altered in one statement yet.",
            why="each column is altered in a commit of its own",
            fix="Write one `ALTER TABLE ... ALTER COLUMN` for each column.",
            fields={"columns": [".".join(texts(each.column().name())) for each in specs]},
        )
    (spec,) = specs
    kind = option(spec.newDataType())
    default = _default_text(option(spec.newDefaultExpression()))
    first, after = _position(option(spec.newPosition()))
    with _spark_classes():
        table.alter_column(
            render_path(texts(spec.column().name())),
            kind=None if kind is None else str(kind.sql()),
            nullable=option(spec.newNullability()),
            comment=option(spec.newComment()),
            default="" if spec.dropDefault() else default,
            first=first,
            after=after,
        )
    return statement.nothing()


def rename_column(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``ALTER TABLE table RENAME COLUMN column TO name``."""
    table = altered_table(statement, plan)
    if table is None:
        return None
    with _spark_classes():
        table.rename_column(
            render_path(texts(plan.column().name())), render_path((str(plan.newName()),))
        )
    return statement.nothing()


def drop_columns(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``ALTER TABLE table DROP COLUMNS [IF EXISTS] (...)``."""
    table = altered_table(statement, plan)
    if table is None:
        return None
    paths = [texts(each.name()) for each in items(plan.columnsToDrop())]
    if plan.ifExists():
        paths = [path for path in paths if _has_column(table, path)]
    if paths:
        with _spark_classes():
            table.drop_column(*(render_path(path) for path in paths))
    return statement.nothing()


def _has_column(table: Table, path: tuple[str, ...]) -> bool:
    fields: Any = table.schema
    for name in path:
        found = fields.get(name) if hasattr(fields, "get") else None
        if not isinstance(found, StructField):
            return False
        fields = found.type
    return True


@contextlib.contextmanager
def _spark_classes() -> Iterator[None]:
    """Spark looks at the columns of ALTER TABLE itself, before Delta Spark sees them."""
    try:
        yield
    except UserError as error:
        error.delta_class = _SPARK_CLASSES.get(error.delta_class or "", error.delta_class)
        raise


_SPARK_CLASSES: Final = {
    "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA": "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    "DELTA_DUPLICATE_COLUMNS_FOUND": "FIELD_ALREADY_EXISTS",
}


def altered_table(statement: SparkStatement, plan: Any) -> Table | None:
    """The table that a command is about, if it is ours; commands cannot be about its views."""
    parts = texts(plan.table().multipartIdentifier())
    found = statement.names.find(parts)
    return None if found is None else found.open(statement.spark)


def string_map(values: Any) -> dict[str, str]:
    """A Scala map of strings."""
    pairs = items(values.toSeq())
    return {str(pair._1()): str(pair._2()) for pair in pairs}
