"""A frame projected to the columns of a table: in its order, of its types.

Columns are found by name at every level. What the frame lacks is computed: the column's default,
the expression of a generated column, the next identity values, or null. A value that does not fit
its column is an error and never a null, with and without ANSI mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from twinlake.errors import Code, UserError
from twinlake.schema import (
    BYTE,
    CURRENT_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    INTEGER,
    SHORT,
    VOID,
    Array,
    Map,
    Struct,
    StructField,
    can_widen,
    render_path,
    render_type,
)
from twinlake.spark.rows.identity import with_identity
from twinlake.spark.rows.row_errors import raise_for_row
from twinlake.spark.spark_types import from_spark, quoted, spark_data_type
from twinlake.table.rows import (
    computed_columns,
    refuse_duplicates,
    refuse_explicit,
    refuse_missing,
    refuse_unknown,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath, DataType

__all__ = [
    "cast_column",
    "default_value",
    "project_rows",
]

_INTEGERS: Final = (BYTE, SHORT, INTEGER)


def project_rows(
    frame: DataFrame,
    metadata: Metadata,
    *,
    keep: Sequence[str] = (),
    own_rows: bool = False,
) -> DataFrame:
    """The frame with exactly the table's columns, then those of ``keep``; itself if it has them.

    ``own_rows``: the rows come from the table, so that they may bring values of GENERATED ALWAYS
    identity columns, and get no defaults.
    """
    has = from_spark(frame.schema)
    refuse_duplicates(has)
    kept = [_named(has, name) for name in keep]
    given = Struct(tuple(field for field in has if field not in kept))
    wanted = metadata.schema
    refuse_unknown(given, metadata)
    if not own_rows:
        refuse_explicit(metadata.schema, given.names())
    refuse_missing(given, wanted, defaults=not own_rows)
    if not kept and _is_same(given, wanted):
        return frame
    made = set(computed_columns(metadata, given.names()))
    columns = [
        _column(frame.sparkSession, field, given.get(field.name), defaults=not own_rows)
        for field in wanted
        if field.name not in made
    ]
    columns += [_by_name(field.name) for field in kept]
    # Generated columns and identities come second: they stand on the table's own columns.
    fitting = frame.select(*columns)
    return _with_computed(fitting, metadata, made, [field.name for field in kept])


def cast_column(
    spark: SparkSession, column: Column, has: DataType, wants: DataType, path: ColumnPath
) -> Column:
    """The column as the wanted type: fields by name, values cast, misfits raised.

    ``path``: the column in errors. ``spark`` says whether these may show values.
    """
    if _is_same(has, wants):
        return column
    match has, wants:
        case Struct(), Struct():
            # A struct of nulls is not a null struct.
            built = F.struct(*(_inner(spark, column, has, field, path) for field in wants))
            return F.when(column.isNotNull(), built)
        case Array(), Array():
            here = (*path, "element")
            return F.transform(
                column, lambda item: cast_column(spark, item, has.element, wants.element, here)
            )
        case Map(), Map():
            return _fitted_map(spark, column, has, wants, path)
        case _:
            return _cast(spark, column, has, wants, path)


def _inner(
    spark: SparkSession, column: Column, has: Struct, field: StructField, path: ColumnPath
) -> Column:
    own = has.get(field.name)
    if own is None:
        return F.lit(None).cast(spark_data_type(field.type)).alias(field.name)
    inner = cast_column(spark, column.getField(own.name), own.type, field.type, (*path, field.name))
    return inner.alias(field.name)


def _fitted_map(
    spark: SparkSession, column: Column, has: Map, wants: Map, path: ColumnPath
) -> Column:
    if not _is_same(has.value, wants.value):
        column = F.transform_values(
            column, lambda _, v: cast_column(spark, v, has.value, wants.value, (*path, "value"))
        )
    if not _is_same(has.key, wants.key):
        column = F.transform_keys(
            column, lambda k, _: cast_column(spark, k, has.key, wants.key, (*path, "key"))
        )
    return column


def _cast(
    spark: SparkSession, column: Column, has: DataType, wants: DataType, path: ColumnPath
) -> Column:
    target = spark_data_type(wants)
    if has == VOID:
        return F.lit(None).cast(target)
    if isinstance(has, Struct | Array | Map) or isinstance(wants, Struct | Array | Map):
        raise _misfit(path, has, wants, "no cast leads from one to the other")
    if wants == VOID:
        raise _misfit(path, has, wants, "a void column holds nulls only")
    if can_widen(has, wants) or (has in _INTEGERS and wants in _INTEGERS and _fits(has, wants)):
        return column.cast(target)
    # try_cast is strict in every session, and what it gives up on is distinguished from a null.
    value = column.try_cast(target)
    misfit = _misfit(path, has, wants, "a value is out of its range or not of its form")
    raised = raise_for_row(spark, misfit, {render_path(path): column}).cast(target)
    return F.when(column.isNotNull() & value.isNull(), raised).otherwise(value)


def _fits(has: DataType, wants: DataType) -> bool:
    return _INTEGERS.index(has) <= _INTEGERS.index(wants)


def _misfit(path: ColumnPath, has: DataType, wants: DataType, why: str) -> UserError:
    shown = render_path(path)
    return UserError(
        Code.SCHEMA_EVOLUTION,
        f"A {render_type(has)} cannot be stored in column {shown}, which is {render_type(wants)}.",
        why=why,
        fix="Cast or correct the column before writing.",
        delta_class="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
        fields={"column": shown, "from": render_type(has), "to": render_type(wants)},
    )


def default_value(spark: SparkSession, field: StructField) -> Column:
    """What a row gets that has no value for the column: its default, or null.

    As in Delta Spark the metadata of the column counts, whatever the protocol has.
    """
    text = field.metadata.get(CURRENT_DEFAULT_KEY)
    if not isinstance(text, str):
        return _null(field)
    value = F.expr(text)
    try:
        # On a frame without columns: a default that names one must not find it among the data.
        (found,) = from_spark(spark.range(0).select().select(value).schema)
    except AnalysisException as error:
        where = render_path((field.name,))
        raise UserError(
            Code.SCHEMA_INVALID,
            f"The default value of column {where} cannot be computed: {text}.",
            why=str(error).splitlines()[0],
            fix="Give the column a value in the data, or another default with "
            '`Table.alter_column(COLUMN, default="EXPRESSION")` or `twinlake alter PATH '
            "--default COLUMN=EXPRESSION`.",
            delta_class="INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION",
            fields={"column": where, "default": text},
        ) from error
    return cast_column(spark, value, found.type, field.type, (field.name,))


def _column(
    spark: SparkSession, field: StructField, own: StructField | None, *, defaults: bool
) -> Column:
    if own is not None:
        column = cast_column(spark, _by_name(own.name), own.type, field.type, (field.name,))
    elif defaults:
        column = default_value(spark, field)
    else:
        column = _null(field)
    return column.alias(field.name)


def _null(field: StructField) -> Column:
    # A void column keeps its type: nothing can be cast to it.
    return F.lit(None) if field.type == VOID else F.lit(None).cast(spark_data_type(field.type))


def _with_computed(
    frame: DataFrame, metadata: Metadata, made: set[str], kept: Sequence[str]
) -> DataFrame:
    if not made:
        return frame
    frame = with_identity(frame, metadata)
    columns = []
    for field in metadata.schema:
        text = field.metadata.get(GENERATION_EXPRESSION_KEY)
        if field.name in made and isinstance(text, str):
            columns.append(F.expr(text).cast(spark_data_type(field.type)).alias(field.name))
        else:
            columns.append(_by_name(field.name))
    return frame.select(*columns, *(_by_name(name) for name in kept))


def _is_same(has: DataType, wants: DataType) -> bool:
    """The same type with the same names in the same order; nullability aside."""
    match has, wants:
        case Struct(), Struct():
            return has.names() == wants.names() and all(
                _is_same(a.type, b.type) for a, b in zip(has, wants, strict=True)
            )
        case Array(), Array():
            return _is_same(has.element, wants.element)
        case Map(), Map():
            return _is_same(has.key, wants.key) and _is_same(has.value, wants.value)
        case _:
            return has == wants


def _named(schema: Struct, name: str) -> StructField:
    found = schema.get(name)
    if found is None:
        raise UserError(
            Code.COLUMN_NOT_FOUND,
            f"The data has no column {render_path((name,))}.",
            fix="Keep only columns of the frame.",
            fields={"column": name},
        )
    return found


def _by_name(name: str) -> Column:
    return F.col(quoted(name))
