"""Conditions that choose whole partitions, for OPTIMIZE and REORG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from twinlake.actions import AddFile
    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata

__all__ = ["PartitionFilter"]

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
        strangers = [name for part in parsed for name in _columns(part) if name not in known]
        if strangers:
            names = ", ".join(dict.fromkeys(strangers))
            columns = ", ".join(metadata.partition_columns)
            raise UserError(
                Code.PREDICATE_INVALID,
                f"The condition speaks of {names}, by which the table is not partitioned.",
                why=f"files are chosen whole, so only partition columns can choose: [{columns}]",
                fix="Leave the other columns out, or leave the condition out.",
                delta_class="DELTA_NON_PARTITION_COLUMN_REFERENCE",
                fields={"columnName": strangers[0], "columnList": columns},
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
        import pyarrow as pa

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
