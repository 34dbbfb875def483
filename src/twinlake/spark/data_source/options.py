"""What the options of ``format("twinlake")`` ask for, and the table that they name.

There is no session in the process that looks at them, so whatever is needed has to be an option:
settings of the object store too, as ``fs.s3a.*``; else its environment variables count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UnsupportedFeature, UserError
from twinlake.schema import Struct
from twinlake.spark.change_feed.feed_frame import change_schema
from twinlake.spark.delta_options import OptionUse, OptionValues, table_properties
from twinlake.spark.read.columns import visible_field
from twinlake.spark.s3a_options import s3a_options
from twinlake.spark.spark_types import spark_type
from twinlake.storage import parse_location
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType

    from twinlake.log import Snapshot

__all__ = ["FORMAT", "DataSourceOptions"]

FORMAT: Final = "twinlake"
"""The name of the data source."""

_COLUMN: Final = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^,`]+?))\s*(?:,|$)")
_SPARK_ONLY: Final[Mapping[str, str]] = {
    "replaceWhere": "replace_where=CONDITION",
    "overwriteSchema": "overwrite_schema=True",
    "dataChange": "mode=MODE",
}
"""Write options that take Spark, or that nobody has yet, and the argument of ``write``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSourceOptions:
    """A table by path, and how it is read or written; it travels to the workers."""

    location: str
    store: Mapping[str, Any] = field(default_factory=dict, repr=False)
    version: int | None = None
    timestamp: str | None = None
    columns: tuple[str, ...] | None = None
    change_feed: bool = False
    """Whether a stream reads changes."""
    merge_schema: bool = False
    dynamic: bool = False
    user_metadata: str | None = None
    txn: tuple[str, int] | None = None
    policy: str = "bundled"
    properties: Mapping[str, str] = field(default_factory=dict)
    """Of a table that the write makes."""

    @classmethod
    def for_reading(cls, options: Mapping[str, str]) -> DataSourceOptions:
        """The table and version to read."""
        values = OptionValues.of(options)
        values.warn_of_unknown(OptionUse.READ | OptionUse.STREAM_READ, known=("columns",))
        columns = values.text("columns")
        change_feed = values.truth("readChangeFeed") or values.truth("readChangeData") or False
        if change_feed and columns is not None:
            raise UserError(
                Code.INVALID_ARGUMENT,
                "The options columns and readChangeFeed are given together.",
                why="a stream of changes has all columns of the table",
                fix="Leave the option `columns` out, and call `select` on the frame.",
            )
        return cls(
            **_table(values),
            version=values.number("versionAsOf"),
            timestamp=values.text("timestampAsOf"),
            columns=None if columns is None else _names(columns),
            change_feed=change_feed,
        )

    @classmethod
    def for_writing(cls, options: Mapping[str, str]) -> DataSourceOptions:
        """The table to write, and how."""
        values = OptionValues.of(options)
        values.warn_of_unknown(OptionUse.WRITE, known=("upgradePolicy",))
        for name, argument in _SPARK_ONLY.items():
            if values.has(name):
                raise UnsupportedFeature(
                    Code.SPARK_REQUIRED,
                    f'format("twinlake") does not take the option {name}.',
                    why="rows that are there already are judged by Spark, and there is no session "
                    "in the workers that write",
                    fix=f"Run `twinlake.spark.write(df, path, {argument})`.",
                    fields={"option": name},
                )
        return cls(
            **_table(values),
            merge_schema=values.truth("mergeSchema") or False,
            dynamic=(values.text("partitionOverwriteMode") or "static").lower() == "dynamic",
            user_metadata=values.text("userMetadata"),
            txn=values.txn(),
            policy=values.text("upgradePolicy") or "bundled",
            properties=table_properties(options),
        )

    def open(self, version: int | None = None) -> Table:
        """The table at the version that is asked for, or at the one that was found before."""
        at = self.version if version is None else version
        when = self.timestamp if version is None else None
        return Table.open(
            self.location, at, when, policy=self.policy, options=dict(self.store) or None
        )

    def exists(self) -> bool:
        """Whether there is a table."""
        return Table.exists(self.location, options=dict(self.store) or None)

    def refuse_changes(self) -> None:
        """Refuse to read changes other than as a stream."""
        if self.change_feed:
            raise UnsupportedFeature(
                Code.SPARK_REQUIRED,
                "The data source twinlake reads the change data feed as a stream only.",
                why="the rows of a range of versions are read by a Spark session, and there is "
                "none in the workers that read",
                fix="Call `twinlake.spark.changes(spark, PATH, from_version=N)`.",
                fields={"option": "readChangeFeed"},
            )

    def read_schema(self, snapshot: Snapshot) -> StructType:
        """The columns to read, as Spark shows them."""
        if self.change_feed:
            return change_schema(snapshot.metadata)
        shown = Struct(tuple(visible_field(field) for field in snapshot.schema))
        if self.columns is None:
            return spark_type(shown)
        found = [shown.get(name) for name in self.columns]
        missing = [n for n, one in zip(self.columns, found, strict=True) if one is None]
        if missing:
            raise UserError(
                Code.COLUMN_NOT_FOUND,
                f"The table has no column {', '.join(missing)}.",
                why=f"its columns are {', '.join(shown.names())}",
                fix="Name columns of the table, with commas between them: "
                '`option("columns", "id, day")`.',
                fields={"missing": missing},
            )
        return spark_type(Struct(tuple(one for one in found if one is not None)))


def _table(values: OptionValues) -> dict[str, Any]:
    path = values.text("path")
    if path is None:
        raise UserError(
            Code.INVALID_ARGUMENT,
            'format("twinlake") needs the path of a table.',
            fix='Call `load(PATH)` or `save(PATH)`, or give `option("path", PATH)`.',
        )
    location = parse_location(path)
    settings = values.prefixed("fs.s3a.")
    return {"location": location.url, "store": s3a_options(location, settings.get)}


def _names(text: str) -> tuple[str, ...]:
    """Names with commas between them; one with a comma of its own stands in backticks."""
    found, at = [], 0
    while at < len(text):
        match = _COLUMN.match(text, at)
        if match is None:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"The option columns is {text!r}.",
                why="it is names with commas between them, in backticks where a name has a comma",
                fix='Write `option("columns", "id, day")`.',
                fields={"columns": text},
            )
        found.append(match[1].replace("``", "`") if match[1] else match[2])
        at = match.end()
    return tuple(found)
