"""Definitions of columns: types by Spark's parser, generation expressions checked by it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from twinlake.errors import Code, UserError, listed
from twinlake.schema import (
    COMMENT_KEY,
    GENERATION_EXPRESSION_KEY,
    IDENTITY_EXPLICIT_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
    parse_schema,
)
from twinlake.spark.spark_types import java_class

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

    from twinlake.schema import Struct

__all__ = ["ColumnDefinition", "IdentityGenerator", "columns_from_schema", "table_schema"]

_UNRESOLVED: Final = "UNRESOLVED_COLUMN"


@dataclass
class IdentityGenerator:
    """Start and step of an identity column."""

    start: int = 1
    step: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinition:
    """A column with the members of the schema's JSON."""

    name: str
    type: Any
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        name: str,
        kind: str | DataType,
        *,
        nullable: bool = True,
        generated: str | None = None,
        identity: IdentityGenerator | None = None,
        explicit: bool = False,
        comment: str | None = None,
    ) -> ColumnDefinition:
        """A column by a type of PySpark's or by the text of one."""
        metadata: dict[str, Any] = {}
        if comment is not None:
            metadata[COMMENT_KEY] = comment
        if generated is not None:
            metadata[GENERATION_EXPRESSION_KEY] = generated
        if identity is not None:
            metadata[IDENTITY_START_KEY] = identity.start
            metadata[IDENTITY_STEP_KEY] = identity.step
            metadata[IDENTITY_EXPLICIT_KEY] = explicit
        return cls(name=name, type=_type(spark, kind), nullable=nullable, metadata=metadata)

    def to_dict(self) -> dict[str, Any]:
        """The field as JSON has it."""
        return {
            "name": self.name,
            "type": self.type,
            "nullable": self.nullable,
            "metadata": dict(self.metadata),
        }


def _type(spark: SparkSession, kind: str | DataType) -> Any:
    if not isinstance(kind, str):
        return json.loads(kind.json())
    jsession: Any = spark._jsparkSession
    # Spark's own parser, so that a wrong type is Spark's own error.
    return json.loads(jsession.sessionState().sqlParser().parseDataType(kind).json())


def columns_from_schema(schema: StructType) -> tuple[ColumnDefinition, ...]:
    """The columns of an existing schema."""
    return tuple(
        ColumnDefinition(
            name=f["name"], type=f["type"], nullable=f["nullable"], metadata=f["metadata"]
        )
        for f in json.loads(schema.json())["fields"]
    )


def table_schema(spark: SparkSession, columns: Sequence[ColumnDefinition]) -> Struct:
    """The columns as a schema for a table: char and varchar noted, expressions checked."""
    _check_names(columns)
    text = json.dumps({"type": "struct", "fields": [column.to_dict() for column in columns]})
    given = java_class(spark, "org.apache.spark.sql.types.DataType").fromJson(text)
    utils = java_class(spark, "org.apache.spark.sql.catalyst.util.CharVarcharUtils")
    stored = utils.replaceCharVarcharWithStringInSchema(given)
    schema = parse_schema(stored.json())
    _check_identity(columns)
    if any(GENERATION_EXPRESSION_KEY in column.metadata for column in columns):
        _check_generated(spark, stored, columns)
    return schema


def _check_names(columns: Sequence[ColumnDefinition]) -> None:
    folded = [column.name.casefold() for column in columns]
    twice = sorted({name for name in folded if folded.count(name) > 1})
    if twice:
        raise UserError(
            Code.SCHEMA_INVALID,
            f"More than one column is called {', '.join(twice)}.",
            why="names are compared without regard to case",
            fix="Choose other names.",
            delta_class="COLUMN_ALREADY_EXISTS",
            fields={"columns": twice},
        )


def _check_identity(columns: Sequence[ColumnDefinition]) -> None:
    wrong = [c.name for c in columns if IDENTITY_STEP_KEY in c.metadata and c.type != "long"]
    if wrong:
        raise UserError(
            Code.SCHEMA_INVALID,
            f"{', '.join(wrong)} cannot be an identity column.",
            why="identity columns hold 64-bit integers",
            fix="Give it the type BIGINT.",
            delta_class="DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
            fields={"columns": wrong},
        )


def _check_generated(spark: SparkSession, stored: Any, columns: Sequence[ColumnDefinition]) -> None:
    """Every generation expression is a function of plain columns, with the column's type."""
    jsession: Any = spark._jsparkSession
    rows: Any = spark.sparkContext._jsc.emptyRDD()
    whole = DataFrame(jsession.createDataFrame(rows, stored), spark)
    computed = [c for c in columns if GENERATION_EXPRESSION_KEY in c.metadata]
    plain = whole.drop(*[c.name for c in computed])
    problems = [
        problem
        for column in computed
        if (problem := _problem(plain, column, stored.apply(column.name).dataType()))
    ]
    if problems:
        classes, texts = zip(*problems, strict=True)
        raise UserError(
            Code.SCHEMA_INVALID,
            "Some columns cannot be generated as asked.",
            why=listed(texts),
            fix="Use deterministic functions of columns that are not generated themselves.",
            delta_class=classes[0],
            fields={"problems": list(texts)},
        )


def _problem(plain: DataFrame, column: ColumnDefinition, wanted: Any) -> tuple[str, str] | None:
    text = column.metadata[GENERATION_EXPRESSION_KEY]
    try:
        plan: Any = plain.select(F.expr(text))._jdf.queryExecution().analyzed()
    except ParseException:
        raise
    except AnalysisException as error:
        if not str(error.getCondition()).startswith(_UNRESOLVED):
            raise
        return (
            "DELTA_INVALID_GENERATED_COLUMN_REFERENCES",
            f"{column.name}: {text} uses a column that is missing or generated itself",
        )
    if plan.nodeName() != "Project":
        return (
            "DELTA_AGGREGATE_IN_GENERATED_COLUMN",
            f"{column.name}: {text} is not a function of one row",
        )
    expression = plan.projectList().head()
    if not expression.deterministic():
        return (
            "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN",
            f"{column.name}: {text} may give another answer each time",
        )
    found = expression.dataType()
    if found.asNullable().json() != wanted.asNullable().json():
        return (
            "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
            f"{column.name}: {text} is {found.sql()}, the column is {wanted.sql()}",
        )
    return None
