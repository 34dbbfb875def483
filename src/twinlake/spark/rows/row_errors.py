"""Errors about a row, raised within the job that meets it.

The text of such an error ends up in logs of executors and in reports of people who may not see the
rows. So it names columns and rules; values only where the session asks for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from twinlake.errors import UserError
from twinlake.spark.delta_settings import SHOW_VALUES, show_values
from twinlake.spark.errors import carried_text, carried_text_around_row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

__all__ = ["raised_for_row", "row_text"]

_WITH_NULLS: Final = {"ignoreNullFields": "false"}


def raised_for_row(
    spark: SparkSession | None, error: UserError, cells: Mapping[str, Column]
) -> Column:
    """An expression that raises the error; ``cells`` are what the row may be known by.

    Without a session the active one is asked whether values may be shown.
    """
    session = spark or SparkSession.getActiveSession()
    if session is not None and show_values(session):
        before, after = carried_text_around_row(error)
        return F.raise_error(F.concat(F.lit(before), row_text(cells), F.lit(after)))
    told = UserError(
        error.code,
        error.what,
        why=error.why,
        fix=f"{error.fix} To see the values of such a row, run "
        f"`spark.conf.set({SHOW_VALUES!r}, 'true')`.",
        delta_class=error.delta_class,
        fields={**error.fields, "columns": list(cells)},
    )
    return F.raise_error(F.lit(carried_text(told)))


def row_text(cells: Mapping[str, Column]) -> Column:
    """The cells as JSON."""
    return F.to_json(F.struct(*(cell.alias(name) for name, cell in cells.items())), _WITH_NULLS)
