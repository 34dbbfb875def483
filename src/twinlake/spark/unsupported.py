"""Calls of Delta Spark that this release does not support.

The names exist so that code which only changes an import fails where it uses them, with a clear
message, and not at the import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from twinlake.errors import Code, UnsupportedFeature

__all__ = ["UNSUPPORTED_CALLS", "UnsupportedCall", "unsupported_call"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedCall:
    """One call of a later release."""

    name: str
    what: str
    """What it will do."""
    meanwhile: str
    """What to use until then."""


UNSUPPORTED_CALLS: Final[tuple[UnsupportedCall, ...]] = (
    UnsupportedCall(
        name="DeltaTable.clone",
        what="copy a table, shallow or deep",
        meanwhile="Write `DeltaTable.toDF()` to the new path with "
        "`twinlake.spark.write(frame, PATH)`.",
    ),
    UnsupportedCall(
        name="DeltaTable.cloneAtVersion",
        what="copy a table as it was at a version",
        meanwhile="Write `twinlake.spark.scan(spark, PATH, version=N)` to the new path.",
    ),
    UnsupportedCall(
        name="DeltaTable.cloneAtTimestamp",
        what="copy a table as it was at a time",
        meanwhile="Write `twinlake.spark.scan(spark, PATH, timestamp=TIME)` to the new path.",
    ),
    UnsupportedCall(
        name="DeltaTable.convertToDelta",
        what="make a table of a folder of Parquet files in place",
        meanwhile="Read the folder with `spark.read.parquet(FOLDER)` and write it with "
        "`twinlake.spark.write(frame, PATH)`.",
    ),
    UnsupportedCall(
        name="DeltaTable.generate",
        what="write manifests of the table's files for readers without Delta",
        meanwhile="List the files with `twinlake.Table.open(PATH).files()`.",
    ),
    UnsupportedCall(
        name="DeltaOptimizeBuilder.executeZOrderBy",
        what="compact files and order rows across them",
        meanwhile="Use `executeCompaction()`, which packs files and keeps their order.",
    ),
)
"""All of them; the reference page is generated from it."""

_BY_NAME: Final = {call.name: call for call in UNSUPPORTED_CALLS}


def unsupported_call(name: str) -> UnsupportedFeature:
    """The error of a call of a later release.

    >>> unsupported_call("DeltaTable.generate").what
    'DeltaTable.generate is not supported yet.'
    """
    call = _BY_NAME[name]
    return UnsupportedFeature(
        Code.NOT_YET,
        f"{name} is not supported yet.",
        why=f"a later release of twinlake will {call.what}",
        fix=call.meanwhile,
        fields={"name": name},
    )
