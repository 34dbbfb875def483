"""Values for the markers of a statement: ``:name`` and ``?`` become the literals that Spark writes.

They are put into the text, as Spark does by now, so that a condition with a marker in it can go on
to DeltaTable like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkTypeError
from pyspark.sql import functions as F

from twinlake.errors import Code, UserError
from twinlake.spark.statements.syntax.tokens import TokenKind, tokenize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from twinlake.spark.statements.syntax.tokens import SqlToken

__all__ = ["bound"]


def bound(spark: SparkSession, text: str, args: Mapping[str, Any] | Sequence[Any] | None) -> str:
    """The text with the values of its markers in it."""
    if args is not None and not isinstance(args, (dict, list)):
        raise PySparkTypeError(
            errorClass="INVALID_TYPE",
            messageParameters={"arg_name": "args", "arg_type": type(args).__name__},
        )
    if not args:
        return text
    written, position = [], 0
    markers = _named(text, args) if isinstance(args, dict) else _positional(text, args)
    for start, end, value in markers:
        written += [text[position:start], _literal(spark, value)]
        position = end
    return "".join([*written, text[position:]])


def _named(text: str, args: Mapping[str, Any]) -> Iterator[tuple[int, int, Any]]:
    tokens = tokenize(text)
    for before, colon, name in zip((None, *tokens), tokens, tokens[1:], strict=False):
        # `a:b` is a field of a variant, and `a::INT` is a cast.
        attached = before is not None and before.end == colon.start and _ends_value(before)
        is_marker = colon.text == ":" and name.start == colon.end and not attached
        key = name.name
        if is_marker and key is not None and key in args:
            yield colon.start, name.end, args[key]


def _ends_value(token: SqlToken) -> bool:
    return token.name is not None or token.text in {")", "]", ":"}


def _positional(text: str, args: Sequence[Any]) -> Iterator[tuple[int, int, Any]]:
    markers = [t for t in tokenize(text) if t.kind is TokenKind.SIGN and t.text == "?"]
    if len(markers) > len(args):
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The statement has {len(markers)} markers and {len(args)} values.",
            why="each ? takes the next value of the list",
            fix="Pass one value for each ?: `twinlake.spark.sql(spark, TEXT, [VALUE, ...])`.",
            delta_class="UNBOUND_SQL_PARAMETER",
            fields={"markers": len(markers), "values": len(args)},
        )
    for marker, value in zip(markers, args, strict=False):
        yield marker.start, marker.end, value


def _literal(spark: SparkSession, value: Any) -> str:
    """A value as Spark writes it in SQL."""
    column: Any = F.lit(value)
    jsession: Any = spark._jsparkSession
    sql = str(jsession.expression(column._jc).sql())
    # Two minus signs in a row begin a comment.
    return f"({sql})" if sql.startswith("-") else sql
