"""The SQL text of a predicate, read by sqlglot as Spark reads it."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError, TokenError

from twinlake.errors import Code, UserError

__all__ = ["TwinlakePredicate", "invalid_predicate", "parse_condition"]


class TwinlakePredicate(Spark):
    """Spark 4 reads a doubled quote inside a string as one quote."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's, with quotes that escape themselves."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']


def parse_condition(text: str) -> exp.Expr:
    """The tree of one condition; ``UserError`` with the place where it stops making sense."""
    try:
        # As a condition, not as a statement: columns may be called comment, begin or cache.
        trees = TwinlakePredicate().parse_into(exp.Condition, text)
    except ParseError as error:
        first: dict[str, Any] = error.errors[0] if error.errors else {}
        raise invalid_predicate(
            text,
            _readable(str(first.get("description") or error), first.get("highlight")),
            line=first.get("line"),
            column=first.get("col"),
            near=first.get("highlight"),
        ) from error
    except TokenError as error:
        raise invalid_predicate(text, str(error)) from error
    except (SqlglotError, ValueError, IndexError, AttributeError, TypeError, KeyError) as error:
        raise invalid_predicate(
            text, f"It is not an SQL expression ({type(error).__name__})."
        ) from error
    if not trees or trees[0] is None:
        raise invalid_predicate(text, "It is empty.")
    if len(trees) > 1:
        raise invalid_predicate(text, "It holds more than one expression.")
    return trees[0]


def _readable(description: str, near: str | None) -> str:
    if description.startswith("Required keyword") and near:
        return f"Something is missing after {near!r}."
    return description.rstrip(".") + "."


def invalid_predicate(
    text: str,
    why: str,
    *,
    line: int | None = None,
    column: int | None = None,
    near: str | None = None,
) -> UserError:
    """The error for a text that is no predicate."""
    shown = text if len(text) <= 200 else text[:200] + "..."
    where = f" at line {line}, column {column}" if line is not None else ""
    fields: dict[str, Any] = {"predicate": shown}
    fields |= {k: v for k, v in (("line", line), ("column", column), ("near", near)) if v}
    return UserError(
        Code.PREDICATE_INVALID,
        f"Not a valid predicate{where}: {shown}",
        why=why,
        fix="Write a condition as in a WHERE clause of Spark SQL, e.g. day >= '2024-01-01'.",
        delta_class="PARSE_SYNTAX_ERROR",
        fields=fields,
    )
