"""``sql``: one statement, run by whatever knows it.

Delta's own statements come first, since Spark's parser takes some of them for others. Spark's
parser reads all the rest. A statement in which no table of ours is named goes to Spark as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from twinlake.errors import Code, TwinlakeError, UserError
from twinlake.spark.errors import raises_spark_errors
from twinlake.spark.session import check_session
from twinlake.spark.statements.concern import may_concern
from twinlake.spark.statements.queries.select import run_command, run_query
from twinlake.spark.statements.queries.statement import SparkStatement
from twinlake.spark.statements.registry import DELTA_FORMS, PLAN_HANDLERS
from twinlake.spark.statements.syntax.cursor import TokenCursor
from twinlake.spark.statements.syntax.parameters import bound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["sql", "sql_rows"]


@raises_spark_errors
def sql(
    spark: SparkSession,
    text: str,
    args: Mapping[str, Any] | Sequence[Any] | None = None,
) -> DataFrame:
    """Run one statement of SQL; tables go by name or as ``delta.`/path```.

    ``args``: values for ``:name`` (a dictionary) or ``?`` (a list). Commands run at once and return
    the result that Delta Spark returns; queries run when their frame is used.
    """
    check_session(spark)
    _check_text(text)
    statement = SparkStatement(spark, bound(spark, text, args), text, args)
    if not may_concern(spark, statement.text):
        return statement.pass_on()
    for form in DELTA_FORMS:
        asked = form.parse(TokenCursor.of(statement.text))
        if asked is not None:
            return asked.run(statement)
    plan = statement.tree.parse(statement.text)
    handler = PLAN_HANDLERS.get(str(plan.nodeName()))
    if handler is None:
        handler = run_command if statement.tree.is_command(plan) else run_query
    result = handler(statement, plan)
    return statement.pass_on() if result is None else result


@raises_spark_errors
def sql_rows(
    spark: SparkSession, text: str, args: Sequence[Any] | None = None, *, limit: int | None = None
) -> pa.Table:
    """The rows of a statement, for the command line: one more than the limit if there are more.

    What Spark says about a wrong statement is an error of ours here.
    """
    try:
        frame = sql(spark, text, args)
        if limit is not None and frame.columns:
            frame = frame.limit(limit + 1)
        return frame.toArrow()
    except PySparkException as error:
        if isinstance(error, TwinlakeError):
            raise
        raise UserError(
            Code.INVALID_ARGUMENT,
            "Spark cannot run the statement.",
            why=str(error).strip(),
            fix="Correct the statement; `twinlake schema PATH` lists the columns of a table.",
            delta_class=error.getCondition(),
            fields={"statement": text},
        ) from error


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"'text' must be a str, found {type(text).__name__}")
    if not text.strip():
        raise UserError(
            Code.INVALID_ARGUMENT,
            "The statement is empty.",
            fix="Pass one statement: `twinlake.spark.sql(spark, 'SELECT 1')`.",
            delta_class="PARSE_EMPTY_STATEMENT",
        )
