"""Whether a text could concern tables of ours, told by its words as far as they go."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from twinlake.spark.api.catalog import session_catalog
from twinlake.spark.statements.queries.names import FORMATS
from twinlake.spark.statements.queries.views import Views
from twinlake.spark.statements.syntax.tokens import TokenKind, tokenize
from twinlake.table import Catalog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from twinlake.spark.statements.syntax.tokens import SqlToken

__all__ = ["may_concern"]

_OURS_ALONE: Final = frozenset({"VACUUM", "OPTIMIZE", "REORG", "RESTORE", "GENERATE", "CONVERT"})
"""First words of statements that Spark does not know."""
_NAMES_BY_VALUE: Final = frozenset({"IDENTIFIER", "TABLE_CHANGES"})
"""Functions whose argument is the name of a table."""
_BEFORE_NAMES: Final = frozenset(
    {
        *("FROM", "JOIN", "INTO", "OVERWRITE", "TABLE", "UPDATE", "MERGE", "USING", "CLONE"),
        *("DESCRIBE", "DESC", "EXTENDED", "FORMATTED", "HISTORY", "DETAIL", "EXISTS", "IN"),
        *("COLUMNS", "TBLPROPERTIES", "PARTITIONS", "VIEW"),
    }
)
"""What stands right before the name of a table, the comma of a list of tables among it."""


def may_concern(spark: SparkSession, text: str) -> bool:
    """False only if twinlake would hand the text to Spark as it is.

    Most texts are told by their words alone. Where a table may be named, the session's catalog of
    names is asked, which takes two calls to Spark and none to a store.
    """
    tokens = tokenize(text)
    if not tokens:
        return False
    if tokens[0].word in _OURS_ALONE or any(_names_format(token) for token in tokens):
        return True
    if any(token.word in _NAMES_BY_VALUE for token in tokens):
        return True
    if tokens[0].word == "SHOW":
        return True
    words = {token.name.casefold() for token in tokens if token.name}
    if words & Views.of(spark).names:
        return True
    return _may_name_tables(tokens) and _is_in_catalog(spark, words)


def _names_format(token: SqlToken) -> bool:
    """Whether a format of ours is written: in front of a path, or after USING."""
    return bool(token.name) and str(token.name).casefold() in FORMATS


def _may_name_tables(tokens: Sequence[SqlToken]) -> bool:
    return any(
        after.name and (before.word in _BEFORE_NAMES or before.text == ",")
        for before, after in itertools.pairwise(tokens)
        if after.kind in (TokenKind.WORD, TokenKind.QUOTED_NAME)
    )


def _is_in_catalog(spark: SparkSession, words: set[str]) -> bool:
    catalog = session_catalog(spark)
    # A server is asked for the names of the statement later, not for all that it has now.
    return not isinstance(catalog, Catalog) or any(name.table in words for name in catalog.names())
