"""Statements that show tables: DESCRIBE, SHOW COLUMNS, SHOW TBLPROPERTIES, SHOW TABLES ..."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UserError
from twinlake.protocol import keys
from twinlake.schema import COMMENT_KEY, render_path
from twinlake.spark.api.catalog import managed_location
from twinlake.spark.read.file_list import hadoop_root
from twinlake.spark.spark_types import spark_data_type
from twinlake.spark.statements.queries.names import shown_name
from twinlake.spark.statements.syntax.plan_tree import option, texts
from twinlake.table import clustering_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from twinlake.log import Snapshot
    from twinlake.spark.statements.queries.names import SqlTable
    from twinlake.spark.statements.queries.statement import SparkStatement

__all__ = [
    "describe_column",
    "describe_table",
    "show_columns",
    "show_create_table",
    "show_partitions",
    "show_properties",
    "show_tables",
]

_COLUMNS: Final = "col_name STRING NOT NULL, data_type STRING NOT NULL, comment STRING"
_INFO: Final = "info_name STRING NOT NULL, info_value STRING NOT NULL"
_PROPERTIES: Final = "key STRING NOT NULL, value STRING NOT NULL"
_TABLES: Final = (
    "namespace STRING NOT NULL, tableName STRING NOT NULL, isTemporary BOOLEAN NOT NULL"
)
_Line = tuple[str, str, str | None]


def _target(statement: SparkStatement, node: Any) -> SqlTable | None:
    return statement.names.find(texts(node.multipartIdentifier()))


def describe_table(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``DESCRIBE [EXTENDED] table``."""
    found = _target(statement, plan.relation())
    if found is None:
        return None
    snapshot = statement.snapshot(found)
    lines = [*_column_lines(snapshot), *_layout_lines(snapshot)]
    if plan.isExtended():
        lines += _detail_lines(statement, found, snapshot)
    return statement.rows(lines, _COLUMNS)


def _column_lines(snapshot: Snapshot, only: Iterable[str] | None = None) -> Iterator[_Line]:
    wanted = None if only is None else {name.casefold() for name in only}
    for field in snapshot.metadata.schema:
        if wanted is None or field.name.casefold() in wanted:
            kind = spark_data_type(field.type).simpleString()
            yield field.name, kind, field.metadata.get(COMMENT_KEY)


def _layout_lines(snapshot: Snapshot) -> Iterator[_Line]:
    layouts = {
        "# Partition Information": snapshot.metadata.partition_columns,
        "# Clustering Information": clustering_columns(snapshot),
    }
    for title, columns in layouts.items():
        if columns:
            yield title, "", ""
            yield "# col_name", "data_type", "comment"
            yield from _column_lines(snapshot, columns)


def _detail_lines(
    statement: SparkStatement, found: SqlTable, snapshot: Snapshot
) -> Iterator[_Line]:
    names = statement.names
    managed = False
    if found.reference.name is not None:
        full = names.catalog.parse(names.text(found.parts))
        managed = found.location == managed_location(statement.spark, full)
    properties = ",".join(f"{key}={value}" for key, value in properties_of(snapshot).items())
    details = {
        "Name": ".".join(names.qualifier(found)),
        "Type": "MANAGED" if managed else "EXTERNAL",
        "Comment": snapshot.metadata.description,
        "Location": hadoop_root(found.location),
        "Provider": "delta",
        "Is_managed_location": "true" if managed else None,
        "Table Properties": f"[{properties}]",
    }
    yield "", "", ""
    yield "# Detailed Table Information", "", ""
    for name, value in details.items():
        if value is not None:
            yield name, value, ""


def describe_column(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``DESCRIBE [EXTENDED] table column``."""
    found = _target(statement, plan.relation())
    if found is None:
        return None
    path = texts(plan.column().nameParts())
    schema = statement.snapshot(found).metadata.schema
    field = schema.get(path[0]) if len(path) == 1 else None
    if field is None:
        raise UserError(
            Code.COLUMN_NOT_FOUND,
            f"{shown_name(found.parts)} has no column {render_path(path)}.",
            why=f"its columns are {', '.join(schema.names())}",
            fix="Name one of the columns at the top level.",
            delta_class="UNRESOLVED_COLUMN.WITH_SUGGESTION",
            fields={"column": render_path(path)},
        )
    rows = [
        ("col_name", field.name),
        ("data_type", spark_data_type(field.type).simpleString()),
        ("comment", str(field.metadata.get(COMMENT_KEY, "NULL"))),
    ]
    return statement.rows(rows, _INFO)


def show_columns(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``SHOW COLUMNS IN table``."""
    found = _target(statement, plan.child())
    if found is None:
        return None
    names = [(name,) for name in statement.snapshot(found).metadata.schema.names()]
    return statement.rows(names, "col_name STRING NOT NULL")


def show_partitions(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``SHOW PARTITIONS table``."""
    found = _target(statement, plan.table())
    if found is None:
        return None
    snapshot = statement.snapshot(found)
    columns = snapshot.metadata.partition_columns
    if not columns:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{shown_name(found.parts)} has no partitions.",
            fix="Leave SHOW PARTITIONS to tables that are partitioned.",
            delta_class="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE",
            fields={"table": shown_name(found.parts)},
        )
    from twinlake.spark.read.table_scan import Scan

    rows = Scan(snapshot=snapshot, files=snapshot.files()).frame(statement.spark)
    return rows.select(*columns).distinct()


def show_properties(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``SHOW TBLPROPERTIES table [(key)]``."""
    found = _target(statement, plan.table())
    if found is None:
        return None
    properties = properties_of(statement.snapshot(found))
    key = option(plan.propertyKey())
    if key is not None:
        name = ".".join(names_with_path(statement, found))
        missing = f"Table {name} does not have property: {key}"
        properties = {str(key): properties.get(str(key), missing)}
    return statement.rows(list(properties.items()), _PROPERTIES)


def names_with_path(statement: SparkStatement, found: SqlTable) -> tuple[str, ...]:
    """The full name, its path quoted."""
    *levels, last = statement.names.qualifier(found)
    return (*levels, shown_name((last,)))


def properties_of(snapshot: Snapshot) -> dict[str, str]:
    """The properties with those that the protocol stands for, sorted."""
    protocol, metadata = snapshot.protocol, snapshot.metadata
    features = (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset())
    found = {
        **metadata.configuration,
        keys.MIN_READER_VERSION: str(protocol.min_reader_version),
        keys.MIN_WRITER_VERSION: str(protocol.min_writer_version),
        **{key: str(value) for name in features for key, value in keys.support(name).items()},
    }
    return dict(sorted(found.items()))


def show_create_table(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``SHOW CREATE TABLE``: refused, as by Delta Spark."""
    found = _target(statement, plan.child())
    if found is None:
        return None
    raise UserError(
        Code.INVALID_ARGUMENT,
        f"SHOW CREATE TABLE is not there for {shown_name(found.parts)}.",
        why="what makes a table is in its log, not in a statement",
        fix="Run `DESCRIBE EXTENDED TABLE` and `SHOW TBLPROPERTIES TABLE`.",
        delta_class="DELTA_OPERATION_NOT_ALLOWED",
        fields={"table": shown_name(found.parts)},
    )


def show_tables(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``SHOW TABLES [IN namespace] [LIKE pattern]``: Spark's, and those of the catalog of names."""
    spark = statement.spark
    catalog = statement.names.catalog
    node = plan.namespace()
    if str(node.nodeName()).startswith("CurrentNamespace"):
        namespace = spark.catalog.currentDatabase()
    else:
        namespace = ".".join(texts(node.multipartIdentifier())[-1:])
    if namespace.lower() not in catalog.namespaces():
        return None
    pattern = option(plan.pattern())
    ours = [
        (name.namespace, name.table, False)
        for name in catalog.names(namespace)
        if pattern is None or _matches(name.table, str(pattern))
    ]
    try:
        theirs = [tuple(row) for row in statement.pass_on().collect()]
    except Exception as error:
        if not ours or "SCHEMA_NOT_FOUND" not in str(getattr(error, "getCondition", str)() or ""):
            raise
        theirs = []
    shadowed = {(row[0], row[1]) for row in ours}
    kept = [row for row in theirs if (row[0], row[1]) not in shadowed]
    return statement.rows(sorted([*ours, *kept]), _TABLES)


def _matches(name: str, pattern: str) -> bool:
    """As Spark matches: ``*`` for any text, ``|`` between patterns, case ignored."""
    return any(fnmatch.fnmatchcase(name, each.strip().lower()) for each in pattern.split("|"))
