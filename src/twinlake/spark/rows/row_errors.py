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
from twinlake.spark.errors import encode_error, encode_error_around_row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

__all__ = ["raise_for_row", "row_text"]

_WITH_NULLS: Final = {"ignoreNullFields": "false"}


def raise_for_row(spark: SparkSession, error: UserError, cells: Mapping[str, Column]) -> Column:
    """An expression that raises the error; ``cells`` are what the row may be known by.

    The session of the frame says whether values may be shown: another one may be the active one.
    """
    if show_values(spark):
        before, after = encode_error_around_row(error)
        return F.raise_error(F.concat(F.lit(before), row_text(cells), F.lit(after)))
    without_values = UserError(
        error.code,
        error.what,
        why=error.why,
        fix=f"{error.fix} To see the values of such a row, run "
        f"`spark.conf.set({SHOW_VALUES!r}, 'true')`.",
        delta_class=error.delta_class,
        fields={**error.fields, "columns": list(cells)},
    )
    return F.raise_error(F.lit(encode_error(without_values)))


def row_text(cells: Mapping[str, Column]) -> Column:
    """The cells as JSON."""
    return F.to_json(F.struct(*(cell.alias(name) for name, cell in cells.items())), _WITH_NULLS)
