"""Conditions that choose whole partitions, for OPTIMIZE and REORG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from twinlake.actions import AddFile
    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.table import Table

__all__ = ["PartitionBuilder", "PartitionFilter"]

_ATTRIBUTE = "UnresolvedAttribute"


@dataclass(frozen=True, slots=True)
class PartitionFilter:
    """Conditions on partition columns that all have to hold."""

    spark: SparkSession
    conditions: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    """The conditions as Spark prints them before it knows the columns, as the history has them."""

    @classmethod
    def of(
        cls, spark: SparkSession, metadata: Metadata, where: str | Iterable[str] | None
    ) -> PartitionFilter:
        """The filter; a column that does not partition the table is an error."""
        given = [where] if isinstance(where, str) else list(where or ())
        jsession: Any = spark._jsparkSession
        parser = jsession.sessionState().sqlParser()
        parsed = [parser.parseExpression(text) for text in given]
        known = {name.casefold() for name in metadata.partition_columns}
        others = [name for part in parsed for name in _columns(part) if name not in known]
        if others:
            names = ", ".join(dict.fromkeys(others))
            columns = ", ".join(metadata.partition_columns)
            raise UserError(
                Code.PREDICATE_INVALID,
                f"The condition names {names}, which are not partition columns.",
                why=f"whole files are selected, by the partition columns [{columns}]",
                fix="Leave the other columns out, or leave the condition out.",
                delta_class="DELTA_NON_PARTITION_COLUMN_REFERENCE",
                fields={"columnName": others[0], "columnList": columns},
            )
        return cls(spark, tuple(given), tuple(part.toString() for part in parsed))

    def files(self, snapshot: Snapshot) -> Iterator[AddFile]:
        """The live files of the partitions for which all conditions hold."""
        if not self.conditions:
            return snapshot.adds()
        paths = self._paths(snapshot.files(), snapshot.metadata)
        return iter(snapshot.live_files(paths).values())

    def _paths(self, files: pa.Table, metadata: Metadata) -> Sequence[str]:
        """Spark answers, so that every function works; it sees one row a partition."""
        flat = files.select(["path", "partition_values"]).flatten()
        names = [f"partition_values.{name}" for name in metadata.partition_columns]
        distinct = flat.group_by(names).aggregate([("path", "list")])
        rows = pa.table(
            {
                **{
                    name: distinct[column]
                    for name, column in zip(metadata.partition_columns, names, strict=True)
                },
                "__twinlake_group": pa.array(range(len(distinct)), pa.int64()),
            }
        )
        frame = self.spark.createDataFrame(rows)
        for condition in self.conditions:
            frame = frame.where(condition)
        wanted = [row[0] for row in frame.select("__twinlake_group").collect()]
        groups = distinct["path_list"]
        return [path for group in wanted for path in groups[group].as_py()]


def _columns(parsed: Any) -> Iterator[str]:
    if _kind(parsed) == _ATTRIBUTE:
        yield ".".join(_items(parsed.nameParts())).casefold()
    for child in _items(parsed.children()):
        yield from _columns(child)


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(position) for position in range(sequence.size())]


def _kind(parsed: Any) -> str:
    return str(parsed.getClass().getSimpleName())


class PartitionBuilder:
    """What the builders of OPTIMIZE and REORG share: conditions that choose partitions."""

    def __init__(self, spark: SparkSession, open_now: Callable[[], Table]) -> None:
        self._spark = spark
        self._open = open_now
        self._filters: list[str] = []

    def where(self, partitionFilter: str) -> Self:
        """Only partitions for which this holds; several filters all have to hold."""
        self._filters.append(partitionFilter)
        return self
