"""A data source that carries no rows: its stream has the offsets of a table, and nothing else."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from twinlake.spark.streaming.planner import StreamPlanner

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.types import StructType

__all__ = ["OFFSET_FORMAT", "OffsetSource"]

OFFSET_FORMAT: Final = "twinlake_offsets"


class OffsetSource(DataSource):
    """The stream that ``follow`` starts."""

    @classmethod
    def name(cls) -> str:
        """The format."""
        return OFFSET_FORMAT

    def schema(self) -> str:
        """A column that no row ever has."""
        return "nothing INT"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002
        """What plans the batches."""
        return _OffsetReader(dict(self.options))


class _OffsetReader(DataSourceStreamReader):
    """Offsets only: whoever handles the batch reads the rows between them."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    @cached_property
    def _planner(self) -> StreamPlanner:
        return StreamPlanner(self._options, fixed=False)

    def initialOffset(self) -> dict[str, Any]:
        """Where a new stream begins."""
        return self._planner.beginning().to_dict()

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: ARG002
        """Where the next batch ends."""
        return self._planner.latest(start).to_dict()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:  # noqa: ARG002
        """No task."""
        self._planner.reached(end)
        return []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:  # noqa: ARG002
        """No row."""
        return iter(())
